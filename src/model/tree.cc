#include "model/tree.h"

#include <algorithm>

namespace topotune::model {

PciTree::PciTree(const Topology& topology) : topology_(&topology) {
  for (const auto& device : topology.pci) by_id_.emplace(device.id, &device);
}

const PciDevice* PciTree::find(std::string_view id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

template <class Device>
static std::string id_of(const Device& device) {
  return device.pci.empty() ? device.bdf.value_or("") : device.pci;
}

Route PciTree::route_to(const Gpu& gpu) const { return route(id_of(gpu), gpu.numa); }
Route PciTree::route_to(const Nic& nic) const { return route(id_of(nic), nic.numa); }

Route PciTree::route(const std::string& id, std::optional<int> numa) const {
  Route route;
  route.device = id.empty() ? nullptr : find(id);
  route.numa = numa;
  if (route.device == nullptr) {
    // NCCL hangs what has no PCI device below the cpu element itself.
    if (id.empty() && numa && topology_->nccl_classes) route.root = "cpu" + std::to_string(*numa);
    return route;
  }
  route.root = route.device->root;
  if (route.device->numa) route.numa = route.device->numa;
  for (const auto* at = find(route.device->parent); at != nullptr && route.up.size() < kMaxDepth;
       at = find(at->parent)) {
    if (at == route.device || std::ranges::find(route.up, at) != route.up.end()) break;
    route.up.push_back(at);
    if (at->parent.empty()) break;
  }
  return route;
}

std::size_t shared_bridges(std::span<const PciDevice* const> a, std::span<const PciDevice* const> b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[a.size() - 1 - n] == b[b.size() - 1 - n]) ++n;
  return n;
}

std::vector<const PciDevice*> nccl_chain(const Route& route, bool nccl_tree) {
  if (nccl_tree) return route.up;
  std::vector<const PciDevice*> out;
  for (std::size_t i = 1; i < route.up.size(); i += 2) out.push_back(route.up[i]);
  return out;
}

bool flattened_into(const PciDevice& child, const PciDevice& parent) {
  // Vendor 1000: device c010 (Gen4) with subsystem 1000:a***; device c030 (Gen5) with 1000:0*** above
  // 1000:1***.
  const auto generation = [](const PciDevice& d, unsigned level) {
    if (d.vendor != 0x1000 || d.subsystem_vendor != 0x1000 || !d.subsystem_device) return 0;
    if (d.device == 0xc010) return (*d.subsystem_device & 0xf000U) == 0xa000 ? 4 : 0;
    if (d.device == 0xc030) return (*d.subsystem_device & 0xf000U) == level * 0x1000 ? 5 : 0;
    return 0;
  };
  const int above = generation(parent, 0);
  return above != 0 && above == generation(child, 1);
}

}  // namespace topotune::model
