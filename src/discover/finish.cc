// What only all texts together tell: where NVLinks lead, and the CPUs near each GPU.
#include <algorithm>
#include <set>

#include "discover/merger.h"

namespace topotune::discover {
namespace {

// A GPU has at most 18 links: an end with a higher number is a port of an NVSwitch.
constexpr int kFirstSwitchPort = 18;

std::set<std::string> switches_of(const Merger& merger) {
  std::set<std::string> out;
  for (const auto& one : merger.machine.topology.switches) {
    if (one.kind == "nvswitch") out.insert(one.bdf);
  }
  for (const auto& [gpu, far] : merger.far_ends) {
    for (const auto& end : far.ends) {
      if (!end.bdf.empty() && end.link.value_or(0) >= kFirstSwitchPort) out.insert(end.bdf);
    }
  }
  return out;
}

// The id of a far end: a GPU's, a switch's address, or "" when it cannot be told.
std::string target_of(const model::Topology& topology, const std::set<std::string>& switches,
                      const std::string& bdf) {
  if (bdf.empty()) return {};
  const auto at = std::ranges::find(topology.gpus, bdf, &model::Gpu::bdf);
  if (at != topology.gpus.end()) return at->id;
  return switches.contains(bdf) ? bdf : std::string();
}

// A list that is cut off tells that the two are joined, not by how many links.
void add_link(model::Gpu& gpu, const std::string& to, bool counted) {
  const auto at = std::ranges::find(gpu.links, to, &model::NvLinkGroup::to);
  if (at == gpu.links.end()) {
    gpu.links.push_back({to, 1, false, {}, counted});
  } else if (counted) {
    ++at->count;
  }
}

void set_speeds(model::Gpu& gpu) {
  if (gpu.link_speeds.empty()) return;
  const auto slowest =
      std::ranges::min_element(gpu.link_speeds, {}, [](const auto& s) { return s.second.value; });
  for (auto& group : gpu.links) {
    if (!group.per_link) group.per_link = slowest->second;
  }
}

void add_switches(model::Topology& topology, const std::set<std::string>& switches) {
  for (const auto& bdf : switches) {
    if (std::ranges::find(topology.switches, bdf, &model::PciSwitch::bdf) == topology.switches.end())
      topology.switches.push_back({bdf, bdf, "nvswitch"});
  }
}

const model::NumaNode* node_of(const model::Topology& topology, int id) {
  const auto at = std::ranges::find(topology.numa, id, &model::NumaNode::id);
  return at == topology.numa.end() ? nullptr : &*at;
}

}  // namespace

void finish_nvlinks(Merger& merger) {
  auto& topology = merger.machine.topology;
  const auto switches = switches_of(merger);
  add_switches(topology, switches);
  for (std::size_t i = 0; i < topology.gpus.size(); ++i) {
    auto& gpu = topology.gpus[i];
    const auto ends = merger.far_ends.find(i);
    if (gpu.links.empty() && ends != merger.far_ends.end()) {
      const auto& far = ends->second;
      for (const auto& end : far.ends) add_link(gpu, target_of(topology, switches, end.bdf), !far.cut);
      if (!gpu.nvlinks && !far.cut && !far.ends.empty()) gpu.nvlinks = static_cast<int>(far.ends.size());
    }
    // Links of which no text tells the far end: which pairs they join stays unknown.
    if (gpu.links.empty() && gpu.nvlinks.value_or(0) > 0)
      gpu.links.push_back({"", *gpu.nvlinks, false, {}, true});
    set_speeds(gpu);
  }
}

void finish_numa(Merger& merger) {
  auto& topology = merger.machine.topology;
  std::ranges::stable_sort(topology.numa, {}, &model::NumaNode::id);
  for (auto& gpu : topology.gpus) {
    const auto* node = gpu.numa && !gpu.cpus ? node_of(topology, *gpu.numa) : nullptr;
    if (node) gpu.cpus = node->cpus;
  }
  for (auto& nic : topology.nics) {
    const auto at = nic.bdf && !nic.numa ? std::ranges::find(topology.pci, *nic.bdf, &model::PciDevice::id)
                                         : topology.pci.end();
    if (at != topology.pci.end()) nic.numa = at->numa;
  }
}

}  // namespace topotune::discover
