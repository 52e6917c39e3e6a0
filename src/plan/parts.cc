#include "plan/parts.h"

#include <algorithm>

namespace topotune::plan {

using model::Action;
using model::ActionKind;
using model::ActionRisk;
using model::ActionScope;

std::vector<const model::Finding*> findings_of(const Draft& draft, std::string_view rule) {
  std::vector<const model::Finding*> out;
  if (draft.situation.diagnosis == nullptr) return out;
  for (const auto& finding : draft.situation.diagnosis->findings)
    if (finding.rule == rule) out.push_back(&finding);
  return out;
}

const Setting* setting_of(const Draft& draft, std::string_view name) {
  const auto at = std::ranges::find(draft.situation.settings, name, &Setting::name);
  return at == draft.situation.settings.end() ? nullptr : &*at;
}

Action env_action(std::string name, std::optional<std::string> value, std::string reason,
                  std::string source) {
  Action out;
  out.id = (value ? "set-" : "unset-") + name;
  out.kind = ActionKind::env;
  out.precondition =
      value ? fmt::format("{} is not set otherwise for this job", name) : fmt::format("{} is set", name);
  out.read_back = value ? fmt::format("/proc/PID/environ of each rank has {}={}", name, *value)
                        : fmt::format("/proc/PID/environ of each rank has no {}", name);
  out.undo = value ? fmt::format("unset {}", name) : fmt::format("set {} again", name);
  out.command = value ? std::vector<std::string>{"export", name + "=" + *value}
                      : std::vector<std::string>{"unset", name};
  out.target = std::move(name);
  out.value = std::move(value);
  out.reason = std::move(reason);
  out.source = std::move(source);
  out.scope = ActionScope::process;
  return out;
}

Action write_action(std::string id, std::string path, std::string value, std::optional<std::string> observed,
                    std::string reason) {
  Action out;
  out.id = std::move(id);
  out.kind = ActionKind::sysfs;
  out.precondition =
      observed ? fmt::format("{} reads {}", path, *observed) : fmt::format("{} can be read", path);
  out.read_back = fmt::format("{} reads {}", path, value);
  out.undo = observed ? fmt::format("write {} to {}", *observed, path)
                      : fmt::format("write back what {} held before", path);
  out.target = std::move(path);
  out.value = std::move(value);
  out.observed = std::move(observed);
  out.reason = std::move(reason);
  out.scope = ActionScope::boot;
  out.risk = ActionRisk::low;
  out.automatic = true;
  return out;
}

Action file_action(std::string id, std::string path, std::string content, std::string reason) {
  Action out;
  out.id = std::move(id);
  out.kind = ActionKind::file;
  out.precondition = fmt::format("{} does not exist, or is a regular file", path);
  out.read_back = fmt::format("{} has this content", path);
  out.undo = fmt::format("restore {} as it was, or remove it", path);
  out.target = std::move(path);
  out.value = std::move(content);
  out.reason = std::move(reason);
  out.scope = ActionScope::persistent;
  out.risk = ActionRisk::low;
  out.automatic = true;
  return out;
}

Action command_action(std::string id, std::string target, std::vector<std::string> command,
                      std::string reason) {
  Action out;
  out.id = std::move(id);
  out.kind = ActionKind::command;
  out.target = std::move(target);
  out.command = std::move(command);
  out.reason = std::move(reason);
  out.scope = ActionScope::boot;
  out.risk = ActionRisk::low;
  out.automatic = true;
  return out;
}

Action person_action(std::string id, ActionKind kind, std::string target, std::optional<std::string> value,
                     std::string reason) {
  Action out;
  out.id = std::move(id);
  out.kind = kind;
  out.target = std::move(target);
  out.value = std::move(value);
  out.reason = std::move(reason);
  out.scope = ActionScope::persistent;
  out.risk = ActionRisk::disruptive;
  return out;
}

}  // namespace topotune::plan
