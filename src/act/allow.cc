#include "act/allow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/bdf.h"
#include "base/text.h"

namespace topotune::act {

namespace {

using model::Action;
using model::ActionKind;

// "*" stands for one name. A pattern matches whole paths.
constexpr std::array kValues{"/proc/sys/kernel/numa_balancing",
                             "/proc/sys/vm/zone_reclaim_mode",
                             "/proc/sys/net/core/rmem_max",
                             "/proc/sys/net/core/wmem_max",
                             "/sys/devices/system/cpu/*/cpufreq/scaling_governor",
                             "/sys/devices/system/cpu/*/cpufreq/energy_performance_preference",
                             "/sys/module/pcie_aspm/parameters/policy",
                             "/sys/kernel/mm/transparent_hugepage/enabled",
                             "/sys/class/net/*/mtu",
                             "/sys/class/net/*/ecn/roce_np/enable/*",
                             "/sys/class/net/*/ecn/roce_rp/enable/*"};
constexpr std::array kFiles{"/etc/sysctl.d/*",
                            "/etc/security/limits.d/*",
                            "/etc/modules-load.d/*",
                            "/etc/modprobe.d/*",
                            "/etc/udev/rules.d/*",
                            "/etc/systemd/system/*.service.d/*",
                            "/etc/systemd/system/topotune.service",
                            "/etc/nccl.conf"};

std::vector<std::vector<std::string>> commands() {
  return {{"modprobe", "nvidia-peermem"},
          {"systemctl", "daemon-reload"},
          {"systemctl", "try-restart", "irqbalance.service"}};
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         std::ranges::all_of(
             name, [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != '/' && c != 0x7f; });
}

// "cpu0" for "*", "slurmd.service.d" for "*.service.d".
bool name_matches(std::string_view pattern, std::string_view name) {
  if (!pattern.starts_with('*')) return pattern == name;
  pattern.remove_prefix(1);
  return is_plain_name(name) && name.size() > pattern.size() && name.ends_with(pattern);
}

bool path_matches(std::string_view pattern, std::string_view path) {
  const auto want = split(pattern, '/'), have = split(path, '/');
  if (want.size() != have.size()) return false;
  for (std::size_t i = 0; i < want.size(); ++i)
    if (!name_matches(want[i], have[i])) return false;
  return true;
}

bool is_conf_of_user(std::string_view path) {  // ~/.nccl.conf of any user
  const auto parts = split(path, '/');
  return path.starts_with("/") && parts.size() >= 3 && parts.back() == ".nccl.conf" &&
         std::all_of(parts.begin() + 1, parts.end(), is_plain_name);
}

bool is_irq(std::string_view path) {
  const auto parts = split(path, '/');
  return parts.size() == 5 && parts[1] == "proc" && parts[2] == "irq" && parse_int<unsigned>(parts[3]) &&
         parts[4] == "smp_affinity_list";
}

template <std::size_t N>
bool one_of(const std::array<const char*, N>& patterns, std::string_view path) {
  return std::ranges::any_of(patterns, [&](const char* pattern) { return path_matches(pattern, path); });
}

bool is_one_line(const std::string& value) {
  return !value.empty() && value.size() <= 256 &&
         value.find_first_of(std::string_view("\n\r\0", 3)) == std::string::npos;
}

std::optional<std::string> refused_value(const Action& action, bool known) {
  if (!known) return "not a setting that this program changes";
  if (!action.value || !is_one_line(*action.value)) return "its value is not one line of text";
  return std::nullopt;
}

}  // namespace

std::optional<ConfigTarget> config_target(const std::string& target) {
  constexpr std::string_view kHead = "pci:";
  const auto slash = target.rfind('/');
  if (!target.starts_with(kHead) || slash == std::string::npos) return std::nullopt;
  const auto address = parse_bdf(std::string_view(target).substr(kHead.size(), slash - kHead.size()));
  const auto field = target.substr(slash + 1);
  if (!address || (field != "ACSCtl" && field != "MaxReadReq")) return std::nullopt;
  return ConfigTarget{address->to_string(), field};
}

std::optional<std::string> refused(const Action& action) {
  switch (action.kind) {
    case ActionKind::env:
      return "a variable is set where the job starts (topotune run)";
    case ActionKind::sysfs:
      return refused_value(action, one_of(kValues, action.target));
    case ActionKind::affinity:
      if (const auto why = refused_value(action, is_irq(action.target))) return why;
      return parse_cpu_list(*action.value) ? std::nullopt
                                           : std::optional<std::string>("its value is no CPU list");
    case ActionKind::config:
      return refused_value(action, config_target(action.target).has_value());
    case ActionKind::file:
      return one_of(kFiles, action.target) || is_conf_of_user(action.target)
                 ? std::nullopt
                 : std::optional<std::string>("not a file that this program writes");
    case ActionKind::command: {
      const auto known = commands();
      return std::ranges::find(known, action.command) != known.end()
                 ? std::nullopt
                 : std::optional<std::string>("not a command that this program runs");
    }
  }
  return "of an unknown kind";
}

}  // namespace topotune::act
