// Forms that a shell, an env file reader, NCCL or Docker takes.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "emit/plan_files.h"

namespace topotune::emit {

namespace {

using model::Action;
using model::ActionKind;

std::string reason_line(const Action& action) {
  auto text = printable(action.reason);
  std::ranges::replace(text, '\n', ' ');
  return fmt::format("# {}{}\n", text, action.rule.empty() ? "" : " [" + action.rule + "]");
}

std::string words(const std::vector<std::string>& command) {
  std::string out;
  for (const auto& word : command) out += (out.empty() ? "" : " ") + shell_word(word);
  return out;
}

// How a person does one action in a shell.
std::string shell_line(const Action& action) {
  switch (action.kind) {
    case ActionKind::env:
      return action.value ? fmt::format("export {}={}\n", action.target, shell_word(*action.value))
                          : fmt::format("unset {}\n", action.target);
    case ActionKind::sysfs:
    case ActionKind::affinity:
      return fmt::format("printf '%s\\n' {} > {}\n", shell_word(action.value.value_or("")),
                         shell_word(action.target));
    case ActionKind::file:
      if (!action.value) return fmt::format("rm -f -- {}\n", shell_word(action.target));
      return fmt::format("mkdir -p -- {}\nprintf '%s' {} > {}\n",
                         shell_word(action.target.substr(0, action.target.rfind('/'))),
                         shell_word(*action.value), shell_word(action.target));
    case ActionKind::command:
      return words(action.command) + "\n";
    case ActionKind::config:
      return action.command.empty()
                 ? fmt::format("# {}: {}\n", printable(action.target), printable(action.value.value_or("")))
                 : words(action.command) + "\n";
  }
  return "";
}

std::optional<std::string> shell(const model::Plan& plan) {
  std::string variables, machine;
  for (const auto& action : plan.actions) {
    const auto text = reason_line(action) + shell_line(action);
    if (action.kind == ActionKind::env) {
      variables += text;
    } else {
      const bool person = !action.automatic || action.risk == model::ActionRisk::disruptive;
      machine += person
                     ? reason_line(action) +
                           "# by hand: " + shell_line(action).substr(0, shell_line(action).find('\n')) + "\n"
                     : text;
    }
  }
  if (variables.empty() && machine.empty()) return std::nullopt;
  return "#!/bin/sh\n" + form_head(plan, "`topotune apply --yes` does the same with read-back and undo") +
         "set -eu\n" + (variables.empty() ? "" : "\n# variables of the job\n" + variables) +
         (machine.empty() ? "" : "\n# the machine, as root\n" + machine);
}

std::optional<std::string> env_file(const model::Plan& plan) {
  std::string out;
  for (const auto& action : plan.actions) {
    if (action.kind != ActionKind::env) continue;
    out += reason_line(action);
    out += action.value ? fmt::format("{}={}\n", action.target, *action.value)
                        : fmt::format("# take out: {}\n", action.target);
  }
  if (out.empty()) return std::nullopt;
  return form_head(plan, "NAME=value, as docker --env-file and systemd EnvironmentFile read it") + out;
}

// NCCL's own reader: no blanks, no quotes, # in the first column; the environment wins over it
// (src/misc/param.cc).
std::optional<std::string> nccl_conf(const model::Plan& plan) {
  std::string out;
  for (const auto& action : plan.actions)
    if (action.kind == ActionKind::env && action.target.starts_with("NCCL_")) {
      out += reason_line(action);
      out += action.value ? fmt::format("{}={}\n", action.target, *action.value)
                          : fmt::format("# no line may set {}\n", action.target);
    }
  if (out.empty()) return std::nullopt;
  return form_head(plan, "/etc/nccl.conf or ~/.nccl.conf; variables of the environment win over it") + out;
}

std::optional<std::string> docker(const model::Plan& plan) {
  if (plan.bindings.empty() && plan.actions.empty()) return std::nullopt;
  std::string out = "--gpus=all --ulimit memlock=-1 --ulimit stack=67108864 --ipc=host --network=host";
  const bool rdma = std::ranges::any_of(plan.bindings, [](const auto& b) { return !b.nic_names.empty(); });
  if (rdma) out += " --device=/dev/infiniband --cap-add=IPC_LOCK";
  for (const auto& action : plan.actions)
    if (action.kind == ActionKind::env && action.value)
      out += " --env " + shell_word(action.target + "=" + *action.value);
  std::string notes =
      "# set_mempolicy(2) is closed by Docker's default seccomp profile: --cap-add=SYS_NICE lets `topotune "
      "run` bind memory\n";
  for (const auto& action : plan.actions)
    if (action.kind == ActionKind::env && !action.value)
      notes += fmt::format("# the image or the command must not set {}\n", action.target);
  return form_head(plan, "options of docker run; inside: topotune run --per-gpu -- CMD") + notes + out +
         " --cap-add=SYS_NICE\n";
}

constexpr PlanForm kForms[] = {
    {"shell", "a POSIX shell script: variables, then changes of the machine", shell},
    {"env", "an env file: NAME=value", env_file},
    {"nccl-conf", "lines for nccl.conf, as NCCL's own reader takes them", nccl_conf},
    {"docker", "options of docker run", docker}};

}  // namespace

std::span<const PlanForm> plan_shell_forms() { return kForms; }

}  // namespace topotune::emit
