#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace topotune::parse {

// Texts below /sys/class/kfd/kfd/topology/nodes/N: one "name value" a line
// (drivers/gpu/drm/amd/amdkfd/kfd_topology.c).

// `properties` of a node that is a GPU; nothing for CPUs (simd_count 0) and other texts.
struct KfdGpu {
  std::string bdf;         // canonical; of `domain` and `location_id` (bus << 8 | device << 3 | function)
  std::optional<int> gfx;  // gfx_target_version 90402 -> 942
};
std::optional<KfdGpu> parse_kfd_node(std::string_view properties);

// `io_links/M/properties`
struct KfdLink {
  bool xgmi = false;  // type 11
  int to = 0;         // node number
  int count = 1;      // links: max_bandwidth / min_bandwidth, the latter being that of one link
  std::optional<double> gbytes_per_s;  // one link, one direction
};
std::optional<KfdLink> parse_kfd_link(std::string_view properties);

}  // namespace topotune::parse
