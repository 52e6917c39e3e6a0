#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/topology.h"

namespace topotune::checks {

// How a model's NVLinks are connected.
enum class Wiring {
  none,    // the model has no NVLink
  board,   // the carrier board connects all of them
  bridge,  // only where somebody put bridges on the cards
  unknown  // depends on the machine
};

// An entry of data/machines/*.json: what a healthy GPU of this PCI device id has. 0 or "": not known.
struct KnownGpu {
  std::uint16_t vendor = 0, device = 0;
  std::vector<std::string_view> names;  // whole names as the driver prints them, without "NVIDIA "
  std::string_view form;                // "SXM", "PCIe", "NVL", "superchip", ...
  int sm = 0;
  std::optional<int> nvlinks;     // links of the model; with bridges: of a fully bridged card
  double link_gbytes_per_s = 0;   // of one link, one direction, as `nvidia-smi nvlink -s` prints it
  Wiring wiring = Wiring::unknown;
  int links_per_bridge = 0;       // 0: unknown
  int pcie_gen = 0;
  bool data_centre = false, gdr = false;
  std::vector<std::string_view> sources;  // URL and date: "https://... (2026-08-22)"; first the device id's
};

std::span<const KnownGpu> known_gpus();

// By PCI device id; where the input has none, by the whole name (a name in which only a part fits is unknown).
const KnownGpu* known_gpu(const model::Gpu& gpu);

// A GPU whose vendor is not told counts as NVIDIA's.
inline bool is_nvidia(const model::Gpu& gpu) { return gpu.pci_vendor.value_or(0x10de) == 0x10de; }

// Two GPUs are one model: equal PCI ids, else equal names. Nothing when neither is known of both.
std::optional<bool> same_model(const model::Gpu& a, const model::Gpu& b);

}  // namespace topotune::checks
