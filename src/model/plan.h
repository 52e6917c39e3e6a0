#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpuset.h"
#include "model/topology.h"

namespace topotune::model {

// The words of `topotune.plan/1` (docs/formats/plan.md).
enum class ActionKind { env, file, sysfs, command, affinity, config };
enum class ActionScope { process, boot, persistent };
enum class ActionRisk { none, low, disruptive };
enum class ActionBasis { measured, documented, convention };

const char* name_of(ActionKind kind);
const char* name_of(ActionScope scope);
const char* name_of(ActionRisk risk);
const char* name_of(ActionBasis basis);
std::optional<ActionKind> action_kind_from(std::string_view name);
std::optional<ActionScope> action_scope_from(std::string_view name);
std::optional<ActionRisk> action_risk_from(std::string_view name);
std::optional<ActionBasis> action_basis_from(std::string_view name);

// One change. What `target` and `value` mean follows from `kind`:
// - env       a variable and its value; no value: take it out
// - file      a path and the whole content; no value: remove the file
// - sysfs     a file of /proc/sys or /sys and the text to write, without a line end
// - affinity  /proc/irq/N/smp_affinity_list and a CPU list
// - config    "pci:BDF/ACSCtl" (16 bits, "0x0000") or "pci:BDF/MaxReadReq" (bytes); others are for a person
// - command   a name for people; `command` holds the words
struct Action {
  std::string id;  // stable: "unset-NCCL_P2P_DISABLE", "numa-balancing-off"
  ActionKind kind = ActionKind::env;
  std::string target;
  std::optional<std::string> value;
  std::optional<std::string> observed;  // what is there now; nothing: absent or not known
  std::string reason;
  std::string rule;                           // of the finding that asks for it; "" none does
  std::string source;                         // where the number or the advice comes from
  std::string precondition, read_back, undo;  // for people
  ActionScope scope = ActionScope::process;
  ActionRisk risk = ActionRisk::none;
  ActionBasis basis = ActionBasis::documented;
  bool automatic = false;            // `apply` does it; false: `run` or a person
  std::vector<std::string> command;  // words of kind `command`; of others: how people do the same
  std::optional<std::string> where;  // env: "FILE:LINE" that sets it now
};

// Where one rank of one GPU runs.
struct Binding {
  std::string gpu;
  std::optional<std::string> bdf;
  CpuSet cpus;                     // where it may run: CPUs of the GPU's node inside the cpuset
  std::optional<int> memory_node;  // nothing: no node, or one that is not known
  std::vector<std::string> nics;   // ids of the nearest NICs
  std::vector<std::string> nic_names;
  CpuSet share;     // whole cores of `cpus` for this GPU alone
  int workers = 0;  // loader processes that fit into the share beside the rank and NCCL's threads
  std::string why;  // how the CPUs were chosen
};

struct Plan {
  Source source;
  std::vector<std::pair<std::string, std::string>> job;  // what was said about the job: key, value
  std::string nccl_version, ucx_version;                 // "" unknown
  std::vector<Action> actions;                           // in the order in which they are done
  std::vector<Binding> bindings;                         // by GPU number
  std::vector<std::string> notes;                        // what was looked at and left as it is, and why
};

}  // namespace topotune::model
