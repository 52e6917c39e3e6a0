// Rules about ACS, the IOMMU and ATS. PCIe Base Specification: ACS Control Register (extended capability
// 0x000D, offset 6); NCCL user guide, troubleshooting.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "checks/facts_of.h"
#include "checks/families.h"

namespace topotune::checks {
namespace {

using model::PathType;
using model::PciDevice;

constexpr unsigned kSrcValid = 0x01, kReqRedir = 0x04, kCmpltRedir = 0x08, kUpstreamFwd = 0x10,
                   kDirectTrans = 0x40;

bool redirects(std::uint16_t control) { return (control & (kReqRedir | kCmpltRedir)) != 0; }

std::string bits_of(std::uint16_t control) {
  const auto bit = [&](const char* name, unsigned mask) {
    return fmt::format("{}{}", name, (control & mask) != 0 ? '+' : '-');
  };
  return fmt::format("ACSCtl 0x{:04x}: {} {} {} {} {}", control, bit("SrcValid", kSrcValid),
                     bit("ReqRedir", kReqRedir), bit("CmpltRedir", kCmpltRedir),
                     bit("UpstreamFwd", kUpstreamFwd), bit("DirectTrans", kDirectTrans));
}

// How a bridge lies on the way between two devices, worst first.
enum class Place { below_switch, root_of_pair, nvlink_pair };

struct OnPath {
  Place place = Place::nvlink_pair;
  std::string pair;
};
using Bridges = std::map<const PciDevice*, OnPath>;

struct End {
  std::string id;
  model::Route route;
  const model::Gpu* gpu = nullptr;  // null: a NIC
};

// Two GPUs whose traffic goes over NVLink. Unknown links of a model whose board connects them count as
// joined: the milder reading.
bool joined_by_links(const End& a, const End& b,
                     const std::map<std::pair<std::string, std::string>, PathType>& types) {
  if (a.gpu == nullptr || b.gpu == nullptr) return false;
  const auto found = types.find(std::minmax(a.id, b.id));
  if (found != types.end() && found->second <= PathType::c2c) return true;
  if (a.gpu->nvlinks || b.gpu->nvlinks || !a.gpu->links.empty()) return false;
  const auto *x = known_gpu(*a.gpu), *y = known_gpu(*b.gpu);
  return x != nullptr && y != nullptr && x->wiring == Wiring::board && y->wiring == Wiring::board;
}

void note(Bridges& bridges, const PciDevice* bridge, Place place, const std::string& pair) {
  const auto [at, fresh] = bridges.try_emplace(bridge, OnPath{place, pair});
  if (!fresh && place < at->second.place) at->second = {place, pair};
}

void add_pair(Bridges& bridges, const End& a, const End& b, bool linked) {
  const auto shared = model::shared_bridges(a.route.up, b.route.up);
  const auto pair = a.id + "-" + b.id;
  for (const auto* route : {&a.route, &b.route}) {
    if (shared == 0) {
      if (!route->up.empty())
        note(bridges, route->up.back(), linked ? Place::nvlink_pair : Place::root_of_pair, pair);
      continue;
    }
    for (std::size_t i = 0; i + shared < route->up.size(); ++i)
      note(bridges, route->up[i], linked ? Place::nvlink_pair : Place::below_switch, pair);
  }
}

// The NICs whose GPUDirect traffic matters to a GPU: those of its best path class.
std::set<std::pair<std::string, std::string>> best_pairs(const Evidence& evidence) {
  std::set<std::pair<std::string, std::string>> out;
  for (const auto& group : model::pairs_of(evidence.machine->topology, *evidence.paths))
    for (const auto& nic : group.nics) out.emplace(group.gpu, nic);
  return out;
}

std::vector<End> ends_of(const Evidence& evidence, const model::PciTree& tree) {
  std::vector<End> ends;
  for (const auto& gpu : evidence.machine->topology.gpus)
    if (ends.size() < model::kMaxPathDevices) ends.push_back({gpu.id, tree.route_to(gpu), &gpu});
  const auto rails = rails_of(evidence);
  for (const auto& nic : evidence.machine->topology.nics) {
    const bool mellanox = nic.bdf && tree.find(*nic.bdf) != nullptr && tree.find(*nic.bdf)->vendor == 0x15b3;
    const bool rail =
        std::ranges::find(rails.nics, &nic) != rails.nics.end() || (rails.nics.empty() && mellanox);
    if (rail && ends.size() < model::kMaxPathDevices) ends.push_back({nic.id, tree.route_to(nic), nullptr});
  }
  std::erase_if(ends, [](const End& end) { return end.route.device == nullptr; });
  return ends;
}

Bridges bridges_on_paths(const Evidence& evidence, const std::vector<End>& ends) {
  std::map<std::pair<std::string, std::string>, PathType> types;
  for (const auto& path : *evidence.paths)
    if (path.type) types[std::minmax(path.a, path.b)] = *path.type;
  const auto best = best_pairs(evidence);
  Bridges bridges;
  for (std::size_t i = 0; i < ends.size(); ++i)
    for (std::size_t j = i + 1; j < ends.size(); ++j) {
      const auto &a = ends[i], &b = ends[j];
      if (a.gpu == nullptr) continue;  // NIC to NIC
      const bool far = model::shared_bridges(a.route.up, b.route.up) == 0;
      if (b.gpu == nullptr && far && !best.contains({a.id, b.id})) continue;
      add_pair(bridges, a, b, joined_by_links(a, b, types));
    }
  return bridges;
}

// Ends translate by themselves: the redirect is then how the system is meant to work (Grace).
bool direct_translated(const PciDevice& bridge, const std::vector<End>& ends) {
  if ((*bridge.acs_control & kDirectTrans) == 0) return false;
  bool any = false;
  for (const auto& end : ends) {
    if (std::ranges::find(end.route.up, &bridge) == end.route.up.end()) continue;
    any = true;
    if (!end.route.device->ats_enabled.value_or(false)) return false;
  }
  return any;
}

// A physical switch proves bare metal: hypervisors emulate others (QEMU: Red Hat and TI).
bool is_hardware_switch(const PciDevice& bridge) {
  constexpr std::uint16_t kPlx = 0x10b5, kBroadcom = 0x1000, kMicrochip = 0x11f8, kMellanox = 0x15b3;
  return bridge.vendor == kPlx || bridge.vendor == kBroadcom || bridge.vendor == kMicrochip ||
         bridge.vendor == kMellanox;
}

bool config_was_read(const model::Topology& topology) {
  return std::ranges::any_of(topology.pci, [](const PciDevice& device) {
    return device.acs_control || device.acs_capability || device.max_read_request;
  });
}

std::string why_no_config(const model::Topology& topology) {
  const auto said =
      std::ranges::find_if(topology.pci, [](const PciDevice& d) { return !d.config_why.empty(); });
  return "configuration space of the bridges: " +
         (said == topology.pci.end() ? "not captured" : said->config_why);
}

model::Severity severity_of(const Evidence& evidence, const PciDevice& bridge, Place place) {
  if (place == Place::nvlink_pair) return model::Severity::info;
  if (place == Place::root_of_pair) return model::Severity::warn;
  const bool bare = evidence.machine->virtual_machine.known() || is_hardware_switch(bridge);
  return bare && !bridge.parent_inferred ? model::Severity::error : model::Severity::warn;
}

const char* words_of(Place place) {
  if (place == Place::below_switch) return "below their common switch, on the path of";
  return place == Place::root_of_pair ? "root port on the path of" : "beside the NVLinks of";
}

void judge_bridge(const Evidence& evidence, const PciDevice& bridge, const OnPath& on, Judge& judge) {
  const auto control = *bridge.acs_control;
  const bool redirect = redirects(control);
  if (!redirect && (control & (kSrcValid | kUpstreamFwd)) == 0) return;
  auto& found = judge.found(
      bridge.id, "ReqRedir- CmpltRedir- UpstreamFwd-", bits_of(control),
      {{bridge.source.empty() ? fmt::format("configuration space of {}", bridge.id) : bridge.source,
        bits_of(control)},
       {"PCI tree", fmt::format("{} {}", words_of(on.place), on.pair)}});
  if (!redirect) {
    found.severity = model::Severity::info;
    found.title = "ACS source validation is on, which does not redirect";
  } else {
    found.severity = severity_of(evidence, bridge, on.place);
  }
}

// Only the ACSCtl lines of a machine, without its tree.
Outcome without_paths(const model::Machine& machine) {
  const auto& topology = machine.topology;
  Judge judge("ACS01");
  for (const auto& loose : machine.loose_acs) {
    if (!redirects(loose.control)) continue;
    auto& found = judge.found("a bridge", "ReqRedir- CmpltRedir- on GPU and NIC paths",
                              bits_of(loose.control), {{loose.source, loose.text}});
    found.severity = model::Severity::warn;
  }
  for (const auto& device : topology.pci) {
    if (!device.acs_control || !redirects(*device.acs_control)) continue;
    auto& found = judge.found(
        device.id.empty() ? "a bridge" : device.id, "ReqRedir- CmpltRedir- on GPU and NIC paths",
        bits_of(*device.acs_control),
        {{device.source.empty() ? "configuration space" : device.source, bits_of(*device.acs_control)}});
    found.severity = model::Severity::warn;
  }
  judge.unknown("which bridges lie between the GPUs is not in the input");
  return judge.outcome();
}

Outcome check_ACS01(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  const auto& topology = machine.topology;
  if (machine.virtual_machine.value.value_or(false))
    return Clean{"a virtual machine: ACS belongs to its host"};
  if (!machine.loose_acs.empty() && !config_was_read(topology)) return without_paths(machine);
  if (!config_was_read(topology)) return NotEvaluated{why_no_config(topology)};
  const model::PciTree tree(topology);
  const auto ends = ends_of(evidence, tree);
  if (ends.empty() || !topology.tree_known) return without_paths(machine);
  Judge judge("ACS01");
  for (const auto& [bridge, on] : bridges_on_paths(evidence, ends)) {
    if (!bridge->acs_control) {
      if (!bridge->config_why.empty()) judge.unknown(fmt::format("{}: {}", bridge->id, bridge->config_why));
      continue;  // a bridge without the capability redirects nothing
    }
    if (!direct_translated(*bridge, ends)) judge_bridge(evidence, *bridge, on, judge);
  }
  return judge.outcome();
}

// ---- ACS02

Outcome check_ACS02(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (!machine.virtual_machine) return missing("whether this is a virtual machine", machine.virtual_machine);
  if (!*machine.virtual_machine) return Clean{"bare metal"};
  const model::PciTree tree(machine.topology);
  Judge judge("ACS02");
  bool any = false;
  const auto rails = rails_of(evidence);
  for (const auto* nic : rails.nics) {
    const auto* device = tree.route_to(*nic).device;
    if (device == nullptr) continue;
    any = true;
    if (!device->ats_enabled) {
      judge.unknown(
          fmt::format("{}: {}", name_of(*nic),
                      device->config_why.empty() ? "ATS control not readable" : device->config_why));
    } else if (!*device->ats_enabled) {
      judge.found(name_of(*nic), "ATSCtl: Enable+", "ATSCtl: Enable-", {{device->id, "ATSCtl: Enable-"}});
    }
  }
  if (!any && !machine.rdma_read) judge.unknown("RDMA devices: " + machine.rdma_read.why);
  if (!rails.unknown.empty()) judge.unknown(rails.unknown);
  return judge.outcome(any ? "" : "no RDMA NIC");
}

// ---- ACS03

bool hosts_virtual_machines(const model::Topology& topology) {
  return std::ranges::any_of(topology.pci,
                             [](const PciDevice& device) { return device.driver == "vfio-pci"; });
}

Outcome check_ACS03(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (!machine.virtual_machine) return missing("whether this is a virtual machine", machine.virtual_machine);
  if (*machine.virtual_machine) return Clean{"a virtual machine"};
  if (!machine.iommu_groups)
    return machine.iommu_groups.why == "not found" ? Outcome(Clean{"no IOMMU groups"})
                                                   : Outcome(missing("IOMMU groups", machine.iommu_groups));
  if (hosts_virtual_machines(machine.topology)) return Clean{"this host passes devices to virtual machines"};
  const bool arm = machine.topology.cpu && machine.topology.cpu->arch != "x86_64";
  const auto rails = rails_of(evidence);
  std::map<std::string, std::string> devices;  // bdf -> name
  for (const auto& gpu : machine.topology.gpus)
    if (gpu.bdf) devices[*gpu.bdf] = gpu.id;
  for (const auto* nic : rails.nics)
    if (nic->bdf) devices[*nic->bdf] = name_of(*nic);
  Judge judge("ACS03");
  for (const auto& [bdf, name] : devices) {
    const auto group = machine.iommu_groups->find(bdf);
    if (group == machine.iommu_groups->end() || !group->second.starts_with("DMA")) continue;
    auto& found = judge.found(
        name, "identity", group->second,
        {{machine.iommu_groups.source.empty() ? "/sys/kernel/iommu_groups" : machine.iommu_groups.source,
          fmt::format("{}: {}", bdf, group->second)}});
    if (machine.kernel_command_line)
      found.evidence.push_back({"/proc/cmdline", *machine.kernel_command_line});
    if (arm) found.severity = model::Severity::info;  // Grace translates by its SMMU
  }
  if (!rails.unknown.empty()) judge.unknown(rails.unknown);
  return judge.outcome(devices.empty() ? "no GPU and no RDMA NIC" : "");
}

constexpr Rule kRules[] = {{"ACS01", check_ACS01}, {"ACS02", check_ACS02}, {"ACS03", check_ACS03}};

}  // namespace

std::span<const Rule> acs_rules() { return kRules; }

}  // namespace topotune::checks
