// Rules about the priorities of RoCE ports. IEEE 802.1Qbb (PFC), RFC 2474 (DSCP), Linux net/dcb.
#include <fmt/format.h>

#include "base/text.h"
#include "checks/facts_of.h"
#include "checks/families.h"

namespace topotune::checks {
namespace {

using model::RdmaPort;
using model::Severity;

std::optional<Outcome> without_ports(const model::Machine& machine) {
  if (!machine.ports.empty()) return std::nullopt;
  if (machine.rdma_read) return Outcome(Clean{"no RDMA NIC"});
  return Outcome(NotEvaluated{"RDMA ports: " + machine.rdma_read.why});
}

Outcome check_QOS02(const Evidence& evidence) {
  if (auto none = without_ports(*evidence.machine)) return *none;
  Judge judge("QOS02");
  const auto rails = active_rails(evidence, "Ethernet", judge);
  for (const auto* port : rails) {
    if (!port->pfc_priorities || !port->ecn) {
      judge.unknown(name_of_port(*port) + ": PFC and ECN settings: not captured");
      continue;
    }
    const bool pfc = *port->pfc_priorities != 0;
    if ((pfc && *port->ecn) || port->adaptive_retransmission.value_or(false)) continue;
    auto& found = judge.found(
        name_of_port(*port), "PFC on the priority of RoCE, and ECN",
        fmt::format("PFC priorities 0x{:02x}, ECN {}", *port->pfc_priorities, *port->ecn ? "on" : "off"),
        {{"dcb", fmt::format("PFC priorities 0x{:02x}", *port->pfc_priorities)},
         {"ecn/roce_np/enable", *port->ecn ? "on" : "all 0"}});
    if (pfc || *port->ecn) found.severity = Severity::info;
  }
  return judge.outcome(rails.empty() ? "no active RoCE rail" : "");
}

// ---- QOS04

struct TrafficClass {
  std::string variable;
  int value = 0;  // the byte: DSCP in its upper six bits
};

// What the job marks its packets with; nothing where it leaves that to the default.
std::optional<TrafficClass> traffic_class_of(const Evidence& evidence) {
  for (const char* name : {"NCCL_IB_TC", "UCX_IB_TRAFFIC_CLASS"}) {
    const auto at = evidence.environment->find(name);
    if (at == evidence.environment->end()) continue;
    const auto value = parse_int<int>(trim(at->second));
    if (value && *value > 0 && *value < 256) return TrafficClass{name, *value};
  }
  return std::nullopt;
}

void judge_port(const RdmaPort& port, const TrafficClass& job, Judge& judge) {
  const int dscp = job.value >> 2;
  const std::string marked = fmt::format("{}={}: DSCP {}", job.variable, job.value, dscp);
  if (port.adaptive_retransmission.value_or(false)) return;  // lossy by design
  if (port.trust == "pcp") {
    judge.found(name_of_port(port), "trust mode dscp", "trust mode pcp: the DSCP is not looked at",
                {{"environment", marked}, {"trust", "pcp"}});
    return;
  }
  const auto priority = port.dscp_priority.find(dscp);
  if (priority == port.dscp_priority.end() || !port.pfc_priorities) {
    judge.unknown(
        fmt::format("{}: {}: not captured (mlnx_qos -i, or dcb pfc and dcb app)", name_of_port(port),
                    port.pfc_priorities ? "priority of DSCP " + std::to_string(dscp) : "PFC settings"));
    return;
  }
  if ((*port.pfc_priorities >> priority->second & 1) != 0) return;
  judge.found(name_of_port(port), "a priority with PFC",
              fmt::format("DSCP {} goes to priority {}, PFC is on for 0x{:02x}", dscp, priority->second,
                          *port.pfc_priorities),
              {{"environment", marked},
               {"dscp2prio", fmt::format("DSCP {}: priority {}", dscp, priority->second)},
               {"PFC", fmt::format("priorities 0x{:02x}", *port.pfc_priorities)}});
}

Outcome check_QOS04(const Evidence& evidence) {
  if (auto none = without_ports(*evidence.machine)) return *none;
  Judge judge("QOS04");
  const auto rails = active_rails(evidence, "Ethernet", judge);
  if (rails.empty()) return judge.outcome("no active RoCE rail");
  if (!evidence.environment)
    return NotEvaluated{"traffic class of the job: give its configuration or log beside the machine"};
  const auto job = traffic_class_of(evidence);
  if (!job) return Clean{"the job sets no traffic class"};
  for (const auto* port : rails) judge_port(*port, *job, judge);
  return judge.outcome();
}

constexpr Rule kRules[] = {{"QOS02", check_QOS02}, {"QOS04", check_QOS04}};

}  // namespace

std::span<const Rule> qos_rules() { return kRules; }

}  // namespace topotune::checks
