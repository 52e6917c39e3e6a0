#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checks/facts_of.h"
#include "model/plan.h"
#include "plan/plan.h"

// The parts of a plan, one file each. Each adds actions and notes; make_plan puts them in order.
namespace topotune::plan {

struct Draft {
  const Situation& situation;
  checks::Evidence evidence;  // the machine and its paths, for what rules and plans ask alike
  std::vector<model::Action> actions;
  std::vector<std::string> notes;
  CpuSet reserved;  // CPUs that interrupts take

  const model::Machine& machine() const { return *situation.machine; }
  const model::Topology& topology() const { return situation.machine->topology; }
  const Job& job() const { return situation.job; }
};

void plan_environment(Draft& draft);  // what to take out, what NCCL needs by its version
void plan_ucx(Draft& draft);
void plan_kernel(Draft& draft);   // sysctls, governors, ASPM, limits, modules, boot arguments
void plan_pcie(Draft& draft);     // ACS, MaxReadReq, ATS
void plan_network(Draft& draft);  // MTU, interrupts
void plan_qos(Draft& draft);      // DSCP, PFC, ECN, rate limits of the host

// The findings of one rule.
std::vector<const model::Finding*> findings_of(const Draft& draft, std::string_view rule);
// The value that is in force for a variable; null: not set.
const Setting* setting_of(const Draft& draft, std::string_view name);

// Actions whose texts follow from their kind.
model::Action env_action(std::string name, std::optional<std::string> value, std::string reason,
                         std::string source);
model::Action write_action(std::string id, std::string path, std::string value,
                           std::optional<std::string> observed, std::string reason);
model::Action file_action(std::string id, std::string path, std::string content, std::string reason);
// A program that is run once; precondition, read-back and undo are the caller's.
model::Action command_action(std::string id, std::string target, std::vector<std::string> command,
                             std::string reason);
model::Action person_action(std::string id, model::ActionKind kind, std::string target,
                            std::optional<std::string> value, std::string reason);

inline constexpr std::string_view kFileMark = "# written by topotune; `topotune undo` takes it away\n";

}  // namespace topotune::plan
