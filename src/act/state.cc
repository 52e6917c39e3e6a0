#include "act/state.h"

#include "act/allow.h"
#include "act/pci_config.h"
#include "base/cpuset.h"
#include "base/text.h"

namespace topotune::act {

namespace {

using model::ActionKind;

constexpr const char* kPeerModule = "/sys/module/nvidia_peermem";

std::string chosen_word(std::string_view text) {
  const auto open = text.find('['), close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return std::string(text);
  return std::string(text.substr(open + 1, close - open - 1));
}

Result<std::optional<std::string>> observe_value(const System& system, const std::string& path) {
  const auto text = system.read(path);
  if (!text) return tl::unexpected(text.error());
  return std::optional<std::string>(chosen_word(trim(*text)));
}

Result<std::optional<std::string>> observe_config(const System& system, const std::string& target) {
  const auto at = config_target(target);
  if (!at) return fail(Errc::malformed, "{}: not pci:ADDRESS/FIELD", target);
  const auto bytes = system.read(path_of(ActionKind::config, target));
  if (!bytes) return tl::unexpected(bytes.error());
  const auto field = find_field(*bytes, at->field);
  if (!field) return fail(field.error().code, "{}: {}", target, field.error().text);
  return std::optional<std::string>(field_text(*field, at->field));
}

Result<std::optional<std::string>> observe_file(const System& system, const std::string& path) {
  auto state = system.file(path);
  if (!state) return tl::unexpected(state.error());
  if (!*state) return std::optional<std::string>();
  return std::optional<std::string>(std::move((*state)->bytes));
}

}  // namespace

std::string path_of(ActionKind kind, const std::string& target) {
  if (kind != ActionKind::config) return target;
  const auto at = config_target(target);
  return at ? "/sys/bus/pci/devices/" + at->bdf + "/config" : target;
}

Result<std::optional<std::string>> observe(const System& system, ActionKind kind, const std::string& target) {
  switch (kind) {
    case ActionKind::sysfs:
    case ActionKind::affinity:
      return observe_value(system, target);
    case ActionKind::config:
      return observe_config(system, target);
    case ActionKind::file:
      return observe_file(system, target);
    case ActionKind::command:
      if (target == "nvidia-peermem" && !system.exists(kPeerModule)) return std::optional<std::string>();
      return std::optional<std::string>("");
    case ActionKind::env:
      break;
  }
  return fail(Errc::unsupported, "{}: a variable of a process, not of the machine", target);
}

bool same_value(ActionKind kind, const std::string& a, const std::string& b) {
  if (a == b) return true;
  if (kind == ActionKind::affinity) {
    const auto x = parse_cpu_list(trim(a)), y = parse_cpu_list(trim(b));
    return x && y && *x == *y;
  }
  if (kind == ActionKind::config) {
    const auto x = parse_hex(a), y = parse_hex(b);
    return a.starts_with("0x") && b.starts_with("0x") && x && x == y;
  }
  return false;
}

Result<bool> holds(const System& system, const model::Action& action) {
  const auto now = observe(system, action.kind, action.target);
  if (!now) return tl::unexpected(now.error());
  if (action.kind == ActionKind::command) return now->has_value();
  if (!*now || !action.value) return now->has_value() == action.value.has_value();
  return same_value(action.kind, **now, *action.value);
}

}  // namespace topotune::act
