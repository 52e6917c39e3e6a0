#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/fact.h"

namespace topotune::parse {

// The text of the probe `nvml` (docs/formats/probe-nvml.md) as values. A refusal is a Fact without a value
// whose `why` is the library's text; a key that is absent has the `why` "not asked".

struct NvmlLink {
  int number = 0;
  model::Fact<bool> active;
  model::Fact<double> gbytes_per_s;      // one direction
  model::Fact<std::string> remote_type;  // "gpu", "switch", "npu", "unknown"
  model::Fact<std::string> remote_bdf;   // canonical; missing where the driver hides it ("ffffffff:ff:ff.0")
};

struct NvmlGpu {
  int index = 0;
  std::string error;             // the whole device could not be asked
  model::Fact<std::string> bdf;  // canonical
  model::Fact<std::string> name, uuid, vbios, board_part, persistence, compute_mode, cluster_uuid;
  model::Fact<int> vendor, device, subsystem_vendor, subsystem_device;  // PCI ids
  model::Fact<int> capability_major, capability_minor;
  model::Fact<bool> mig;  // current mode
  model::Fact<int> pcie_gen, pcie_gen_max, pcie_width, pcie_width_max;
  model::Fact<std::uint64_t> pcie_replays, bar1_bytes, memory_bytes, clock_event_reasons;
  model::Fact<int> fabric_state, fabric_status;
  model::Fact<std::uint64_t> fabric_clique, fabric_health_mask;
  model::Fact<int> utilisation;  // percent
  model::Fact<double> temperature_c, power_w;
  model::Fact<int> c2c_active;
  model::Fact<double> c2c_gbytes_per_s;  // one link, one direction
  model::Fact<int> nvlink_count;
  std::vector<NvmlLink> links;
  std::vector<std::string> link_errors;  // "link 3: GPU is lost"
};

struct NvmlPair {
  int from = 0, to = 0;  // indices
  model::Fact<std::string> read, write, nvlink, atomics, prop;
  model::Fact<std::string> common_ancestor;
};

struct NvmlProbe {
  model::Fact<std::string> driver_version, nvml_version, cuda_driver_version, confidential_compute;
  model::Fact<int> gpu_count;
  std::vector<NvmlGpu> gpus;
  std::vector<NvmlPair> pairs;
};

// Malformed: no JSON object of this schema. Values of a wrong kind or out of range are facts without a value.
// Refused as too_large: more than 1024 GPUs, 128 links of one GPU, or 1 M pairs.
Result<NvmlProbe> parse_nvml_probe(std::string_view text);

// GT/s per lane of a PCIe generation: 1 -> 2.5 ... 6 -> 64.
std::optional<double> gts_of_generation(int generation);

}  // namespace topotune::parse
