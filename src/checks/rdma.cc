// Rules about RDMA ports: state, rate, MTU, GIDs. Linux Documentation/ABI/stable/sysfs-class-infiniband.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "checks/facts_of.h"
#include "checks/families.h"

namespace topotune::checks {
namespace {

using model::Machine;
using model::RdmaPort;
using model::Severity;

std::string place_of(const RdmaPort& port, std::string_view file) {
  return port.source.empty()
             ? fmt::format("/sys/class/infiniband/{}/ports/{}/{}", port.device, port.port, file)
             : port.source;
}

bool active(const RdmaPort& port) { return port.state == "ACTIVE"; }
bool ethernet(const RdmaPort& port) { return port.link_layer == "Ethernet"; }
bool software(const RdmaPort& port) { return is_software(port); }

std::string state_text(const RdmaPort& port) {
  return fmt::format("state {}, phys_state {}", port.state.value_or("unknown"),
                     port.phys_state.value_or("unknown"));
}

NotEvaluated no_ports(const Machine& machine) { return NotEvaluated{"RDMA ports: " + machine.rdma_read.why}; }

// No port in the input: nothing to check where the class was listed, else not evaluated.
std::optional<Outcome> without_ports(const Machine& machine) {
  if (!machine.ports.empty()) return std::nullopt;
  if (machine.rdma_read) return Outcome(Clean{"no RDMA NIC"});
  return Outcome(no_ports(machine));
}

// ---- RDMA01

Outcome check_RDMA01(const Evidence& evidence) {
  constexpr std::uint16_t kMellanox = 0x15b3;
  const auto& topology = evidence.machine->topology;
  const bool gpus_passed = std::ranges::any_of(topology.pci, [](const model::PciDevice& device) {
    return device.kind == model::PciKind::gpu && device.driver == "vfio-pci";
  });
  Judge judge("RDMA01");
  bool any = false;
  for (const auto& nic : topology.nics) {
    const auto* device = nic.bdf ? model::find_pci(topology, *nic.bdf) : nullptr;
    if (device == nullptr || device->vendor != kMellanox || !device->driver) continue;
    any = true;
    const bool vfio = *device->driver == "vfio-pci";
    const bool dpdk = *device->driver == "uio_pci_generic" || *device->driver == "igb_uio";
    const bool near = std::ranges::any_of(*evidence.paths, [&](const model::Path& path) {
      const bool here = path.b == nic.id || path.a == nic.id;
      const auto& other = path.a == nic.id ? path.b : path.a;
      return here && path.type && *path.type <= model::PathType::pxb &&
             model::find_gpu(topology, other) != nullptr;
    });
    if ((!vfio && !dpdk) || !near || (vfio && gpus_passed)) continue;
    auto& found = judge.found(device->id, "mlx5_core", *device->driver,
                              {{fmt::format("/sys/bus/pci/devices/{}/driver", device->id), *device->driver}});
    if (vfio) found.severity = Severity::warn;
  }
  const auto kind = topology.source.kind;
  const bool live = kind == model::SourceKind::live || kind == model::SourceKind::capture;
  const bool nics =
      std::ranges::any_of(topology.pci, [](const auto& d) { return d.kind == model::PciKind::nic; });
  if (!any && (!lists_devices(topology) || (nics && !live)))
    judge.unknown("drivers of the NICs: not captured");
  return judge.outcome(any ? "" : "no Mellanox or NVIDIA NIC");
}

// ---- RDMA02

// A second port of a card whose first port carries the traffic.
bool unused_second_port(const Machine& machine, const RdmaPort& port) {
  constexpr int kNoLid = 65535;
  if (port.lid && *port.lid != kNoLid && port.link_layer == "InfiniBand" && *port.lid != 0) return false;
  return std::ranges::any_of(machine.ports, [&](const RdmaPort& other) {
    const bool other_port = other.device != port.device || other.port != port.port;
    const bool same_card = other.device == port.device ||
                           (port.system_image_guid && port.system_image_guid == other.system_image_guid);
    return other_port && same_card && active(other);
  });
}

// Two ports of one card model: by board id, else by CA type and firmware, which tell less.
bool boards_known(const RdmaPort& a, const RdmaPort& b) { return a.board_id && b.board_id; }
Tell same_card_model(const RdmaPort& a, const RdmaPort& b) {
  if (boards_known(a, b)) return *a.board_id == *b.board_id ? Tell::yes : Tell::no;
  if (!a.hca_type || !b.hca_type) return Tell::unknown;
  if (*a.hca_type != *b.hca_type) return Tell::no;
  return a.firmware && a.firmware == b.firmware ? Tell::yes : Tell::unknown;
}

// The active port of this port's card model that tells most: one of the same board, else of the same type;
// null when there is none. `unknown`: another active port may be of this model.
struct Sibling {
  const RdmaPort* port = nullptr;
  bool unknown = false;
};
Sibling active_sibling(const Machine& machine, const RdmaPort& port) {
  Sibling out;
  for (const auto& other : machine.ports) {
    if (&other == &port || !active(other) || software(other)) continue;
    const auto same = same_card_model(port, other);
    out.unknown = out.unknown || same == Tell::unknown;
    if (same == Tell::yes && (out.port == nullptr || boards_known(port, other))) out.port = &other;
  }
  return out;
}

// A port whose rate is told while it is down shows the default of 10 Gb/s: by rate, a port of a rail's board
// is a rail, and one of a rail's CA type may be one.
Tell is_rail(const Rails& rails, const RdmaPort& port) {
  if (std::ranges::find(rails.ports, &port) != rails.ports.end()) return Tell::yes;
  if (!rails.unknown.empty() || (!rails.by_path && !port.gbits_per_s)) return Tell::unknown;
  if (rails.by_path) return Tell::no;
  auto out = Tell::no;
  for (const auto* rail : rails.ports) {
    const auto same = same_card_model(port, *rail);
    if (same == Tell::yes && boards_known(port, *rail)) return Tell::yes;
    if (same != Tell::no) out = Tell::unknown;
  }
  return out;
}

std::string card_unknown(const RdmaPort& port) {
  return name_of_port(port) + ": its card model (board_id) was not captured";
}

bool down(const RdmaPort& port) {
  const bool bad_state =
      port.state && *port.state != "ACTIVE" && *port.state != "INIT" && *port.state != "ARMED";
  return bad_state || (port.phys_state && *port.phys_state != "LinkUp" && !active(port));
}

void judge_down(const Machine& machine, const RdmaPort& port, const Rails& rails, Judge& judge) {
  if (!down(port) || port.phys_state == "Disabled" || unused_second_port(machine, port)) return;
  const auto sibling = active_sibling(machine, port);
  if (sibling.port == nullptr) {
    if (sibling.unknown) judge.unknown(card_unknown(port));
    return;
  }
  if (is_rail(rails, port) == Tell::unknown)
    return judge.unknown(rails.unknown.empty() ? card_unknown(port) : rails.unknown);
  const bool board = boards_known(port, *sibling.port);
  auto& found =
      judge.found(name_of_port(port), "ACTIVE, LinkUp", state_text(port),
                  {{place_of(port, "state"), state_text(port)},
                   {board ? "board_id" : "CA type", (board ? *port.board_id : *port.hca_type) +
                                                        ": other ports of this card model are active"}});
  if (!rails.by_path || !board || may_hide_paths(machine)) found.severity = Severity::warn;
}

Outcome check_RDMA02(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (auto none = without_ports(machine)) return *none;
  const auto rails = rails_of(evidence);
  Judge judge("RDMA02");
  for (const auto& port : machine.ports) {
    if (software(port) || is_rail(rails, port) == Tell::no) continue;
    if (!port.state)
      judge.unknown(name_of_port(port) + ": state unknown");
    else
      judge_down(machine, port, rails, judge);
  }
  return judge.outcome();
}

// ---- RDMA03

Outcome check_RDMA03(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (auto none = without_ports(machine)) return *none;
  std::vector<model::Evidence> lines;
  bool any_hardware = false;
  Judge judge("RDMA03");
  for (const auto& port : machine.ports) {
    if (software(port)) continue;
    any_hardware = true;
    if (active(port)) return Clean{};
    if (!port.state) return NotEvaluated{name_of_port(port) + ": state unknown"};
    lines.push_back({place_of(port, "state"), name_of_port(port) + ": " + state_text(port)});
  }
  if (!any_hardware) return Clean{"no RDMA hardware"};
  auto& found =
      judge.found("host", "an ACTIVE port", fmt::format("none of {} ports is ACTIVE", lines.size()), lines);
  if (evidence.multi_node_job) found.severity = Severity::error;
  return judge.outcome();
}

// ---- RDMA04

bool shares_its_card(const Machine& machine, const RdmaPort& port) {
  return std::ranges::any_of(machine.ports, [&](const RdmaPort& other) {
    return &other != &port && active(other) && port.system_image_guid &&
           other.system_image_guid == port.system_image_guid;
  });
}

// Below a faster rail of its card model. By CA type the model's rate is an upper limit only: info.
void judge_rate(const Machine& machine, const RdmaPort& port, const std::vector<const RdmaPort*>& rails,
                Judge& judge) {
  const RdmaPort* best = nullptr;
  bool unknown = false;
  for (const auto* rail : rails) {
    if (rail->gbits_per_s.value_or(0) <= *port.gbits_per_s) continue;
    const auto same = same_card_model(port, *rail);
    unknown = unknown || same == Tell::unknown;
    const auto rank = [&](const RdmaPort& one) {
      return std::pair(boards_known(port, one), *one.gbits_per_s);
    };
    if (same == Tell::yes && (best == nullptr || rank(*rail) > rank(*best))) best = rail;
  }
  if (best == nullptr) {
    if (unknown) judge.unknown(card_unknown(port));
    return;
  }
  auto& found = judge.found(name_of_port(port),
                            fmt::format("{} Gb/s, as other ports of this card model", *best->gbits_per_s),
                            fmt::format("{} Gb/s", *port.gbits_per_s),
                            {{place_of(port, "rate"), fmt::format("{} Gb/s", *port.gbits_per_s)}});
  if (shares_its_card(machine, port) || !boards_known(port, *best)) found.severity = Severity::info;
}

Outcome check_RDMA04(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (auto none = without_ports(machine)) return *none;
  const auto rails = rails_of(evidence);
  Judge judge("RDMA04");
  std::vector<const RdmaPort*> list;
  for (const auto& port : machine.ports) {
    const auto rail = is_rail(rails, port);
    if (software(port) || rail == Tell::no || (port.state && !active(port))) continue;
    if (!port.state)
      judge.unknown(name_of_port(port) + ": state unknown");
    else if (!port.gbits_per_s)
      judge.unknown(name_of_port(port) + ": rate unknown");
    else if (rail == Tell::unknown)
      judge.unknown(rails.unknown.empty() ? card_unknown(port) : rails.unknown);
    else
      list.push_back(&port);
  }
  for (const auto* port : list) judge_rate(machine, *port, list, judge);
  return judge.outcome(list.empty() ? "no active rail port" : "");
}

// ---- RDMA05, RDMA06

constexpr int kLargestMtu = 4096;

Outcome check_RDMA05(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (auto none = without_ports(machine)) return *none;
  Judge judge("RDMA05");
  for (const auto* port : active_rails(evidence, "Ethernet", judge)) {
    if (!port->active_mtu) {
      judge.unknown(name_of_port(*port) + ": active_mtu unknown");
      continue;
    }
    if (*port->active_mtu >= kLargestMtu) continue;
    auto& found =
        judge.found(name_of_port(*port), "4096", fmt::format("{}", *port->active_mtu),
                    {{place_of(*port, "active_mtu"), fmt::format("active_mtu {}", *port->active_mtu)}});
    if (port->netdev)
      found.evidence.push_back({fmt::format("/sys/class/net/{}/mtu", *port->netdev),
                                port->netdev_mtu ? fmt::format("{}", *port->netdev_mtu) : "unknown"});
  }
  return judge.outcome();
}

Outcome check_RDMA06(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (auto none = without_ports(machine)) return *none;
  Judge judge("RDMA06");
  std::map<std::string, std::map<int, std::vector<std::string>>> by_layer;
  for (const auto* port : active_rails(evidence, "", judge)) {
    if (port->active_mtu && port->link_layer)
      by_layer[*port->link_layer][*port->active_mtu].push_back(name_of_port(*port));
    else
      judge.unknown(name_of_port(*port) + ": active_mtu or link layer unknown");
  }
  for (const auto& [layer, by_mtu] : by_layer) {
    if (by_mtu.size() < 2) continue;
    const auto largest = by_mtu.rbegin()->first;
    for (const auto& [mtu, ports] : by_mtu) {
      if (mtu == largest) continue;
      for (const auto& port : ports)
        judge.found(port, fmt::format("{}, as {}", largest, by_mtu.rbegin()->second.front()),
                    fmt::format("{}", mtu),
                    {{layer + " ports", fmt::format("active_mtu {} beside {}", mtu, largest)}});
    }
  }
  return judge.outcome();
}

// ---- RDMA08

Outcome check_RDMA08(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (auto none = without_ports(machine)) return *none;
  Judge judge("RDMA08");
  const auto rails = rails_of(evidence);
  std::map<std::string, std::vector<std::string>> by_layer;
  for (const auto& port : machine.ports) {
    if ((port.state && !active(port)) || software(port)) continue;
    if (!port.state || !port.link_layer) {
      judge.unknown(name_of_port(port) + ": state or link layer unknown");
      continue;
    }
    by_layer[*port.link_layer].push_back(name_of_port(port));
  }
  if (by_layer.size() < 2) return judge.outcome();
  std::vector<model::Evidence> lines;
  for (const auto& [layer, ports] : by_layer)
    lines.push_back({layer, fmt::format("{}", fmt::join(ports, " "))});
  const auto rail = [&](const std::string& name) {
    return std::ranges::any_of(rails.ports,
                               [&](const RdmaPort* port) { return name_of_port(*port) == name; });
  };
  const bool both_are_rails = std::ranges::all_of(
      by_layer, [&](const auto& entry) { return std::ranges::any_of(entry.second, rail); });
  auto& found = judge.found("host", "one link layer, or NCCL_IB_HCA with the rails",
                            "InfiniBand and Ethernet ports are active", lines);
  // A slower port of the other kind is often for storage or management: NCCL takes it all the same when not
  // told.
  if (!both_are_rails) found.severity = Severity::info;
  return judge.outcome();
}

// ---- RDMA09

// The kernel's form: eight groups of four digits.
bool zero_gid(std::string_view gid) { return gid.find_first_not_of("0:") == std::string_view::npos; }
bool link_local(std::string_view gid) { return gid.starts_with("fe80:"); }

struct GidTable {
  bool routable = false, any_v2 = false, any = false, types_known = true;
};

GidTable table_of(const RdmaPort& port) {
  GidTable out;
  for (const auto& gid : port.gids) {
    if (zero_gid(gid.address)) continue;
    out.any = true;
    if (gid.type.empty()) out.types_known = false;
    const bool v2 = gid.type.find("v2") != std::string::npos || gid.type.find("V2") != std::string::npos;
    out.any_v2 = out.any_v2 || v2;
    out.routable = out.routable || (v2 && !link_local(gid.address));
  }
  return out;
}

std::vector<model::Evidence> gid_lines(const RdmaPort& port) {
  constexpr std::size_t kMost = 8;
  std::vector<model::Evidence> out;
  for (const auto& gid : port.gids)
    if (out.size() < kMost)
      out.push_back({place_of(port, fmt::format("gids/{}", gid.index)),
                     fmt::format("{} {} {}", gid.address, gid.type, gid.netdev)});
  if (out.empty()) out.push_back({place_of(port, "gids"), "no entry"});
  return out;
}

// A port that carries a job, by path, by rate, or because nothing tells its rate (show_gids).
std::vector<const RdmaPort*> ports_of_jobs(const Evidence& evidence) {
  auto out = rails_of(evidence).ports;
  if (!out.empty()) return out;
  for (const auto& port : evidence.machine->ports)
    if (!port.gbits_per_s && !software(port)) out.push_back(&port);
  return out;
}

Outcome check_RDMA09(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (auto none = without_ports(machine)) return *none;
  const auto rails = rails_of(evidence);
  Judge judge("RDMA09");
  bool any = false;
  for (const auto* port : ports_of_jobs(evidence)) {
    if (port->link_layer && !ethernet(*port)) continue;
    if (software(*port) || (port->state && !active(*port))) continue;
    any = true;
    const auto table = table_of(*port);
    if (table.routable) continue;
    if (!port->gids_known.value_or(false) || !table.types_known || !port->link_layer || !port->state) {
      judge.unknown(name_of_port(*port) + ": the whole GID table was not read");
      continue;
    }
    auto& found = judge.found(name_of_port(*port), "a RoCE v2 GID that is not link-local",
                              table.any ? "link-local or RoCE v1 entries only" : "no GID", gid_lines(*port));
    if (table.any || !rails.by_path) found.severity = Severity::warn;
  }
  return judge.outcome(any ? "" : "no active RoCE rail");
}

// ---- RDMA10

Outcome check_RDMA10(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (auto none = without_ports(machine)) return *none;
  Judge judge("RDMA10");
  for (const auto& port : machine.ports) {
    if (software(port)) continue;
    if (!port.link_layer) {
      judge.unknown(name_of_port(port) + ": link layer unknown");
      continue;
    }
    if (*port.link_layer != "InfiniBand") continue;
    if (!port.state) {
      judge.unknown(name_of_port(port) + ": state unknown");
      continue;
    }
    const bool waiting = port.phys_state == "LinkUp" && *port.state == "INIT";
    const bool no_manager = active(port) && port.sm_lid && *port.sm_lid == 0;
    if (!waiting && !no_manager) continue;
    auto& found = judge.found(
        name_of_port(port), waiting ? "ACTIVE" : "the LID of a subnet manager",
        waiting ? "INIT (link up, not configured)" : "sm_lid 0",
        {{place_of(port, "state"), fmt::format("{}, lid {}, sm_lid {}", state_text(port),
                                               port.lid ? fmt::format("{}", *port.lid) : "unknown",
                                               port.sm_lid ? fmt::format("{}", *port.sm_lid) : "unknown")}});
    // One reading: a port also passes INIT for seconds after its link came up.
    found.severity = Severity::warn;
  }
  return judge.outcome();
}

// ---- RDMA11, RDMA12

Outcome check_RDMA11(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (auto none = without_ports(machine)) return *none;
  Judge judge("RDMA11");
  std::set<std::string> said;
  for (const auto& port : machine.ports)
    if (software(port) && said.insert(port.device).second)
      judge.found(port.device, "RDMA hardware, unless it is the transport wanted", "a software device",
                  {{fmt::format("/sys/class/infiniband/{}", port.device), "no device link"}});
  for (const auto& nic : machine.topology.nics)
    if (nic.rdma && nic.is_virtual && said.insert(name_of(nic)).second)
      judge.found(name_of(nic), "RDMA hardware, unless it is the transport wanted", "a software device",
                  {{fmt::format("/sys/class/infiniband/{}", name_of(nic)), "no device link"}});
  return judge.outcome();
}

Outcome check_RDMA12(const Evidence& evidence) {
  constexpr std::uint16_t kAmazon = 0x1d0f, kFirst = 0xefa0, kLast = 0xefaf;
  const auto& machine = *evidence.machine;
  std::vector<std::string> devices;
  for (const auto& device : machine.topology.pci)
    if (device.vendor == kAmazon && device.device && *device.device >= kFirst && *device.device <= kLast)
      devices.push_back(device.id);
  if (devices.empty())
    return lists_devices(machine.topology) ? Outcome(Clean{"no EFA device"})
                                           : Outcome(NotEvaluated{"PCI devices: not captured"});
  if (!machine.modules) return missing("loaded modules", machine.modules);
  if (machine.modules->contains("efa")) return Clean{};
  if (machine.container.value.value_or(false)) return NotEvaluated{"in a container, modules may be hidden"};
  Judge judge("RDMA12");
  judge.found("host", "module efa loaded", "not loaded",
              {{"/sys/bus/pci/devices", fmt::format("EFA at {}", fmt::join(devices, " "))},
               {machine.modules.source, "no module efa"}});
  return judge.outcome();
}

// ---- NCCL08

// The index that NCCL would take; nothing: it looks for one by itself (2.21 and newer), or what it does is
// not known.
struct GidChoice {
  std::optional<int> index;
  std::string source, why;
};

GidChoice chosen_gid(const Evidence& evidence) {
  const auto version = nccl_version_of(evidence);
  if (evidence.environment) {
    const auto set = evidence.environment->find("NCCL_IB_GID_INDEX");
    if (set != evidence.environment->end()) {
      const auto index = parse_int<int>(trim(set->second));
      if (index && *index >= 0) return {index, "NCCL_IB_GID_INDEX", set->second};
    }
  }
  if (version.empty()) return {{}, {}, "NCCL_IB_GID_INDEX and NCCL version of the job: not captured"};
  if (version_at_least(version, "2.21")) return {{}, {}, ""};
  if (!evidence.environment) return {{}, {}, "NCCL_IB_GID_INDEX of the job: not captured"};
  return {0, "NCCL " + version, "index 0, the default before 2.21"};
}

// What is wrong with a port's entry; "" when it can be used.
std::string fault_of(const RdmaPort& port, int index) {
  const auto gid = std::ranges::find(port.gids, index, &model::Gid::index);
  if (gid == port.gids.end() || zero_gid(gid->address)) return "empty";
  if (link_local(gid->address)) return "link-local (fe80::/64)";
  return gid->type.find("v1") != std::string::npos ? "of type " + gid->type : "";
}

Outcome check_NCCL08(const Evidence& evidence) {
  if (auto none = without_ports(*evidence.machine)) return *none;
  const auto choice = chosen_gid(evidence);
  if (!choice.index)
    return choice.why.empty() ? Outcome(Clean{"this NCCL looks for a usable GID"})
                              : Outcome(NotEvaluated{choice.why});
  Judge judge("NCCL08");
  for (const auto* port : ports_of_jobs(evidence)) {
    if (port->link_layer == "InfiniBand" || software(*port)) continue;
    const auto good = std::ranges::find_if(
        port->gids, [&](const model::Gid& gid) { return fault_of(*port, gid.index).empty(); });
    const auto fault = fault_of(*port, *choice.index);
    const bool table_known = port->gids_known.value_or(false) || !port->gids.empty();
    if (!table_known || (fault == "empty" && !port->gids_known.value_or(false))) {
      judge.unknown(name_of_port(*port) + ": the whole GID table was not read");
      continue;
    }
    if (fault.empty()) continue;
    auto lines = gid_lines(*port);
    lines.insert(lines.begin(), {choice.source, choice.why});
    auto& found = judge.found(
        name_of_port(*port),
        good == port->gids.end() ? "a routable RoCE v2 GID" : fmt::format("index {}", good->index),
        fmt::format("index {}, {}", *choice.index, fault), std::move(lines));
    // fe80 works inside one segment, v1 where all peers use it.
    if (fault != "empty") found.severity = Severity::warn;
  }
  return judge.outcome();
}

constexpr Rule kGidRules[] = {{"NCCL08", check_NCCL08}};

constexpr Rule kRules[] = {{"RDMA01", check_RDMA01}, {"RDMA02", check_RDMA02}, {"RDMA03", check_RDMA03},
                           {"RDMA04", check_RDMA04}, {"RDMA05", check_RDMA05}, {"RDMA06", check_RDMA06},
                           {"RDMA08", check_RDMA08}, {"RDMA09", check_RDMA09}, {"RDMA10", check_RDMA10},
                           {"RDMA11", check_RDMA11}, {"RDMA12", check_RDMA12}};

}  // namespace

std::span<const Rule> rdma_rules() { return kRules; }
std::span<const Rule> gid_rules() { return kGidRules; }

}  // namespace topotune::checks
