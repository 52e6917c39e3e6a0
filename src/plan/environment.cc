// Variables of NCCL: what to take out, and the few that a version of NCCL cannot know by itself. Defaults and
// first versions as in data/nccl-env.tsv (NCCL sources per tag).
#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "checks/known_gpus.h"
#include "plan/parts.h"

namespace topotune::plan {

namespace {

using checks::version_at_least;
using model::Action;
using model::ActionBasis;

constexpr std::string_view kUnset = "unset-";

std::string nccl(const Draft& draft) { return draft.situation.nccl_version; }
// The version is known and lies in [from, to).
bool version_in(const Draft& draft, std::string_view from, std::string_view to) {
  const auto version = nccl(draft);
  return !version.empty() && version_at_least(version, from) && !version_at_least(version, to);
}

// "/etc/nccl.conf:3" -> "/etc/nccl.conf" when that is a file that NCCL reads here; "" otherwise.
std::string conf_file_of(const Draft& draft, const std::optional<std::string>& file) {
  return file && draft.situation.conf_files.contains(*file) ? *file : std::string();
}

// The text of an nccl.conf without the lines that set `names`.
std::string without(const std::string& text, const std::set<std::string>& names) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const auto line = std::string_view(text).substr(at, end - at);
    const auto name = line.substr(0, line.find('='));
    if (line.starts_with('#') || !names.contains(std::string(name))) out += line;
    at = end;
  }
  return out;
}

Action removal(const model::Finding& finding, const std::string& name, const Setting* setting) {
  auto out =
      env_action(name, std::nullopt, finding.title + (finding.impact.empty() ? "" : ": " + finding.impact),
                 finding.reference);
  // What was set to get round a fault brings the fault back.
  if (finding.rule == "NCCL02" || finding.rule == "NCCL11") out.risk = model::ActionRisk::low;
  out.rule = finding.rule;
  if (!finding.observed.empty()) out.observed = setting != nullptr ? setting->value : finding.observed;
  if (finding.file)
    out.where = finding.line ? fmt::format("{}:{}", *finding.file, *finding.line) : *finding.file;
  else if (setting != nullptr)
    out.where = setting->where;
  return out;
}

// A variable that may be there for a reason that nothing at hand tells: a person decides.
void leave_to_person(Draft& draft, const model::Finding& finding) {
  const auto* setting = setting_of(draft, finding.subject);
  if (setting == nullptr) return;
  draft.notes.push_back(fmt::format("{}={} ({}) stays unless a person decides: {}; {}", setting->name,
                                    setting->value, setting->where, finding.title, finding.remedy));
}

// Every variable that is certain to be ignored or harmful on this machine, once; those of nccl.conf also as a
// new text of that file.
void remove_harmful(Draft& draft) {
  if (draft.situation.diagnosis == nullptr) return;
  std::set<std::string> seen;
  std::map<std::string, std::set<std::string>> files;
  for (const auto& finding : draft.situation.diagnosis->findings) {
    if (finding.severity == model::Severity::info) continue;
    if (!finding.action.starts_with(kUnset) || finding.severity != model::Severity::error) {
      if (finding.action.starts_with(kUnset) || finding.action.starts_with("fix-") ||
          finding.action.starts_with("rename-"))
        leave_to_person(draft, finding);
      continue;
    }
    const auto name = finding.action.substr(kUnset.size());
    if (const auto file = conf_file_of(draft, finding.file); !file.empty()) files[file].insert(name);
    if (seen.insert(name).second) draft.actions.push_back(removal(finding, name, setting_of(draft, name)));
  }
  for (const auto& [file, names] : files) {
    auto edit = file_action("edit-" + file, file, without(draft.situation.conf_files.at(file), names),
                            fmt::format("takes {} out of {}, which every NCCL job of this machine reads",
                                        fmt::join(names, ", "), file));
    edit.observed = draft.situation.conf_files.at(file);
    edit.precondition = fmt::format("{} is as it was when the plan was made", file);
    edit.source = "NCCL src/misc/param.cc";
    draft.actions.push_back(std::move(edit));
  }
}

// Bindings count GPUs by PCI address; CUDA's own default order is by speed.
void order_devices(Draft& draft) {
  if (draft.topology().gpus.size() < 2 || std::ranges::none_of(draft.topology().gpus, checks::is_nvidia))
    return;
  const auto* now = setting_of(draft, "CUDA_DEVICE_ORDER");
  if (now != nullptr && now->value == "PCI_BUS_ID") return;
  auto action =
      env_action("CUDA_DEVICE_ORDER", "PCI_BUS_ID",
                 "GPU numbers then follow PCI addresses, as the bindings, nvidia-smi and NCCL's logs count",
                 "CUDA environment variables");
  action.rule = "NUMA11";
  if (now != nullptr) action.observed = now->value;
  draft.actions.push_back(std::move(action));
}

bool is_active(const model::RdmaPort& port) { return port.state == "ACTIVE"; }

std::string port_name(const model::RdmaPort& port) { return fmt::format("{}:{}", port.device, port.port); }

// Rails are near a GPU and other active ports exist that NCCL would use as well: name the rails, by exact
// name.
void name_rails(Draft& draft) {
  const auto rails = checks::rails_of(draft.evidence);
  if (!rails.by_path || rails.ports.empty()) return;
  std::vector<std::string> names, others;
  for (const auto& port : draft.machine().ports) {
    if (!is_active(port) || port.software.value_or(false)) continue;
    const bool rail = std::ranges::find(rails.ports, &port) != rails.ports.end();
    (rail ? names : others).push_back(port_name(port));
  }
  std::ranges::sort(names);
  if (names.empty() || others.empty()) return;
  if (!multi_node(draft.job())) {
    draft.notes.push_back(fmt::format(
        "NCCL_IB_HCA is left out: the job runs on one node; on several nodes {} would have to stay out",
        fmt::join(others, ", ")));
    return;
  }
  auto action = env_action("NCCL_IB_HCA", fmt::format("={}", fmt::join(names, ",")),
                           fmt::format("NCCL uses every active port; {} {} not near any GPU",
                                       fmt::join(others, ", "), others.size() == 1 ? "is" : "are"),
                           "NCCL env guide: NCCL_IB_HCA, `=` for exact names");
  action.rule = "RDMA08";
  if (const auto* now = setting_of(draft, "NCCL_IB_HCA")) {
    if (now->value == *action.value) return;
    action.observed = now->value;
  }
  draft.actions.push_back(std::move(action));
}

// The index of the IPv4-mapped RoCE v2 entry, when all rails agree.
std::optional<int> common_gid(const std::vector<const model::RdmaPort*>& ports) {
  std::optional<int> index;
  for (const auto* port : ports) {
    const auto v2 = std::ranges::find_if(port->gids, [](const model::Gid& gid) {
      return gid.type == "RoCE v2" && gid.address.starts_with("0000:0000:0000:0000:0000:ffff:");
    });
    if (v2 == port->gids.end() || (index && *index != v2->index)) return std::nullopt;
    index = v2->index;
  }
  return index;
}

// Before 2.21 the index was 0 unless set (src/transport/net_ib.cc); since then NCCL looks it up by itself.
void name_gid(Draft& draft) {
  std::vector<const model::RdmaPort*> roce;
  for (const auto* port : checks::rails_of(draft.evidence).ports)
    if (port->link_layer == "Ethernet" && is_active(*port)) roce.push_back(port);
  if (roce.empty() || !multi_node(draft.job())) return;
  if (nccl(draft).empty()) {
    draft.notes.push_back(
        "NCCL_IB_GID_INDEX is left out: NCCL 2.21 and newer choose it; the version is not known "
        "(--nccl-version)");
    return;
  }
  if (version_at_least(nccl(draft), "2.21")) return;
  const auto index = common_gid(roce);
  if (!index) {
    draft.notes.push_back(
        "NCCL before 2.21 needs NCCL_IB_GID_INDEX here, but the rails have no common index of an IPv4 RoCE "
        "v2 entry");
    return;
  }
  if (*index == 0) return;
  auto action = env_action(
      "NCCL_IB_GID_INDEX", std::to_string(*index),
      fmt::format("NCCL {} takes index 0 (RoCE v1) unless told; {} is the IPv4 RoCE v2 entry of every rail",
                  nccl(draft), *index),
      "NCCL v2.19 net_ib.cc; sysfs gid_attrs/types");
  action.rule = "NCCL08";
  draft.actions.push_back(std::move(action));
}

bool has_c2c(const Draft& draft) {
  return std::ranges::any_of(draft.topology().gpus,
                             [](const model::Gpu& gpu) { return gpu.c2c.has_value(); });
}

// Settings that one version has off by default and the next one on.
void by_version(Draft& draft) {
  if (!has_c2c(draft) || !multi_node(draft.job())) return;
  if (version_in(draft, "2.26", "2.27"))
    draft.actions.push_back(
        env_action("NCCL_NET_GDR_C2C", "1",
                   "GPUDirect through the CPU's C2C link: off by default in 2.26, on since 2.27",
                   "NCCL src/graph/paths.cc"));
  if (version_in(draft, "2.27", "2.28"))
    draft.actions.push_back(env_action(
        "NCCL_PXN_C2C", "1", "PXN through a C2C-attached NIC: off by default in 2.27, on since 2.28",
        "NCCL src/graph/paths.cc"));
}

void name_interface(Draft& draft) {
  if (!multi_node(draft.job())) return;
  if (!draft.job().interface) {
    const bool bridges =
        std::ranges::any_of(draft.topology().nics, [](const model::Nic& nic) { return nic.is_virtual; });
    if (bridges)
      draft.notes.push_back(
          "NCCL_SOCKET_IFNAME is left out: which interface joins the nodes is not known "
          "(--set interface=NAME); bridges and tunnels of this machine may be taken for it");
    return;
  }
  auto action =
      env_action("NCCL_SOCKET_IFNAME", "=" + *draft.job().interface,
                 "bootstrap over the interface that joins the nodes, by its exact name; data takes the HCAs",
                 "NCCL env guide");
  action.rule = "NCCL17";
  action.basis = ActionBasis::convention;
  draft.actions.push_back(std::move(action));
}

// A NIC beyond a host bridge: NCCL stages through the host unless told, and only a measurement can tell
// better.
void say_gdr(Draft& draft) {
  for (const auto& pair : model::pairs_of(draft.topology(), *draft.situation.paths)) {
    const bool rdma = std::ranges::any_of(draft.topology().nics, [&](const model::Nic& nic) {
      return nic.rdma && std::ranges::find(pair.nics, nic.id) != pair.nics.end();
    });
    if (!rdma || (pair.type != model::PathType::phb && pair.type != model::PathType::node)) continue;
    draft.notes.push_back(
        fmt::format("NCCL_NET_GDR_LEVEL is left at its default (PXB): {} reaches its NIC by {}; measure "
                    "NCCL_NET_GDR_LEVEL={} "
                    "against it before it is set",
                    pair.gpu, model::name_of(pair.type), pair.type == model::PathType::phb ? "PHB" : "SYS"));
    return;
  }
}

// One traffic class for NCCL's data: DSCP in the upper six bits, ECT(0) below (as UCX's default 106 for DSCP
// 26).
void name_traffic_class(Draft& draft) {
  if (!draft.job().dscp || draft.job().transport == Transport::ucx) return;
  const int dscp = *draft.job().dscp;
  auto action = env_action("NCCL_IB_TC", std::to_string(dscp << 2 | 2),
                           fmt::format("DSCP {} of the lossless class, with the ECN bits ECT(0)", dscp),
                           "NCCL env guide; UCX uct/ib/base/ib_iface.c");
  action.rule = "QOS04";
  if (const auto* now = setting_of(draft, "NCCL_IB_TC")) {
    if (now->value == *action.value) return;
    action.observed = now->value;
  }
  draft.actions.push_back(std::move(action));
}

}  // namespace

void plan_environment(Draft& draft) {
  remove_harmful(draft);
  order_devices(draft);
  if (draft.job().transport != Transport::ucx) {
    name_rails(draft);
    name_gid(draft);
    by_version(draft);
    name_interface(draft);
    say_gdr(draft);
  }
  name_traffic_class(draft);
}

}  // namespace topotune::plan
