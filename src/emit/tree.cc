#include "emit/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "emit/path_table.h"

namespace topotune::emit {

namespace {

using model::PciDevice;
using model::PciKind;
using model::Topology;

constexpr int kMaxDepth = 64;

std::string link_text(const model::PcieLink& link) {
  const std::string width = link.width ? fmt::format("x{}", *link.width) : "x?";
  return link.gts ? fmt::format("{:g} GT/s {}", *link.gts, width) : width;
}

// "16 GT/s x16", "2.5 GT/s x8 of 32 GT/s x16", "" when nothing is known.
std::string link_of(const PciDevice& device) {
  const bool current = device.current.gts || device.current.width;
  const bool capable = device.capable.gts || device.capable.width;
  if (!current && !capable) return "";
  if (!current) return "up to " + link_text(device.capable);
  if (!capable || device.current == device.capable) return link_text(device.current);
  return link_text(device.current) + " of " + link_text(device.capable);
}

class Tree {
 public:
  Tree(const Topology& topology, bool color) : topology_(topology), color_(color) {
    for (const auto& gpu : topology.gpus) {
      if (gpu.bdf) names_[gpu.pci.empty() ? *gpu.bdf : gpu.pci] = gpu_name(gpu);
    }
    for (const auto& nic : topology.nics) {
      if (!nic.bdf) continue;
      auto& name = names_[nic.pci.empty() ? *nic.bdf : nic.pci];
      name += (name.empty() ? "" : ", ") + nic_name(nic);
    }
    for (const auto& device : topology.pci) children_[device.parent.empty() ? "root " + device.root : device.parent].push_back(&device);
    mark_wanted();
  }

  std::string text() {
    std::string out;
    std::map<std::string, const PciDevice*> roots;  // host bridges that lead to something
    for (const auto& device : topology_.pci) {
      if (device.parent.empty() && wanted_.contains(device.id)) roots.emplace(device.root, &device);
    }
    std::set<int> listed;
    for (const auto& node : topology_.numa) {
      out += node_line(node);
      listed.insert(node.id);
      for (const auto& [root, first] : roots) {
        if (first->numa == node.id) out += bridge(root);
      }
      out += loose(node.id);
    }
    std::string rest;
    for (const auto& [root, first] : roots) {
      if (!first->numa || !listed.contains(*first->numa)) rest += bridge(root);
    }
    rest += loose(std::nullopt);
    if (!rest.empty()) out += (topology_.numa.empty() ? "Machine\n" : "NUMA node unknown\n") + rest;
    return out.empty() ? "No device.\n" : out;
  }

 private:
  std::string paint(const char* code, const std::string& text) const { return color_ ? code + text + "\x1b[0m" : text; }

  std::string gpu_name(const model::Gpu& gpu) const {
    std::string out = paint("\x1b[1;32m", gpu.id);
    if (gpu.name) out += " " + printable(*gpu.name);
    if (gpu.nvlinks && *gpu.nvlinks > 0) out += fmt::format(", {} NVLinks", *gpu.nvlinks);
    return out;
  }

  std::string nic_name(const model::Nic& nic) const {
    std::string out = paint("\x1b[1;36m", nic.id);
    if (nic.name) out += " " + printable(*nic.name);
    if (nic.rate) out += fmt::format(" {:g} Gb/s", nic.rate->value);
    return out;
  }

  // Only bridges above a GPU, NIC or NVSwitch are shown.
  void mark_wanted() {
    for (const auto& device : topology_.pci) {
      if (device.kind != PciKind::gpu && device.kind != PciKind::nic && device.kind != PciKind::nvswitch) continue;
      const PciDevice* at = &device;
      for (int depth = 0; at != nullptr && depth < kMaxDepth && wanted_.insert(at->id).second; ++depth)
        at = at->parent.empty() ? nullptr : by_id(at->parent);
    }
  }

  const PciDevice* by_id(const std::string& id) {
    if (index_.empty()) {
      for (const auto& device : topology_.pci) index_.emplace(device.id, &device);
    }
    const auto at = index_.find(id);
    return at == index_.end() ? nullptr : at->second;
  }

  static std::string node_line(const model::NumaNode& node) {
    std::string out = fmt::format("NUMA node {}", node.id);
    if (node.cpus) out += fmt::format("  CPUs {}", node.cpus->empty() ? "none" : node.cpus->to_list());
    if (node.memory_bytes) out += fmt::format("  {:.1f} GiB", static_cast<double>(*node.memory_bytes) / (1 << 30));
    return out + "\n";
  }

  std::string bridge(const std::string& root) {
    return fmt::format("  host bridge {}\n", printable(root)) + below("root " + root, 2);
  }

  std::string below(const std::string& parent, int depth) {
    std::string out;
    if (depth > kMaxDepth) return out;
    for (const auto* device : children_[parent]) {
      if (!wanted_.contains(device->id) || !shown_.insert(device->id).second) continue;
      out += std::string(static_cast<std::size_t>(depth) * 2, ' ') + what(*device);
      const std::string link = link_of(*device);
      if (!link.empty()) out += (device->current == device->capable || !degraded(*device)) ? "  " + link : "  " + paint("\x1b[33m", link);
      out += "\n" + below(device->id, depth + 1);
    }
    return out;
  }

  static bool degraded(const PciDevice& device) {
    return device.current.width && device.capable.width && *device.current.width < *device.capable.width;
  }

  std::string what(const PciDevice& device) const {
    const auto name = names_.find(device.id);
    const std::string id = printable(device.id);
    if (name != names_.end()) return name->second + "  " + id;
    switch (device.kind) {
      case PciKind::nvswitch: return "NVSwitch  " + id;
      case PciKind::gpu: return "GPU without a number  " + id;
      case PciKind::nic: return "NIC without a number  " + id;
      default: return (device.root_port ? "root port  " : device.pcie_switch_port ? "switch port  " : "bridge  ") + id;
    }
  }

  // Devices that have no place in the PCI tree.
  std::string loose(std::optional<int> node) {
    std::string out;
    const auto placed = [&](const std::optional<std::string>& bdf, const std::string& pci) {
      return bdf && wanted_.contains(pci.empty() ? *bdf : pci);
    };
    for (const auto& gpu : topology_.gpus) {
      if (!placed(gpu.bdf, gpu.pci) && home(gpu.numa) == node) out += "  " + gpu_name(gpu) + "\n";
    }
    for (const auto& nic : topology_.nics) {
      if (!placed(nic.bdf, nic.pci) && home(nic.numa) == node) out += "  " + nic_name(nic) + (nic.is_virtual ? " (virtual)" : "") + "\n";
    }
    return out;
  }

  std::optional<int> home(std::optional<int> numa) const {
    const bool known = numa && std::ranges::find(topology_.numa, *numa, &model::NumaNode::id) != topology_.numa.end();
    return known ? numa : std::nullopt;
  }

  const Topology& topology_;
  bool color_;
  std::map<std::string, std::string> names_;
  std::map<std::string, std::vector<const PciDevice*>> children_;
  std::map<std::string, const PciDevice*> index_;
  std::set<std::string> wanted_, shown_;
};

}  // namespace

std::string tree_text(const Topology& topology, bool color) { return Tree(topology, color).text(); }

}  // namespace topotune::emit
