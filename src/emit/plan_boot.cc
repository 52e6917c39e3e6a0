// Forms that hold after a boot: systemd, udev, sysctl, kernel arguments.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "emit/plan_files.h"

namespace topotune::emit {

namespace {

using model::Action;
using model::ActionKind;

bool at_boot(const Action& action) {
  return action.automatic && action.risk != model::ActionRisk::disruptive &&
         action.scope == model::ActionScope::boot;
}

// Values of the kernel are gone after a boot: the unit does them again from the reviewed plan.
std::optional<std::string> systemd(const model::Plan& plan) {
  std::string listed;
  for (const auto& action : plan.actions)
    if (at_boot(action)) listed += fmt::format("#   {}\n", printable(action.id));
  if (listed.empty()) return std::nullopt;
  return form_head(plan,
                   "/etc/systemd/system/topotune.service; it does, from /etc/topotune/plan.json (topotune "
                   "plan --json):") +
         listed +
         "[Unit]\n"
         "Description=Communication settings of this machine (topotune)\n"
         "After=systemd-modules-load.service systemd-udev-settle.service network.target\n"
         "Before=slurmd.service kubelet.service\n"
         "ConditionPathExists=/etc/topotune/plan.json\n"
         "\n"
         "[Service]\n"
         "Type=oneshot\n"
         "RemainAfterExit=yes\n"
         "ExecStart=/usr/bin/topotune apply /etc/topotune/plan.json --yes --quiet\n"
         "ExecStop=/usr/bin/topotune undo\n"
         "\n"
         "[Install]\n"
         "WantedBy=multi-user.target\n";
}

// "/sys/class/net/ens1/mtu" -> "ens1".
std::optional<std::string> interface_of(const Action& action) {
  const auto parts = split(action.target, '/');
  if (action.kind != ActionKind::sysfs || parts.size() != 6 || parts[3] != "net" || parts[5] != "mtu")
    return std::nullopt;
  return std::string(parts[4]);
}

std::optional<std::string> udev(const model::Plan& plan) {
  std::string out;
  for (const auto& action : plan.actions) {
    if (const auto name = interface_of(action))
      out += fmt::format("ACTION==\"add\", SUBSYSTEM==\"net\", KERNEL==\"{}\", ATTR{{mtu}}=\"{}\"\n", *name,
                         *action.value);
    if (action.kind == ActionKind::sysfs && action.target.ends_with("/cpufreq/scaling_governor")) {
      const auto parts = split(action.target, '/');
      out += fmt::format(
          "ACTION==\"add\", SUBSYSTEM==\"cpu\", KERNEL==\"{}\", ATTR{{cpufreq/scaling_governor}}=\"{}\"\n",
          parts[5], *action.value);
    }
  }
  if (out.empty()) return std::nullopt;
  return form_head(plan, "/etc/udev/rules.d/90-topotune.rules") + out;
}

std::optional<std::string> sysctl(const model::Plan& plan) {
  constexpr std::string_view kHead = "/proc/sys/";
  std::string out;
  for (const auto& action : plan.actions) {
    if (action.kind != ActionKind::sysfs || !action.target.starts_with(kHead)) continue;
    auto name = action.target.substr(kHead.size());
    std::ranges::replace(name, '/', '.');
    out += fmt::format("{} = {}\n", name, *action.value);
  }
  if (out.empty()) return std::nullopt;
  return form_head(plan, "/etc/sysctl.d/90-topotune.conf") + out;
}

std::optional<std::string> kernel_argument(const model::Plan& plan) {
  std::string out;
  for (const auto& action : plan.actions)
    if (action.kind == ActionKind::config && action.target == "kernel-command-line")
      out += (out.empty() ? "" : " ") + *action.value;
  std::string bridges;
  for (const auto& action : plan.actions)
    if (action.id.starts_with("acs-")) bridges += (bridges.empty() ? "" : ";") + action.id.substr(4);
  // Linux 4.19 and newer: addresses between semicolons (admin-guide/kernel-parameters).
  if (!bridges.empty()) out += (out.empty() ? "" : " ") + ("pci=disable_acs_redir=" + bridges);
  if (out.empty()) return std::nullopt;
  return out + "\n";
}

constexpr PlanForm kForms[] = {{"systemd", "a unit that does the plan again at each boot", systemd},
                               {"udev", "udev rules: MTU, governors", udev},
                               {"sysctl", "a file for sysctl.d", sysctl},
                               {"kernel-argument", "words for the kernel command line", kernel_argument}};

}  // namespace

std::span<const PlanForm> plan_boot_forms() { return kForms; }

}  // namespace topotune::emit
