#include "checks/facts_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace topotune::checks {

model::Finding& Judge::found(std::string subject, std::string expected, std::string observed,
                             std::vector<model::Evidence> evidence) {
  findings_.push_back(
      finding(rule_, std::move(subject), std::move(expected), std::move(observed), std::move(evidence)));
  return findings_.back();
}

void Judge::unknown(std::string why) {
  if (why_.empty()) why_ = std::move(why);
}

Outcome Judge::outcome(std::string clean_why) {
  if (!findings_.empty()) return std::move(findings_);
  if (!why_.empty()) return NotEvaluated{std::move(why_)};
  return Clean{std::move(clean_why)};
}

std::vector<model::Path> paths_in(const Evidence& evidence) {
  return evidence.paths != nullptr ? *evidence.paths : model::paths_of(evidence.machine->topology);
}

const model::RdmaPort* port_of(const model::Machine& machine, const model::Nic& nic) {
  const auto found = std::ranges::find_if(machine.ports, [&](const model::RdmaPort& port) {
    if (nic.port && *nic.port != port.port) return false;
    return nic.name && *nic.name == port.device;
  });
  return found == machine.ports.end() ? nullptr : &*found;
}

std::vector<const model::PciDevice*> bridges_above(const model::PciTree& tree,
                                                   const model::PciDevice& device) {
  std::vector<const model::PciDevice*> chain;
  for (const auto* at = &device; !at->parent.empty() && chain.size() < model::PciTree::kMaxDepth;) {
    at = tree.find(at->parent);
    if (at == nullptr || at == &device || std::ranges::find(chain, at) != chain.end()) break;
    chain.push_back(at);
  }
  return chain;
}

std::string name_of_device(const model::Topology& topology, const model::PciDevice& device) {
  const auto is = [&](const auto& one) { return one.bdf == device.id || one.pci == device.id; };
  const auto gpu = std::ranges::find_if(topology.gpus, is);
  if (gpu != topology.gpus.end()) return gpu->id;
  const auto nic = std::ranges::find_if(topology.nics, is);
  return nic != topology.nics.end() ? name_of(*nic) : device.id;
}

std::string name_of(const model::Nic& nic) { return nic.name.value_or(nic.id); }

std::optional<int> nodes_with_cpus(const model::Topology& topology) {
  if (topology.numa.empty()) return std::nullopt;
  const auto count = static_cast<int>(std::ranges::count_if(
      topology.numa, [](const model::NumaNode& node) { return !node.cpus || !node.cpus->empty(); }));
  const auto kind = topology.source.kind;
  const bool whole = kind == model::SourceKind::live || kind == model::SourceKind::capture ||
                     kind == model::SourceKind::hwloc_xml || !topology.numa.front().distances.empty();
  if (count < 2 && !whole) return std::nullopt;
  return count;
}

bool lists_devices(const model::Topology& topology) {
  const auto kind = topology.source.kind;
  if (kind == model::SourceKind::nccl_topo_xml || kind == model::SourceKind::rccl_topo_xml) return false;
  const bool live = kind == model::SourceKind::live || kind == model::SourceKind::capture;
  return topology.tree_known && (live || !topology.pci.empty());
}

bool is_on_card_bridge(const model::PciDevice& gpu, const model::PciDevice& bridge) {
  constexpr std::uint16_t kAti = 0x1002, kAmd = 0x1022;
  return gpu.vendor == kAti && !bridge.root_port && !bridge.parent.empty() &&
         (bridge.vendor == kAti || bridge.vendor == kAmd);
}

bool is_rdma_hardware(const model::Nic& nic) { return nic.rdma && !nic.is_virtual; }

namespace {

constexpr double kRailGbits = 100;

std::set<std::string> near_nics(const std::vector<model::Path>& paths, const model::Topology& topology) {
  std::set<std::string> gpus;
  for (const auto& gpu : topology.gpus) gpus.insert(gpu.id);
  std::set<std::string> near;
  for (const auto& path : paths) {
    if (path.type != model::PathType::pix && path.type != model::PathType::pxb &&
        path.type != model::PathType::c2c)
      continue;
    if (gpus.contains(path.a) && !gpus.contains(path.b)) near.insert(path.b);
    if (gpus.contains(path.b) && !gpus.contains(path.a)) near.insert(path.a);
  }
  return near;
}

// A matrix names NICs without telling that they do RDMA; nvidia-smi lists verbs devices only.
bool may_be_rail(const model::Topology& topology, const model::Nic& nic) {
  return !nic.is_virtual && (nic.rdma || topology.source.kind == model::SourceKind::nvidia_smi_topo);
}

void add_by_rate(const model::Machine& machine, Rails& rails) {
  std::set<std::string> fast;
  for (const auto& port : machine.ports) {
    const bool idle = port.state && *port.state != "ACTIVE";
    if (!port.gbits_per_s && !idle && !is_software(port) && rails.unknown.empty())
      rails.unknown = name_of_port(port) + ": neither its rate nor its path to a GPU is told";
    if (port.gbits_per_s.value_or(0) < kRailGbits) continue;
    rails.ports.push_back(&port);
    fast.insert(port.device);
  }
  for (const auto& nic : machine.topology.nics)
    if (is_rdma_hardware(nic) && (fast.contains(name_of(nic)) || (nic.rate && nic.rate->value >= kRailGbits)))
      rails.nics.push_back(&nic);
}

}  // namespace

Rails rails_of(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  Rails rails;
  const auto near = near_nics(paths_in(evidence), machine.topology);
  std::set<std::string> devices;
  for (const auto& nic : machine.topology.nics) {
    if (!near.contains(nic.id) || !may_be_rail(machine.topology, nic)) continue;
    rails.nics.push_back(&nic);
    devices.insert(name_of(nic));
  }
  rails.by_path = !rails.nics.empty();
  if (!rails.by_path) {
    add_by_rate(machine, rails);
    return rails;
  }
  for (const auto& port : machine.ports)
    if (devices.contains(port.device)) rails.ports.push_back(&port);
  for (const auto* port : rails.ports) devices.erase(port->device);
  if (!devices.empty() && !machine.ports.empty())
    rails.unknown = fmt::format("{}: its port was not captured", *devices.begin());
  return rails;
}

std::vector<const model::RdmaPort*> active_rails(const Evidence& evidence, std::string_view layer,
                                                 Judge& judge) {
  std::vector<const model::RdmaPort*> out;
  const auto rails = rails_of(evidence);
  for (const auto* port : rails.ports) {
    const bool idle = port->state && *port->state != "ACTIVE";
    const bool other = !layer.empty() && port->link_layer && *port->link_layer != layer;
    if (is_software(*port) || idle || other) continue;
    if (!port->state)
      judge.unknown(name_of_port(*port) + ": state unknown");
    else if (!layer.empty() && !port->link_layer)
      judge.unknown(name_of_port(*port) + ": link layer unknown");
    else
      out.push_back(port);
  }
  if (!rails.unknown.empty()) judge.unknown(rails.unknown);
  return out;
}

std::string name_of_port(const model::RdmaPort& port) {
  return port.port == 1 ? port.device : fmt::format("{} port {}", port.device, port.port);
}

bool is_software(const model::RdmaPort& port) {
  return port.software.value_or(port.device.starts_with("rxe") || port.device.starts_with("siw"));
}

bool may_hide_paths(const model::Machine& machine) {
  return machine.virtual_machine.value.value_or(false) || machine.container.value.value_or(false);
}

bool version_at_least(std::string_view version, std::string_view floor) {
  const auto numbers = [](std::string_view text) {
    std::vector<int> out;
    for (const auto part : split(text, '.')) {
      const auto digits = part.substr(0, part.find_first_not_of("0123456789"));
      const auto value = parse_int<int>(digits);
      if (!value) break;
      out.push_back(*value);
    }
    return out;
  };
  auto a = numbers(version), b = numbers(floor);
  if (a.empty()) return false;
  const auto size = std::max(a.size(), b.size());
  a.resize(size);
  b.resize(size);
  return a >= b;
}

model::Evidence kernel_line(const model::Machine& machine, std::size_t i) {
  const auto& sources = machine.kernel_log_sources;
  return {i < sources.size() ? sources[i] : machine.kernel_log.source, (*machine.kernel_log)[i]};
}

std::string nccl_version_of(const Evidence& evidence) {
  if (!evidence.nccl_version.empty()) return evidence.nccl_version;
  return evidence.machine->nccl.value.value_or("");
}

std::string link_text(const model::PcieLink& link) {
  const auto width = link.width ? fmt::format("x{}", *link.width) : std::string("width unknown");
  return link.gts ? fmt::format("{} at {} GT/s", width, *link.gts) : width;
}

}  // namespace topotune::checks
