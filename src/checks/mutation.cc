#include "checks/mutation.h"

#include <algorithm>
#include <string>

extern "C" __attribute__((weak)) const char* topotune_test_mutation();

namespace topotune::checks {
namespace {

std::string_view wanted() {
  if (topotune_test_mutation == nullptr) return {};
  const char* text = topotune_test_mutation();
  return text == nullptr ? std::string_view() : std::string_view(text);
}

bool asks(std::string_view kind, std::string_view rule) {
  const auto text = wanted();
  return text.size() == kind.size() + rule.size() && text.starts_with(kind) && text.ends_with(rule);
}

model::Finding mutant(std::string_view rule) { return finding(rule, "mutant", "", "mutant", {}); }

}  // namespace

bool is_suppressed(std::string_view rule) { return asks("suppress:", rule); }
bool is_fired(std::string_view rule) { return asks("fire:", rule); }

void mutate(std::string_view rule, Outcome& outcome) {
  const auto* found = std::get_if<std::vector<model::Finding>>(&outcome);
  const bool any = found != nullptr && !found->empty();
  if (any && is_suppressed(rule)) outcome = Clean{};
  if (!any && is_fired(rule) && !std::holds_alternative<NotEvaluated>(outcome))
    outcome = std::vector<model::Finding>{mutant(rule)};
}

void mutate(model::Diagnosis& diagnosis) {
  const auto text = wanted();
  const auto rule = text.substr(text.find(':') + 1);
  if (text.empty() || find_rule(rule) == nullptr) return;
  if (is_suppressed(rule))
    std::erase_if(diagnosis.findings, [&](const model::Finding& f) { return f.rule == rule; });
  const bool checked = std::ranges::find(diagnosis.checked, rule) != diagnosis.checked.end();
  const bool any =
      std::ranges::find(diagnosis.findings, rule, &model::Finding::rule) != diagnosis.findings.end();
  if (is_fired(rule) && checked && !any) diagnosis.findings.push_back(mutant(rule));
}

}  // namespace topotune::checks
