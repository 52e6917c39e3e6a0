#include "discover/merge_pci.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "parse/lspci_tree.h"

namespace topotune::discover {
namespace {

using model::PciKind;
using parse::LspciDevice;

template <class T>
void take(std::optional<T>& to, const std::optional<T>& from) {
  if (!to && from) to = from;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// "AD102GL [RTX 6000 Ada Generation]": NVIDIA's chips since Kepler are named by two letters and a number.
bool names_nvidia_chip(std::string_view name) {
  for (const auto word : words(name)) {
    static constexpr std::string_view kFamilies[] = {"GK", "GM", "GP", "GV", "TU", "GA", "AD", "GH", "GB"};
    const bool family =
        std::ranges::any_of(kFamilies, [&](std::string_view f) { return word.starts_with(f); });
    if (family && word.size() >= 4 && is_digit(word[2]) && is_digit(word[3])) return true;
  }
  return false;
}

// AMD's cards by their chips' names in pci.ids: the graphics of its processors have other names, and lower
// device ids than every chip with compute units since GCN (as parse::kind_of has it).
bool is_amd_card(const LspciDevice& device) {
  constexpr std::uint16_t kFirstCard = 0x6600;
  if (device.vendor != 0x1002) return false;
  if (device.device) return *device.device >= kFirstCard || has(device.name, "Instinct");
  for (const std::string_view chip :
       {"Instinct", "Vega 10", "Vega 20", "Arcturus", "Aldebaran", "Aqua Vanjaram", "Navi ", "Fiji",
        "Ellesmere", "Baffin", "Hawaii", "Tonga"}) {
    if (has(device.name, chip)) return !has(device.name, "Audio");
  }
  return false;
}

PciKind kind_by_name(const LspciDevice& device) {
  const std::string_view name = device.name;
  if (device.vendor == 0x10de) {
    if (has(name, "NVSwitch") || has(name, "Device 1af1") || has(name, "Device 22a3"))
      return PciKind::nvswitch;
    for (const std::string_view other : {"Audio", "USB", "UCSI", "Serial", "Bridge"}) {
      if (has(name, other)) return PciKind::other;
    }
    return names_nvidia_chip(name) ? PciKind::gpu : PciKind::other;
  }
  if (!device.device && is_amd_card(device)) return PciKind::gpu;
  if (device.vendor == 0x15b3 && (has(name, "[ConnectX") || has(name, "network controller")))
    return PciKind::nic;
  return has(name, "Ethernet Controller") || has(name, "Ethernet controller") ? PciKind::nic : PciKind::other;
}

// What lspci's device and the topology's have in common.
template <class To>
void take_facts(To& to, const LspciDevice& from) {
  take(to.class_code, from.class_code);
  take(to.vendor, from.vendor);
  take(to.device, from.device);
  take(to.subsystem_vendor, from.subsystem_vendor);
  take(to.subsystem_device, from.subsystem_device);
  take(to.current.gts, from.current.gts);
  take(to.current.width, from.current.width);
  take(to.capable.gts, from.capable.gts);
  take(to.capable.width, from.capable.width);
  take(to.acs_capability, from.acs_capability);
  take(to.acs_control, from.acs_control);
  take(to.max_read_request, from.max_read_request);
  take(to.max_payload, from.max_payload);
  take(to.ats_enabled, from.ats_enabled);
  take(to.driver, from.driver);
}

// Takes what `from` knows more than `to`.
void merge_device(LspciDevice& to, const LspciDevice& from) {
  if (to.name.empty()) to.name = from.name;
  if (to.class_name.empty()) to.class_name = from.class_name;
  if (to.port_type.empty()) to.port_type = from.port_type;
  take_facts(to, from);
  take(to.secondary, from.secondary);
  take(to.subordinate, from.subordinate);
  take(to.numa, from.numa);
  to.all_ones |= from.all_ones;
  to.denied |= from.denied;
}

PciSeen& seen(Merger& merger, const Bdf& bdf, const std::string& source) {
  auto& entry = merger.pci[bdf];
  if (entry.source.empty()) {
    entry.source = source;
    entry.device.bdf = bdf;
  }
  return entry;
}

bool is_bridge_class(const LspciDevice& device) {
  return device.class_code && *device.class_code >> 8 == 0x0604;
}

// ---- the tree

using BusKey = std::pair<std::uint32_t, int>;  // domain, bus

std::map<BusKey, Bdf> bridges_by_bus(const std::map<Bdf, PciSeen>& pci) {
  std::map<BusKey, Bdf> out;
  for (const auto& [bdf, entry] : pci) {
    const auto secondary = entry.device.secondary;
    // Buses below a bridge have higher numbers: what says otherwise cannot be a tree.
    if (secondary && *secondary > bdf.bus) out.try_emplace({bdf.domain, *secondary}, bdf);
  }
  return out;
}

std::optional<Bdf> parent_of(const std::map<BusKey, Bdf>& bridges, const Bdf& bdf, const PciSeen& entry) {
  if (entry.in_tree) return entry.parent;
  const auto at = bridges.find({bdf.domain, bdf.bus});
  return at == bridges.end() ? std::nullopt : std::optional(at->second);
}

std::string root_of(const std::map<Bdf, PciSeen>& pci, const std::map<BusKey, Bdf>& bridges, Bdf bdf) {
  for (int depth = 0; depth < 256; ++depth) {
    const auto at = pci.find(bdf);
    if (at == pci.end()) break;
    if (!at->second.root.empty()) return at->second.root;
    const auto parent = parent_of(bridges, bdf, at->second);
    if (!parent) break;
    bdf = *parent;
  }
  return fmt::format("{:04x}:{:02x}", bdf.domain, bdf.bus);
}

bool is_end(PciKind kind) {
  return kind == PciKind::gpu || kind == PciKind::nic || kind == PciKind::nvswitch;
}

// ---- into the topology

void fill_details(model::PciDevice& to, const PciSeen& entry) {
  const auto& from = entry.device;
  take_facts(to, from);
  if (from.numa && *from.numa >= 0) take(to.numa, from.numa);
  if (from.all_ones) to.config_all_ones = true;
  if (from.denied) to.config_why = "denied";
  if (!to.name && !from.name.empty()) to.name = from.name;
  if (has(from.name, "Virtual Function")) to.virtual_function = true;
  to.root_port |= from.port_type == "Root Port";
  to.pcie_switch_port |= from.port_type == "Upstream Port" || from.port_type == "Downstream Port";
  if (to.source.empty()) to.source = entry.source;
}

bool in_topology(const PciSeen& entry, PciKind kind) {
  return kind != PciKind::other || entry.device.all_ones;
}

struct Place {
  std::string parent, root;
  bool inferred = false;
};

void put(model::Topology& topology, std::unordered_map<std::string, std::size_t>& places,
         const std::string& id, const PciSeen& entry, const Place& place, bool keep_tree) {
  const auto kind = kind_of(entry.device, entry.is_bridge);
  const auto at = places.find(id);
  if (at == places.end() && (keep_tree || !in_topology(entry, kind))) return;
  if (at == places.end()) {
    places.emplace(id, topology.pci.size());
    topology.pci.emplace_back();
    topology.pci.back().id = id;
    topology.pci.back().kind = kind;
  }
  auto& device = topology.pci[places.at(id)];
  if (!keep_tree) {
    device.parent = place.parent;
    device.root = place.root;
    device.parent_inferred = place.inferred;
  }
  fill_details(device, entry);
}

// A bridge directly on a root bus is a root port; ports below one belong to switches (lspci -t does not print
// it).
void mark_ports(model::Topology& topology, const std::map<Bdf, PciSeen>& pci) {
  for (auto& device : topology.pci) {
    if (device.kind != PciKind::bridge || device.root_port || device.pcie_switch_port) continue;
    const auto bdf = parse_bdf(device.id);
    const auto at = bdf ? pci.find(*bdf) : pci.end();
    if (at == pci.end() || !at->second.device.port_type.empty()) continue;
    (device.parent.empty() ? device.root_port : device.pcie_switch_port) = true;
  }
}

void add_switches(model::Topology& topology) {
  std::set<std::string> known;
  for (const auto& one : topology.switches) known.insert(one.bdf);
  for (const auto& device : topology.pci) {
    const bool is_switch = device.kind == PciKind::nvswitch;
    if (is_switch && known.insert(device.id).second)
      topology.switches.push_back({device.id, device.id, "nvswitch"});
  }
  std::set<std::string> parents;
  for (const auto& device : topology.pci) {
    if (device.kind == PciKind::bridge && device.pcie_switch_port && !device.parent.empty())
      parents.insert(device.parent);
  }
  // The upstream port of a switch is the one below which further ports of a switch stand.
  for (const auto& device : topology.pci) {
    if (device.pcie_switch_port && parents.contains(device.id) && known.insert(device.id).second)
      topology.switches.push_back({device.id, device.id, "pcie"});
  }
}

// ---- GPUs

// NVML numbers GPUs in order of address: as many GPUs without address as lspci has others are the same ones.
void join_gpus(Merger& merger, const std::vector<const model::PciDevice*>& found) {
  auto& gpus = merger.machine.topology.gpus;
  std::set<std::string> known;
  std::vector<std::size_t> without;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].bdf) known.insert(*gpus[i].bdf);
    if (!gpus[i].bdf) without.push_back(i);
  }
  std::vector<const model::PciDevice*> fresh;
  for (const auto* device : found) {
    if (!known.contains(device->id)) fresh.push_back(device);
  }
  if (!without.empty()) {
    if (without.size() != fresh.size()) return;
    std::ranges::sort(without, {}, [&](std::size_t i) { return gpus[i].index; });
    for (std::size_t i = 0; i < without.size(); ++i) gpus[without[i]].bdf = fresh[i]->id;
    return;
  }
  if (merger.gpus_listed) return;  // the driver does not have them (GPU01)
  for (const auto* device : fresh) merger.gpu_for({device->id, {}, {}, device->name});
}

void fill_gpus(Merger& merger, const std::unordered_map<std::string, std::size_t>& places) {
  auto& topology = merger.machine.topology;
  for (auto& gpu : topology.gpus) {
    const auto at = gpu.bdf ? places.find(*gpu.bdf) : places.end();
    if (at == places.end()) continue;
    const auto& device = topology.pci[at->second];
    take(gpu.numa, device.numa);
    take(gpu.pci_vendor, device.vendor);
    take(gpu.pci_device, device.device);
    take(gpu.name, device.name);
  }
}

void list_nvidia_gpus(Merger& merger, const std::vector<const model::PciDevice*>& gpus) {
  std::vector<std::string> nvidia;
  for (const auto* gpu : gpus) {
    if (gpu->vendor == 0x10de) nvidia.push_back(gpu->id);
  }
  if (merger.pci.empty() || merger.machine.nvidia_pci_gpus.known()) return;
  const auto& first = merger.pci.begin()->second.source;
  merger.machine.nvidia_pci_gpus =
      model::Fact<std::vector<std::string>>::of(std::move(nvidia), first.substr(0, first.rfind(':')));
}

}  // namespace

PciKind kind_of(const LspciDevice& device, bool is_bridge) {
  if (is_bridge || is_bridge_class(device)) return PciKind::bridge;
  if (!device.class_code) return kind_by_name(device);
  const auto code = *device.class_code >> 8;
  if (code == 0x0600) return PciKind::host_bridge;
  if (device.vendor == 0x10de && (code == 0x0300 || code == 0x0302)) return PciKind::gpu;
  if (device.vendor == 0x10de && code == 0x0680) return PciKind::nvswitch;
  if (device.vendor == 0x1002 && (code == 0x1200 || code == 0x0380)) return PciKind::gpu;
  if (code >> 8 == 0x03 && is_amd_card(device)) return PciKind::gpu;
  return code >> 8 == 0x02 ? PciKind::nic : PciKind::other;
}

bool infer_secondary_buses(std::map<Bdf, PciSeen>& pci) {
  std::map<BusKey, std::vector<Bdf>> bridges;  // by the bus that they sit on, in order of address
  std::set<BusKey> ends;                       // buses with a GPU, NIC or NVSwitch
  for (const auto& [bdf, entry] : pci) {
    if (entry.device.secondary) return false;
    const auto kind = kind_of(entry.device, entry.is_bridge);
    if (kind == PciKind::bridge) bridges[{bdf.domain, bdf.bus}].push_back(bdf);
    if (is_end(kind)) ends.insert({bdf.domain, bdf.bus});
  }
  std::map<Bdf, int> secondary;
  std::set<BusKey> reached;
  // Buses in ascending order: a bus that no bridge before it took is a root bus. The stack holds bridges to
  // visit.
  for (const auto& [key, on_bus] : bridges) {
    if (reached.contains(key)) continue;
    int next = key.second + 1;
    std::vector<Bdf> stack(on_bus.rbegin(), on_bus.rend());
    while (!stack.empty() && next <= 255) {
      const auto bridge = stack.back();
      stack.pop_back();
      const BusKey below{key.first, next};
      secondary[bridge] = next++;
      reached.insert(below);
      const auto at = bridges.find(below);
      if (at != bridges.end()) stack.insert(stack.end(), at->second.rbegin(), at->second.rend());
    }
  }
  if (secondary.empty() || !std::ranges::includes(reached, ends)) return false;
  for (const auto& [bdf, bus] : secondary) pci.at(bdf).device.secondary = bus;
  return true;
}

tl::expected<void, Error> merge_lspci(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_lspci(piece.text);
  if (!text) return tl::unexpected(text.error());
  for (const auto& device : text->devices) {
    auto& entry = seen(merger, device.bdf, piece.at(device.line));
    merge_device(entry.device, device);
  }
  for (const auto& line : text->loose_acs)
    merger.machine.loose_acs.push_back({piece.at(line.line), line.text, line.control});
  return {};
}

tl::expected<void, Error> merge_lspci_tree(Merger& merger, const Piece& piece) {
  const auto nodes = parse::parse_lspci_tree(piece.text);
  if (!nodes) return tl::unexpected(nodes.error());
  for (const auto& node : *nodes) {
    auto& entry = seen(merger, node.bdf, piece.at(node.line));
    LspciDevice device;
    device.name = node.name;
    device.vendor = parse::vendor_of_name(node.name);
    device.device = parse::device_of_name(node.name);
    device.secondary = node.secondary;
    device.subordinate = node.subordinate;
    merge_device(entry.device, device);
    entry.in_tree = true;
    entry.is_bridge |= node.bridge;
    entry.root = node.root;
    if (node.parent) entry.parent = (*nodes)[*node.parent].bdf;
  }
  return {};
}

void finish_pci(Merger& merger) {
  if (merger.pci.empty()) return;
  auto& topology = merger.machine.topology;
  const bool keep_tree = topology.tree_known;
  const bool inferred = !keep_tree && infer_secondary_buses(merger.pci);
  if (inferred)
    merger.warn("tree-inferred",
                "lspci does not print what is behind each bridge: the PCI tree follows from the order of bus "
                "numbers");
  const auto bridges = bridges_by_bus(merger.pci);
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < topology.pci.size(); ++i) places.emplace(topology.pci[i].id, i);
  bool whole = !bridges.empty();  // every GPU and NIC is below a known bridge
  for (const auto& [bdf, entry] : merger.pci) {
    const auto parent = parent_of(bridges, bdf, entry);
    const auto kind = kind_of(entry.device, entry.is_bridge);
    if ((kind == PciKind::gpu || kind == PciKind::nic) && !parent && !entry.in_tree) whole = false;
    put(topology, places, bdf.to_string(), entry,
        {parent ? parent->to_string() : "", root_of(merger.pci, bridges, bdf), inferred && parent},
        keep_tree);
  }
  topology.tree_known |= whole;
  if (!keep_tree) mark_ports(topology, merger.pci);
  add_switches(topology);
  std::vector<const model::PciDevice*> gpus;
  for (const auto& device : topology.pci) {
    if (device.kind == PciKind::gpu) gpus.push_back(&device);
  }
  std::ranges::sort(gpus, {}, [](const model::PciDevice* d) { return parse_bdf(d->id).value_or(Bdf{}); });
  list_nvidia_gpus(merger, gpus);
  join_gpus(merger, gpus);
  fill_gpus(merger, places);
}

}  // namespace topotune::discover
