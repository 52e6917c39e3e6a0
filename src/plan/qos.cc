// The host's half of one lossless class: trust DSCP, PFC and ECN on its priority, a rate limit for a tenant.
// mlnx_qos and cma_roce_tos of Mellanox/mlnx-tools; sysfs files of MLNX_OFED (ecn/roce_np, ecn/roce_rp).
#include <algorithm>
#include <set>

#include "plan/parts.h"

namespace topotune::plan {

namespace {

using model::ActionKind;
using model::ActionScope;

int priority_of(int dscp) { return dscp >> 3; }  // the NICs' and switches' default map

std::string priority_list(int priority) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += fmt::format("{}{}", i == 0 ? "" : ",", i == priority ? 1 : 0);
  return out;
}

model::Action for_person(std::string id, std::string target, std::string value,
                         std::vector<std::string> words, std::string reason, std::string read_back) {
  auto action = person_action(std::move(id), ActionKind::config, std::move(target), std::move(value),
                              std::move(reason));
  action.command = std::move(words);
  action.rule = "QOS02";
  action.source = "Mellanox/mlnx-tools; MLNX_OFED ECN page";
  action.precondition = "the switch ports have the same class (plan --emit sonic|nvue|onyx)";
  action.read_back = std::move(read_back);
  action.undo = "mlnx_qos prints the state before; write it back";
  action.scope = ActionScope::boot;
  return action;
}

void one_interface(Draft& draft, const model::RdmaPort& port, int dscp) {
  const auto& netdev = *port.netdev;
  const int priority = priority_of(dscp);
  draft.actions.push_back(for_person(
      "qos-trust-" + netdev, "nic-qos:" + netdev, "trust dscp", {"mlnx_qos", "-i", netdev, "--trust", "dscp"},
      fmt::format("the NIC sorts packets by their DSCP; {} falls into priority {}", dscp, priority),
      fmt::format("mlnx_qos -i {}: Priority trust state: dscp", netdev)));
  if (port.pfc_priorities != (1U << priority))
    draft.actions.push_back(
        for_person("qos-pfc-" + netdev, "nic-qos:" + netdev, "pfc " + priority_list(priority),
                   {"mlnx_qos", "-i", netdev, "--pfc", priority_list(priority)},
                   fmt::format("pause frames for priority {} and no other", priority),
                   fmt::format("mlnx_qos -i {}: PFC enabled only for {}", netdev, priority)));
  if (port.ecn != true)
    for (const auto* side : {"roce_np", "roce_rp"}) {
      auto action = write_action(
          fmt::format("qos-ecn-{}-{}", side, netdev),
          fmt::format("/sys/class/net/{}/ecn/{}/enable/{}", netdev, side, priority), "1", std::nullopt,
          fmt::format("{} for priority {}",
                      side == std::string_view("roce_np") ? "answers marked packets"
                                                          : "slows down when the peer answers",
                      priority));
      action.rule = "QOS02";
      action.source = "MLNX_OFED ECN page";
      draft.actions.push_back(std::move(action));
    }
  draft.actions.push_back(
      for_person("qos-tos-" + port.device, "rdma-cm:" + port.device, std::to_string(dscp << 2 | 2),
                 {"cma_roce_tos", "-d", port.device, "-p", std::to_string(port.port), "-t",
                  std::to_string(dscp << 2 | 2)},
                 "connections made through the RDMA connection manager carry the same class",
                 "cma_roce_tos without -t prints it"));
}

void limit_rate(Draft& draft, const model::RdmaPort& port) {
  if (!draft.job().rate_limit_gbits || !port.netdev) return;
  const int priority = priority_of(draft.job().dscp.value_or(26));
  std::string rates;
  for (int i = 0; i < 8; ++i)
    rates += fmt::format("{}{:g}", i == 0 ? "" : ",", i == priority ? *draft.job().rate_limit_gbits : 0.0);
  draft.actions.push_back(for_person("qos-rate-" + *port.netdev, "nic-qos:" + *port.netdev,
                                     "ratelimit " + rates,
                                     {"mlnx_qos", "-i", *port.netdev, "--ratelimit", rates},
                                     fmt::format("this tenant's share of the NIC is {:g} Gb/s; the rdma "
                                                 "cgroup limits handles and objects, never bandwidth",
                                                 *draft.job().rate_limit_gbits),
                                     fmt::format("mlnx_qos -i {}: tc {} ratelimit", *port.netdev, priority)));
}

}  // namespace

void plan_qos(Draft& draft) {
  if (!draft.job().dscp && !draft.job().rate_limit_gbits) return;
  std::set<std::string> seen;
  for (const auto* port : checks::rails_of(draft.evidence).ports) {
    if (port->link_layer != "Ethernet" || !port->netdev || port->software.value_or(false) ||
        !seen.insert(*port->netdev).second)
      continue;
    if (draft.job().dscp) one_interface(draft, *port, *draft.job().dscp);
    limit_rate(draft, *port);
  }
  if (seen.empty())
    draft.notes.push_back(
        "a traffic class was asked for, but no RoCE rail is known here: nothing is planned for the host's "
        "NICs");
}

}  // namespace topotune::plan
