#include "plan/plan.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "plan/bindings.h"
#include "plan/parts.h"

namespace topotune::plan {

namespace {

using model::Action;
using model::ActionKind;

// Reversible and harmless first; within that: variables, values, files, commands, what a person does.
int rank_of(const Action& action) {
  switch (action.kind) {
    case ActionKind::env:
      return 0;
    case ActionKind::sysfs:
      return 1;
    case ActionKind::affinity:
      return 2;
    case ActionKind::config:
      return 3;
    case ActionKind::file:
      return 4;
    case ActionKind::command:
      return 5;
  }
  return 6;
}

void put_in_order(std::vector<Action>& actions) {
  const auto key = [](const Action& a) {
    const bool set = a.kind == ActionKind::env && a.value.has_value();
    return std::tuple(a.risk == model::ActionRisk::disruptive, !a.automatic && a.kind != ActionKind::env,
                      rank_of(a), set);
  };
  std::ranges::stable_sort(actions, [&](const Action& a, const Action& b) { return key(a) < key(b); });
}

// The same id twice would make undo and verify ambiguous: the first one stays.
void keep_first(std::vector<Action>& actions) {
  std::set<std::string> seen;
  std::erase_if(actions, [&](const Action& action) { return !seen.insert(action.id).second; });
}

}  // namespace

Result<model::Plan> make_plan(const Situation& situation) {
  const auto& topology = situation.machine->topology;
  const auto gpus =
      topology.gpus.empty() ? std::nullopt : std::optional(static_cast<int>(topology.gpus.size()));
  if (const auto valid = validate_job(situation.job, gpus); !valid) return tl::unexpected(valid.error());
  Draft draft{situation, {}, {}, {}, {}};
  draft.evidence.machine = situation.machine;
  draft.evidence.paths = situation.paths;
  draft.evidence.nccl_version = situation.nccl_version;
  draft.evidence.multi_node_job = multi_node(situation.job);
  plan_environment(draft);
  plan_ucx(draft);
  plan_kernel(draft);
  plan_pcie(draft);
  plan_network(draft);
  plan_qos(draft);
  auto bindings = bindings_of(situation, draft.reserved);
  if (!bindings) return tl::unexpected(bindings.error());
  put_in_order(draft.actions);
  keep_first(draft.actions);
  label_measured(situation.measured, draft.actions, draft.notes);
  model::Plan plan;
  plan.source = topology.source;
  plan.job = situation.job.said;
  plan.nccl_version = situation.nccl_version;
  plan.ucx_version = situation.ucx_version;
  plan.actions = std::move(draft.actions);
  plan.bindings = std::move(*bindings);
  plan.notes = std::move(draft.notes);
  return plan;
}

}  // namespace topotune::plan
