#include "checks/log_rules.h"

#include <algorithm>

#include "checks/causes.h"
#include "checks/mutation.h"

namespace topotune::checks {

model::Finding log_finding(const LogView& view, std::string_view rule, std::string subject,
                           std::string expected, std::string observed, std::vector<model::Evidence> evidence,
                           const std::optional<model::LogLine>& at) {
  auto made =
      finding(rule, std::move(subject), std::move(expected), std::move(observed), std::move(evidence));
  if (at && at->line > 0) {
    const auto place = view.place(*at);
    made.file = place.substr(0, place.rfind(':'));
    made.line = static_cast<int>(at->line);
  }
  return made;
}

model::Diagnosis diagnose_log(const model::NcclLog& log, const model::Machine* machine,
                              const std::string& name) {
  const LogView view(log, machine, name);
  model::Diagnosis diagnosis;
  for (const auto table : {log_network_rules(), log_local_rules(), log_fault_rules()}) {
    for (const auto& rule : table) {
      auto outcome = rule.evaluate(view);
      mutate(rule.id, outcome);
      if (const auto* why = std::get_if<NotEvaluated>(&outcome); why != nullptr) {
        diagnosis.not_checked.push_back({std::string(rule.id), why->why});
        continue;
      }
      if (std::ranges::find(diagnosis.checked, rule.id) == diagnosis.checked.end())
        diagnosis.checked.emplace_back(rule.id);
      if (auto* found = std::get_if<std::vector<model::Finding>>(&outcome); found != nullptr)
        for (auto& one : *found) diagnosis.findings.push_back(std::move(one));
    }
  }
  join_causes(diagnosis);
  sort_findings(diagnosis.findings);
  return diagnosis;
}

}  // namespace topotune::checks
