#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::parse {

// The answer of the probe "nvml" (docs/formats/probe-nvml.md). What the library refused is nothing here; the
// refusals are listed in `refused` of the device ("fabric: Not Supported").
struct NvmlLink {
  int link = 0;
  std::optional<bool> active;
  std::optional<double> gbytes_per_s;
  std::string remote_type;                      // "gpu", "switch", ""
  std::string remote_bus_id;                    // canonical, "" unknown
  std::map<std::string, std::uint64_t> errors;  // "replay", "recovery", "crc_flit", "crc_data"
};

struct NvmlFabric {
  std::optional<int> state, status;
  std::optional<std::string> clique_id, cluster_uuid;
  std::optional<std::uint32_t> health_mask;
};

struct NvmlGpu {
  int index = 0;
  std::optional<std::string> error;  // the device itself failed
  std::optional<std::string> name, uuid, vbios, board_part, persistence, compute_mode, bus_id;
  std::optional<std::uint16_t> vendor, device, subsystem_vendor, subsystem_device;
  std::optional<int> sm;
  std::optional<bool> mig;
  std::optional<int> pcie_gen, pcie_gen_max, pcie_gen_device_max, pcie_width, pcie_width_max;
  std::optional<std::uint64_t> pcie_replays, bar1_bytes, memory_bytes, clock_event_reasons;
  NvmlFabric fabric;
  std::optional<int> utilisation;
  std::optional<double> temperature_c;
  std::optional<int> c2c_links;
  std::optional<double> c2c_gbytes_per_s;
  std::optional<int> nvlink_count;
  std::vector<NvmlLink> links;
  std::vector<std::string> refused;
};

struct NvmlPair {
  int from = 0, to = 0;
  // capability -> status: {"read", "OK"}
  std::vector<std::pair<std::string, std::string>> status;
};

struct NvmlProbe {
  std::optional<std::string> driver_version, nvml_version, cuda_driver_version, confidential_compute;
  std::optional<int> gpu_count;
  std::vector<NvmlGpu> gpus;
  std::vector<NvmlPair> p2p;
};

// Errors: malformed (not JSON, not of this schema).
Result<NvmlProbe> parse_nvml_probe(std::string_view text);

}  // namespace topotune::parse
