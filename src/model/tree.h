#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/topology.h"

namespace topotune::model {

// The way from a device to its host bridge. `up` holds the bridges above it, nearest first; a bridge that
// comes twice (a cycle), a missing parent and the kMaxDepth-th bridge end it.
struct Route {
  const PciDevice* device = nullptr;  // null: not in the tree (a virtual NIC)
  std::vector<const PciDevice*> up;
  std::string root;         // host bridge, "" unknown
  std::optional<int> numa;  // of the device, or what the GPU or NIC itself says
};

// Index of the PCI devices of a topology, which must outlive it.
class PciTree {
 public:
  static constexpr std::size_t kMaxDepth = 64;

  explicit PciTree(const Topology& topology);
  const PciDevice* find(std::string_view id) const;  // by id; null when absent
  Route route_to(const Gpu& gpu) const;
  Route route_to(const Nic& nic) const;

 private:
  Route route(const std::string& id, std::optional<int> numa) const;  // id "": no PCI device

  const Topology* topology_;
  std::unordered_map<std::string_view, const PciDevice*> by_id_;
};

// How many bridges two chains share, counted from the host bridge.
std::size_t shared_bridges(std::span<const PciDevice* const> a, std::span<const PciDevice* const> b);

// The chain as NCCL keeps it: its XML as it is; of a real tree every second bridge (src/graph/xml.cc,
// ncclTopoGetXmlFromSys: a switch's upstream port stands for the switch, root ports are skipped).
std::vector<const PciDevice*> nccl_chain(const Route& route, bool nccl_tree);

// NCCL flattens a cascaded Broadcom switch into the one above (src/graph/topo.cc,
// ncclTopoFlattenBcmSwitches).
bool flattened_into(const PciDevice& child, const PciDevice& parent);

}  // namespace topotune::model
