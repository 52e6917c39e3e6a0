#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/plan.h"

namespace topotune::emit {

// One form of a plan for another program. `render` gives its text; nothing where the plan holds nothing for
// it.
struct PlanForm {
  std::string_view name;  // "shell", "env", "nccl-conf", ...
  std::string_view what;
  std::optional<std::string> (*render)(const model::Plan& plan);
};
std::span<const PlanForm> plan_forms();  // in the order of the help
const PlanForm* find_plan_form(std::string_view name);

// The families, one file each; plan_forms() joins them.
std::span<const PlanForm> plan_shell_forms();  // shell, env, nccl-conf, docker
std::span<const PlanForm> plan_boot_forms();   // systemd, udev, sysctl, kernel-argument
std::span<const PlanForm>
plan_cluster_forms();  // slurm-prolog, gres.conf, topology.conf, rankfile, hostfile, kubernetes, mpijob
std::span<const PlanForm> plan_switch_forms();  // sonic, nvue, onyx

// A word as a POSIX shell reads it back unchanged.
std::string shell_word(std::string_view word);
// A YAML double-quoted scalar.
std::string yaml_word(std::string_view word);
// What was said about the job: the value of a key, or nothing.
std::optional<std::string> said(const model::Plan& plan, std::string_view key);
// "# topotune plan for NAME" and a line about the form.
std::string form_head(const model::Plan& plan, std::string_view what, std::string_view comment = "#");

}  // namespace topotune::emit
