// NCCL's network variables: GID index, HCA and interface lists, RDMA switch, time-outs, plugins.
#include <algorithm>

#include "base/text.h"
#include "lint/context.h"

namespace topotune::lint {

namespace {

using model::Severity;
using parse::Setting;
using sv = std::string_view;

std::optional<long long> number_of(const Setting& setting) {
  if (!setting.literal || setting.value.empty()) return std::nullopt;
  const IntegerReading reading = read_integer(setting.value);
  return reading.range || !reading.whole ? std::nullopt : std::optional(reading.value);
}

void gid_index(Context& context, const Setting& setting) {
  const auto number = setting.literal ? number_of(setting) : std::nullopt;
  if (setting.name != "NCCL_IB_GID_INDEX" || !number || *number < 0 || older(context.nccl, since(2, 21)))
    return;
  Found& found = context.add("NCCL07", setting, "unset");
  if (!context.nccl) found.finding.severity = Severity::info;  // right with NCCL up to 2.20 on RoCE
  found.finding.remedy =
      "NCCL 2.21 and newer: unset it; which GID is taken follows from NCCL_IB_ADDR_FAMILY, "
      "NCCL_IB_ADDR_RANGE and NCCL_IB_ROCE_VERSION_NUM; InfiniBand never needs it";
  found.finding.action = "unset-" + setting.name;
}

// --- NCCL09
// ----------------------------------------------------------------------------------------------------

sv device_of(sv item) { return item.substr(0, item.find(':')); }

std::vector<std::string> matched(sv item, const std::vector<std::string>& devices) {
  std::vector<std::string> out;
  for (const auto& device : devices)
    if (device.starts_with(item)) out.push_back(device);
  return out;
}

// mlx5_1 is also the beginning of mlx5_10 ... mlx5_19; mlx5_0 and mlx5_10 are the beginning of no usual name.
bool is_prefix_of_others(sv device) {
  if (device == "mlx5" || device == "mlx4" || device == "hfi1") return false;  // all of a driver, as meant
  if (device.size() < 2 || !is_digit(device.back()) || device.back() == '0') return false;
  return !is_digit(device[device.size() - 2]);
}

void hca_list(Context& context, const Setting& setting) {
  if (setting.name != "NCCL_IB_HCA" || setting.value.empty() || !setting.literal) return;
  sv list = setting.value;
  const bool negated = list.starts_with('^');
  if (negated) list.remove_prefix(1);
  if (list.starts_with('=')) return;
  std::string clashes;
  for (const sv item : split(list, ',')) {
    const sv device = device_of(item);
    if (device.empty()) continue;
    if (context.options.rdma_devices) {
      const auto names = matched(device, *context.options.rdma_devices);
      const bool self = std::ranges::find(names, device) != names.end();
      if (names.size() > 1 && self)
        clashes += fmt::format("{}{} matches {} devices", clashes.empty() ? "" : ", ", device, names.size());
    } else if (is_prefix_of_others(device)) {
      clashes += (clashes.empty() ? "" : ", ") + std::string(device);
    }
  }
  if (clashes.empty()) return;
  const std::string right = fmt::format("{}={}", negated ? "^" : "", list);
  Found& found = context.add("NCCL09", setting, right);
  if (!context.options.rdma_devices) {
    found.finding.severity = Severity::info;
    found.finding.title =
        fmt::format("NCCL_IB_HCA matches by prefix: {} also stands for longer names", clashes);
  } else {
    found.finding.title = fmt::format("NCCL_IB_HCA: {}", clashes);
  }
  found.finding.remedy = fmt::format("NCCL_IB_HCA=\"{}\" (= once at the start: exact match)", right);
  found.finding.action = "fix-NCCL_IB_HCA";
  if (context.options.rdma_devices) context.set_value(found, setting, right);
}

// --- NCCL11
// ----------------------------------------------------------------------------------------------------

void rdma_switch(Context& context, const Setting& setting) {
  if (setting.name != "NCCL_IB_DISABLE" || !setting.literal) return;
  const auto number = number_of(setting);
  if (number == 0) {
    Found& found = context.add("NCCL11", setting, "unset");
    found.finding.severity = Severity::info;
    found.finding.title = "NCCL_IB_DISABLE=0 is the default: RDMA is used without it";
    found.finding.impact = "none";
    found.finding.action = "unset-NCCL_IB_DISABLE";
    context.drop_idle(found, setting);
    return;
  }
  if (!number || context.other_network()) return;
  Found& found = context.add("NCCL11", setting, "unset");
  const bool single = context.job.nodes == 1 || context.options.rails == false;
  const bool certain = context.job.nodes.value_or(1) > 1 && context.options.rails == true;
  if (!certain) found.finding.severity = single ? Severity::info : Severity::warn;
  if (context.job.nodes == 1)
    found.finding.impact = "none on one node; with several nodes the job falls back to sockets";
  if (context.job.nodes.value_or(1) > 1)
    found.finding.title = fmt::format("RDMA is switched off in a job of {} nodes", *context.job.nodes);
  found.finding.action = "unset-NCCL_IB_DISABLE";
  context.drop(found, setting);
}

// --- NCCL17
// ----------------------------------------------------------------------------------------------------

void interface_list(Context& context, const Setting& setting) {
  if (setting.name != "NCCL_SOCKET_IFNAME" || setting.value.empty() || !setting.literal) return;
  sv list = setting.value;
  if (list.starts_with('^')) return;
  const bool exact = list.starts_with('=');
  if (exact) list.remove_prefix(1);
  const auto& present = context.options.interfaces;
  std::string why;
  bool only_local = true, any = false;
  for (const sv item : split(list, ',')) {
    if (item.empty()) continue;
    any = true;
    const bool inner =
        item == "lo" || item.starts_with("docker") || item.starts_with("veth") || item.starts_with("virbr");
    only_local = only_local && inner;
    if (!present) continue;
    const auto names = matched(item, *present);
    const bool there = exact ? std::ranges::find(*present, item) != present->end() : !names.empty();
    if (!there)
      why = fmt::format("{} matches no interface", item);
    else if (!exact && names.size() > 1)
      why = fmt::format("{} matches {} interfaces", item, names.size());
  }
  if (any && only_local && why.empty()) why = fmt::format("{} reaches no other node", list);
  if (!any || why.empty() || (only_local && context.job.nodes == 1)) return;
  Found& found = context.add("NCCL17", setting, "\"=<interface>\", or ^lo,docker,veth");
  found.finding.title = fmt::format("NCCL_SOCKET_IFNAME: {}", why);
  if (list == "lo" && !context.job.nodes && !present) found.finding.severity = Severity::info;
  found.finding.action = "fix-NCCL_SOCKET_IFNAME";
}

// --- NCCL23
// ----------------------------------------------------------------------------------------------------

std::string duration(long long exponent) {
  double seconds = 4.096e-6;
  for (long long n = 0; n < exponent; ++n) seconds *= 2;
  return seconds >= 1 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.1f} ms", seconds * 1000);
}

void ib_timeout(Context& context, const Setting& setting) {
  if (setting.name != "NCCL_IB_TIMEOUT") return;
  const auto number = number_of(setting);
  if (!number || (*number > 0 && *number < 24)) return;
  Found& found = context.add("NCCL23", setting, "18 to 22 (4.096 us x 2^n; 22 is 17 s a try)");
  if (*number == 0) found.finding.severity = Severity::warn;
  if (*number >= 24 && *number <= 31) {
    found.finding.severity = Severity::info;
    found.finding.title =
        fmt::format("NCCL_IB_TIMEOUT={} waits {} for each of up to 7 tries", *number, duration(*number));
    found.finding.impact = "minutes until a dead peer is noticed";
    return;
  }
  if (*number > 31)
    found.finding.title =
        fmt::format("NCCL_IB_TIMEOUT={} is no number of seconds but an exponent up to 31", setting.value);
  found.finding.remedy = "NCCL_IB_TIMEOUT=22 for a long wait, or unset it (20; 18 in 2.14-2.22, 14 before)";
  found.finding.action = "fix-NCCL_IB_TIMEOUT";
  if (*number > 31) context.set_value(found, setting, "22");
}

void network_and_plugin(Context& context, const Setting& setting) {
  if (setting.name != "NCCL_NET" || !icontains(setting.value, "Libfabric")) return;
  const auto* plugin = context.last("NCCL_NET_PLUGIN");
  if (plugin == nullptr || plugin->value != "ofi") return;
  Found& found = context.add("NCCL28", *plugin, "unset");
  found.finding.severity = Severity::warn;  // error where the library is called libnccl-net.so
  found.finding.title = "NCCL_NET_PLUGIN=ofi beside NCCL_NET fails where the plugin is libnccl-net.so";
  found.finding.action = "unset-NCCL_NET_PLUGIN";
}

}  // namespace

void check_nccl_network(Context& context) {
  for (const auto* setting : context.settings()) {
    gid_index(context, *setting);
    hca_list(context, *setting);
    rdma_switch(context, *setting);
    interface_list(context, *setting);
    ib_timeout(context, *setting);
    network_and_plugin(context, *setting);
  }
}

}  // namespace topotune::lint
