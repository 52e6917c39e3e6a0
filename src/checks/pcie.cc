// Rules about PCIe links. Linux Documentation/ABI/testing/sysfs-bus-pci (current_link_*, max_link_*).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/bdf.h"
#include "base/text.h"
#include "checks/facts_of.h"
#include "checks/families.h"
#include "checks/readings.h"

namespace topotune::checks {
namespace {

using model::PciDevice;
using model::PciKind;
using model::Topology;

// A GPU or RDMA NIC with the port above it.
struct Endpoint {
  const PciDevice* device = nullptr;
  const PciDevice* port = nullptr;  // null: unknown
  std::string name;
  bool gpu = false;
  const model::Gpu* as_gpu = nullptr;
};

bool links_are_of_a_machine(const Topology& topology) {
  const auto kind = topology.source.kind;
  return kind != model::SourceKind::nccl_topo_xml && kind != model::SourceKind::rccl_topo_xml;
}

// Texts without verbs devices (lspci) do not tell which NICs do RDMA: Mellanox and others by class 0x0207, or
// ConnectX of vendor 15b3.
bool rdma_function(const Topology& topology, const PciDevice& device) {
  const auto nic = std::ranges::find_if(
      topology.nics, [&](const model::Nic& one) { return one.bdf == device.id || one.pci == device.id; });
  if (nic != topology.nics.end() && nic->rdma) return !nic->is_virtual;
  const bool infiniband = device.class_code && (*device.class_code >> 8) == 0x0207;
  constexpr std::uint16_t kMellanox = 0x15b3;
  return infiniband || (device.kind == PciKind::nic && device.vendor == kMellanox);
}

// Management and storage NICs are left out where it is known which NICs carry the job.
std::vector<Endpoint> endpoints(const Evidence& evidence, const model::PciTree& tree) {
  const auto& topology = evidence.machine->topology;
  std::vector<Endpoint> out;
  if (!links_are_of_a_machine(topology)) return out;
  const auto rails = rails_of(evidence);
  std::unordered_set<std::string_view> rail_ids;
  for (const auto* nic : rails.nics) rail_ids.insert(nic->pci.empty() && nic->bdf ? *nic->bdf : nic->pci);
  std::unordered_map<std::string_view, const model::Gpu*> gpus;
  for (const auto& gpu : topology.gpus) gpus.emplace(gpu.pci.empty() && gpu.bdf ? *gpu.bdf : gpu.pci, &gpu);
  for (const auto& device : topology.pci) {
    const bool gpu = device.kind == PciKind::gpu;
    if (!gpu && !rdma_function(topology, device)) continue;
    if (device.virtual_function.value_or(false)) continue;
    if (!gpu && !rail_ids.empty() && !rail_ids.contains(device.id)) continue;
    Endpoint end;
    end.device = &device;
    end.port = device.parent.empty() ? nullptr : tree.find(device.parent);
    end.name = name_of_device(topology, device);
    end.gpu = gpu;
    if (const auto found = gpus.find(device.id); found != gpus.end()) end.as_gpu = found->second;
    out.push_back(std::move(end));
  }
  return out;
}

std::string sysfs(const PciDevice& device, std::string_view file) {
  return device.source.empty() ? fmt::format("/sys/bus/pci/devices/{}/{}", device.id, file) : device.source;
}

std::vector<model::Evidence> link_evidence(const Endpoint& end) {
  std::vector<model::Evidence> out{
      {sysfs(*end.device, "current_link_*"), "current " + link_text(end.device->current)},
      {sysfs(*end.device, "max_link_*"), "capable " + link_text(end.device->capable)}};
  if (end.port != nullptr)
    out.push_back({sysfs(*end.port, "max_link_*"),
                   fmt::format("port {} above: capable {}", end.port->id, link_text(end.port->capable))});
  return out;
}

NotEvaluated no_links() { return NotEvaluated{"PCIe links of GPUs and RDMA NICs: not captured"}; }

std::string unreadable(const Endpoint& end, std::string_view what) {
  return fmt::format("{}: {} unknown", end.name, what);
}

// ---- PCIE01

bool same_kind(const PciDevice& a, const PciDevice& b) {
  return a.vendor && a.device && a.vendor == b.vendor && a.device == b.device;
}

bool sibling_has_full_width(const std::vector<Endpoint>& all, const Endpoint& one) {
  return std::ranges::any_of(all, [&](const Endpoint& other) {
    return other.device != one.device && same_kind(*other.device, *one.device) &&
           other.device->current.width && other.device->current.width >= one.device->capable.width;
  });
}

Outcome check_PCIE01(const Evidence& evidence) {
  const auto& topology = evidence.machine->topology;
  const model::PciTree tree(topology);
  const auto all = endpoints(evidence, tree);
  if (all.empty())
    return lists_devices(evidence.machine->topology) ? Outcome(Clean{"no GPU and no RDMA NIC"})
                                                     : Outcome(no_links());
  const bool in_virtual_machine = evidence.machine->virtual_machine.value.value_or(false);
  Judge judge("PCIE01");
  for (const auto& end : all) {
    const auto now = end.device->current.width, best = end.device->capable.width;
    if (!now || !best) {
      judge.unknown(unreadable(end, "link width"));
      continue;
    }
    if (*now >= *best) continue;
    const auto port = end.port != nullptr ? end.port->capable.width : std::nullopt;
    auto& found = judge.found(end.name, fmt::format("x{}", port ? std::min(*port, *best) : *best),
                              fmt::format("x{}", *now), link_evidence(end));
    if (port && *now >= *port) {
      found.severity = model::Severity::info;  // the slot is narrower by design
      found.expected = fmt::format("x{}, the width of its slot", *port);
    } else if (port && *now * 2 <= *best && sibling_has_full_width(all, end)) {
      found.severity = model::Severity::error;
    } else if (!port && in_virtual_machine && !sibling_has_full_width(all, end)) {
      found.severity = model::Severity::info;  // the host's slot is hidden: cloud cards in x8 slots look so
      found.expected = fmt::format("x{}, unless its slot on the host is narrower", *best);
    }
  }
  return judge.outcome();
}

// ---- PCIE02

bool under_load(const model::Machine& machine, const Endpoint& end) {
  const auto* state = end.as_gpu == nullptr ? nullptr : model::find_state(machine, end.as_gpu->id);
  return state != nullptr && state->utilisation.value_or(0) > 0;
}

std::optional<double> fair_speed(const Endpoint& end) {
  if (!end.device->capable.gts || end.port == nullptr || !end.port->capable.gts) return std::nullopt;
  return std::min(*end.device->capable.gts, *end.port->capable.gts);
}

// Bridges above each NIC whose link to the bridge above them leads to a NIC.
void check_bridges(const model::PciTree& tree, const std::vector<Endpoint>& all, Judge& judge) {
  std::unordered_set<const PciDevice*> seen;
  for (const auto& end : all) {
    if (end.gpu) continue;
    for (const auto* bridge : bridges_above(tree, *end.device)) {
      const auto* port = bridge->parent.empty() ? nullptr : tree.find(bridge->parent);
      if (!seen.insert(bridge).second || port == nullptr || !bridge->current.gts) continue;
      const Endpoint link{bridge, port, bridge->id, false, nullptr};
      const auto fair = fair_speed(link);
      // The inside of a switch is no link: an upstream port above its own downstream ports.
      if (!fair || *bridge->current.gts >= *fair || !bridge->pcie_switch_port || !port->root_port) continue;
      judge.found(bridge->id, fmt::format("{} GT/s", *fair), fmt::format("{} GT/s", *bridge->current.gts),
                  link_evidence(link));
    }
  }
}

Outcome check_PCIE02(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  const model::PciTree tree(machine.topology);
  const auto all = endpoints(evidence, tree);
  if (all.empty())
    return lists_devices(evidence.machine->topology) ? Outcome(Clean{"no GPU and no RDMA NIC"})
                                                     : Outcome(no_links());
  Judge judge("PCIE02");
  for (const auto& end : all) {
    const auto now = end.device->current.gts;
    const auto fair = fair_speed(end);
    const auto upper = fair ? fair : end.device->capable.gts;
    if (!now || !upper) {
      judge.unknown(unreadable(end, "link speed"));
      continue;
    }
    if (*now >= *upper) continue;
    if (end.gpu && !under_load(machine, end)) {
      judge.unknown(end.name + ": idle, and an idle GPU lowers its link; read again under load");
      continue;
    }
    if (!fair) {
      judge.unknown(unreadable(end, "link speed of the port above"));
      continue;
    }
    judge.found(end.name, fmt::format("{} GT/s", *fair), fmt::format("{} GT/s", *now), link_evidence(end));
  }
  check_bridges(tree, all, judge);
  return judge.outcome();
}

// ---- PCIE03

Outcome check_PCIE03(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (!machine.aspm_policy) return missing("pcie_aspm policy", machine.aspm_policy);
  if (*machine.aspm_policy == "performance") return Clean{};
  const model::PciTree tree(machine.topology);
  Judge judge("PCIE03");
  for (const auto& end : endpoints(evidence, tree)) {
    if (!end.device->l1_aspm.value_or(false)) continue;  // the file is there only where the link can do it
    judge.found(
        end.name, "policy performance, or l1_aspm 0",
        fmt::format("policy {}, l1_aspm 1", *machine.aspm_policy),
        {evidence_of(machine.aspm_policy, *machine.aspm_policy), {sysfs(*end.device, "link/l1_aspm"), "1"}});
  }
  return judge.outcome();
}

// ---- PCIE04

// The narrowest link above an endpoint's own, with both ends known.
struct Hop {
  const PciDevice* bridge = nullptr;
  double gbytes = 0;
};

// The link above a bridge: what both of its ends can do.
std::optional<double> link_capacity(const PciDevice& lower, const PciDevice& upper) {
  const auto a = model::bandwidth_of(lower.capable), b = model::bandwidth_of(upper.capable);
  if (!a || !b) return std::nullopt;
  return std::min(a->value, b->value);
}

// A switch's own inside is no link: it is between an upstream port and the downstream ports below it.
bool inside_a_switch(const PciDevice& lower, const PciDevice& upper) {
  return lower.pcie_switch_port && upper.pcie_switch_port && lower.vendor == upper.vendor &&
         lower.device == upper.device && lower.vendor;
}

std::optional<Hop> narrowest_hop(const std::vector<const PciDevice*>& chain) {
  std::optional<Hop> least;
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    if (inside_a_switch(*chain[i], *chain[i + 1])) continue;
    const auto gbytes = link_capacity(*chain[i], *chain[i + 1]);
    if (gbytes && (!least || *gbytes < least->gbytes)) least = Hop{chain[i], *gbytes};
  }
  return least;
}

void check_limited_lines(const Evidence& evidence, Judge& judge) {
  const auto& log = evidence.machine->kernel_log;
  if (!log) return;
  std::unordered_set<std::string> rails;
  for (const auto* nic : rails_of(evidence).nics)
    if (nic->bdf) rails.insert(*nic->bdf);
  for (std::size_t i = 0; i < log->size(); ++i) {
    const auto& line = (*log)[i];
    if (line.find("available PCIe bandwidth, limited by") == std::string::npos) continue;
    std::string device;
    for (const auto word : words(line)) {
      const auto bdf = parse_bdf(word.ends_with(':') ? word.substr(0, word.size() - 1) : word);
      if (bdf && device.empty()) device = bdf->to_string();
    }
    if (device.empty() || !rails.contains(device)) continue;
    judge.found(device, "the bandwidth of its port", "limited by a link above",
                {kernel_line(*evidence.machine, i)});
  }
}

Outcome check_PCIE04(const Evidence& evidence) {
  const auto& topology = evidence.machine->topology;
  const model::PciTree tree(topology);
  const auto all = endpoints(evidence, tree);
  Judge judge("PCIE04");
  check_limited_lines(evidence, judge);
  if (all.empty()) judge.unknown(no_links().why);
  for (const auto& end : all) {
    if (end.port == nullptr) {
      judge.unknown(unreadable(end, "the bridges above"));
      continue;
    }
    const auto own = link_capacity(*end.device, *end.port);
    if (!own) {
      judge.unknown(unreadable(end, "capacity of its own link"));
      continue;
    }
    if (is_on_card_bridge(*end.device, *end.port)) continue;  // its own link is inside the card
    const auto hop = narrowest_hop(bridges_above(tree, *end.device));
    if (!hop || hop->gbytes >= *own * 0.99) continue;
    judge.found(end.name, fmt::format("{:.1f} GB/s, as at the device", *own),
                fmt::format("{:.1f} GB/s above {}", hop->gbytes, hop->bridge->id),
                {{sysfs(*end.device, "max_link_*"),
                  fmt::format("{}: capable {}", end.name, link_text(end.device->capable))},
                 {sysfs(*hop->bridge, "max_link_*"),
                  fmt::format("{}: capable {}", hop->bridge->id, link_text(hop->bridge->capable))}});
  }
  return judge.outcome();
}

// ---- PCIE05

const PciDevice* earlier_device(const Evidence& evidence, const PciDevice& device) {
  return model::find_pci(evidence.before->topology, device.id);
}

// Returns whether both readings have the counters.
bool judge_aer(const Evidence& evidence, const PciDevice& device, Judge& judge) {
  constexpr double kCorrectablePerSecond = 32.0 / 60;
  const auto* before = earlier_device(evidence, device);
  if (before == nullptr || before->aer.empty() || device.aer.empty()) return false;
  for (const char* kind : {"correctable", "nonfatal", "fatal"}) {
    const auto events = rise(value_of(before->aer, kind), value_of(device.aer, kind));
    if (events.value_or(0) == 0) continue;
    const auto rate = per_second(evidence, *events);
    const bool corrected = std::string_view(kind) == "correctable";
    if (corrected && !rate)
      judge.unknown("the time between the readings: unknown (--interval SECONDS tells it)");
    if (corrected && (!rate || *rate <= kCorrectablePerSecond)) continue;
    judge.found(name_of_device(evidence.machine->topology, device),
                corrected ? "at most 32 corrected errors per minute" : fmt::format("no {} error", kind),
                fmt::format("{} {} errors {}", *events, kind, interval_text(evidence)),
                {{sysfs(device, std::string("aer_dev_") + kind),
                  fmt::format("{} -> {}", before->aer.at(kind), device.aer.at(kind))}});
  }
  return true;
}

// A link may replay once in 10^12 bits: per minute as many as lanes x GT/s x 60 / 1000, rounded up.
bool judge_replays(const Evidence& evidence, const model::GpuState& now, Judge& judge) {
  const auto* before = model::find_state(*evidence.before, now.gpu);
  if (before == nullptr || !before->pcie_replays || !now.pcie_replays) return false;
  const auto events = rise(before->pcie_replays, now.pcie_replays);
  const auto* gpu = model::find_gpu(evidence.machine->topology, now.gpu);
  const auto* device =
      gpu != nullptr && gpu->bdf ? model::find_pci(evidence.machine->topology, *gpu->bdf) : nullptr;
  if (events.value_or(0) == 0) return true;
  const auto rate = per_second(evidence, *events);
  if (!rate) {
    judge.unknown("the time between the readings: unknown (--interval SECONDS tells it)");
    return true;
  }
  const double gts = device != nullptr ? device->capable.gts.value_or(32) : 32;
  const double lanes = device != nullptr ? device->capable.width.value_or(16) : 16;
  const double per_minute = std::ceil(gts / 1000 * 60 * lanes);
  if (*rate * 60 <= per_minute) return true;
  judge.found(
      now.gpu, fmt::format("at most {:.0f} replays per minute", per_minute),
      fmt::format("{} replays {}", *events, interval_text(evidence)),
      {{"nvml", fmt::format("PCIe replay counter {} -> {}", *before->pcie_replays, *now.pcie_replays)}});
  return true;
}

Outcome check_PCIE05(const Evidence& evidence) {
  if (const auto why = no_earlier_reading(evidence)) return *why;
  Judge judge("PCIE05");
  bool any = false;
  for (const auto& device : evidence.machine->topology.pci)
    if (device.kind == PciKind::gpu || device.kind == PciKind::nic)
      any = judge_aer(evidence, device, judge) || any;
  for (const auto& state : evidence.machine->gpu_states) any = judge_replays(evidence, state, judge) || any;
  if (!any) judge.unknown("error counters of PCIe devices: not in both readings");
  return judge.outcome();
}

// ---- PCIE06

Outcome check_PCIE06(const Evidence& evidence) {
  const auto& topology = evidence.machine->topology;
  Judge judge("PCIE06");
  bool any = false;
  for (const auto& device : topology.pci) {
    if (!device.config_all_ones || device.virtual_function.value_or(false)) continue;
    any = true;
    const bool asleep = device.power_state.value_or("") == "D3cold";
    if (!*device.config_all_ones || asleep) continue;
    judge.found(name_of_device(topology, device), "its vendor and device id", "0xff in the whole header",
                {{sysfs(device, "config"), "64 bytes of 0xff"}});
  }
  if (!any) judge.unknown("configuration space of the devices: not captured");
  return judge.outcome();
}

// ---- PCIE07

// ConnectX-6 and newer (vendor 15b3): MT4123 is 0x101b.
bool connectx6_or_newer(const PciDevice& device) {
  return device.vendor == 0x15b3 && device.device && *device.device >= 0x101b && *device.device < 0x1100 &&
         *device.device != 0x101c && *device.device != 0x101e;  // their virtual functions
}

Outcome check_PCIE07(const Evidence& evidence) {
  constexpr int kRecommended = 4096;
  const auto& topology = evidence.machine->topology;
  const auto rails = rails_of(evidence);
  const auto is_rail = [&](const PciDevice& device) {
    if (!rails.by_path) return connectx6_or_newer(device);
    return std::ranges::any_of(rails.nics, [&](const model::Nic* nic) { return nic->bdf == device.id; });
  };
  Judge judge("PCIE07");
  bool any = false;
  for (const auto& device : topology.pci) {
    if (device.kind != PciKind::nic || device.virtual_function.value_or(false) || !is_rail(device)) continue;
    any = true;
    if (!device.max_read_request) {
      judge.unknown(fmt::format("{}: {}", name_of_device(topology, device),
                                device.config_why.empty() ? "MaxReadReq not captured" : device.config_why));
      continue;
    }
    if (*device.max_read_request >= kRecommended) continue;
    judge.found(name_of_device(topology, device), "4096 bytes",
                fmt::format("{} bytes", *device.max_read_request),
                {{sysfs(device, "config"), fmt::format("DevCtl MaxReadReq {}", *device.max_read_request)}});
  }
  if (!any && !lists_devices(topology)) judge.unknown("PCI devices: not captured");
  return judge.outcome(any ? "" : "no rail NIC");
}

constexpr Rule kRules[] = {{"PCIE01", check_PCIE01}, {"PCIE02", check_PCIE02}, {"PCIE03", check_PCIE03},
                           {"PCIE04", check_PCIE04}, {"PCIE05", check_PCIE05}, {"PCIE06", check_PCIE06},
                           {"PCIE07", check_PCIE07}};

}  // namespace

std::span<const Rule> pcie_rules() { return kRules; }

}  // namespace topotune::checks
