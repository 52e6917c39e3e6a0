// Variables of UCX, for applications that call it and for NCCL's UCX network plugin
// (nccl-rdma-sharp-plugins). UCX docs/source/faq.md; src/ucp/core/ucp_context.c; plugin src/p2p_plugin.c,
// ucx_plugin.c.
#include <algorithm>

#include "base/text.h"
#include "plan/parts.h"

namespace topotune::plan {

namespace {

bool has_ucx_plugin(const Draft& draft) {
  const auto& plugins = draft.machine().nccl_plugins;
  return plugins && std::ranges::any_of(*plugins, [](const std::string& name) {
           return name.find("libnccl-net") != std::string::npos;
         });
}

std::size_t most_near_nics(const Draft& draft) {
  std::size_t most = 0;
  for (const auto& pair : model::pairs_of(draft.topology(), *draft.situation.paths))
    if (pair.type <= model::PathType::pxb) most = std::max(most, pair.nics.size());
  return most;
}

void for_applications(Draft& draft) {
  if (const auto nics = most_near_nics(draft); nics > 2) {
    auto action = env_action(
        "UCX_MAX_RNDV_RAILS", std::to_string(nics),
        fmt::format("a GPU has {} NICs under its switch; UCX splits a large message over 2 unless told",
                    nics),
        "UCX src/ucp/core/ucp_context.c: UCX_MAX_RNDV_RAILS");
    draft.actions.push_back(std::move(action));
  }
  if (draft.job().dscp) {
    const int traffic_class = *draft.job().dscp << 2 | 2;
    if (traffic_class != 106)
      draft.actions.push_back(
          env_action("UCX_IB_TRAFFIC_CLASS", std::to_string(traffic_class),
                     fmt::format("DSCP {} with ECT(0); UCX's own default on RoCE v2 is 106 (DSCP 26)",
                                 *draft.job().dscp),
                     "UCX src/uct/ib/base/ib_iface.c"));
  }
  if (const auto* tls = setting_of(draft, "UCX_TLS");
      tls != nullptr && tls->value.find("cuda") == std::string::npos && tls->value != "all") {
    auto action =
        env_action("UCX_TLS", std::nullopt, "UCX_TLS without cuda: GPU memory is not recognised", "UCX FAQ");
    action.rule = "UCX02";
    action.observed = tls->value;
    action.where = tls->where;
    const bool taken =
        std::ranges::any_of(draft.actions, [](const model::Action& a) { return a.id == "unset-UCX_TLS"; });
    if (!taken) draft.actions.push_back(std::move(action));
  }
  draft.notes.push_back(
      "UCX_TLS and UCX_NET_DEVICES are left out: UCX takes every transport and the nearest devices by "
      "itself; "
      "proof: ucx_info -d lists cuda_copy, and UCX_LOG_LEVEL=info prints the lanes of each endpoint");
}

void for_nccl_plugin(Draft& draft) {
  auto on =
      env_action("NCCL_PLUGIN_P2P", "ucx", "without it the plugin carries NCCL's data by verbs, not by UCX",
                 "nccl-rdma-sharp-plugins src/p2p_plugin.c");
  on.rule = "UCX01";
  on.precondition = "libnccl-net.so of nccl-rdma-sharp-plugins is on the library path";
  draft.actions.push_back(std::move(on));
  if (const auto* tls = setting_of(draft, "UCX_TLS");
      tls != nullptr && tls->value.find("cuda") != std::string::npos) {
    auto off = env_action("UCX_TLS", std::nullopt,
                          "the plugin ends with \"Cannot use cuda/gdr transports\" when UCX_TLS names them",
                          "nccl-rdma-sharp-plugins src/ucx_plugin.c");
    off.rule = "UCX02";
    off.observed = tls->value;
    off.where = tls->where;
    draft.actions.push_back(std::move(off));
  }
  const auto& plugins = draft.machine().nccl_plugins;
  draft.notes.push_back(
      has_ucx_plugin(draft)
          ? "NCCL runs over UCX only through the plugin; proof: the log says \"Using network UCX\""
      : plugins ? "no libnccl-net*.so was found on this machine: NCCL cannot run over UCX until the plugin "
                  "is installed"
                : "whether the plugin is installed is not known; NCCL runs over UCX only with it, and the "
                  "log then says \"Using network UCX\"");
}

// Without the plugin every UCX_* variable is idle in an NCCL job.
void for_nccl(Draft& draft) {
  std::vector<std::string> idle;
  for (const auto& setting : draft.situation.settings)
    if (setting.name.starts_with("UCX_")) idle.push_back(setting.name);
  std::ranges::sort(idle);
  if (!idle.empty())
    draft.notes.push_back(fmt::format("{} do nothing for NCCL, which does not use UCX without a plugin",
                                      fmt::join(idle, ", ")));
}

}  // namespace

void plan_ucx(Draft& draft) {
  switch (draft.job().transport) {
    case Transport::ucx:
      return for_applications(draft);
    case Transport::nccl_over_ucx:
      return for_nccl_plugin(draft);
    case Transport::nccl:
      return for_nccl(draft);
  }
}

}  // namespace topotune::plan
