#include <algorithm>
#include <array>
#include <tuple>

#include "checks/families.h"
#include "checks/mutation.h"
#include "checks/rule.h"
#include "checks/topology_files.h"
#include "model/paths.h"

namespace topotune::checks {
namespace {

constexpr std::array kFamilies{topo_rules, matrix_rules, numa_rules, pcie_rules, acs_rules, nvl_rules,
                               gpu_rules,  gdr_rules,    rdma_rules, qos_rules,  ctr_rules, kern_rules,
                               cont_rules, irq_rules,    ver_rules,  gid_rules,  job_rules};

const Rule* function_of(std::string_view id) {
  for (const auto family : kFamilies)
    for (const auto& rule : family())
      if (rule.id == id) return &rule;
  return nullptr;
}

// Rules about configuration text, logs, measurements and fleets need an input of their own.
bool about_a_machine(const RuleText& row) { return row.input == "machine" || row.input == "topology-file"; }

void judge(const Rule& rule, const Evidence& evidence, model::Diagnosis& diagnosis) {
  auto outcome = rule.evaluate(evidence);
  mutate(rule.id, outcome);
  if (const auto* not_evaluated = std::get_if<NotEvaluated>(&outcome)) {
    diagnosis.not_checked.push_back({std::string(rule.id), not_evaluated->why});
    return;
  }
  diagnosis.checked.emplace_back(rule.id);
  if (auto* findings = std::get_if<std::vector<model::Finding>>(&outcome))
    std::ranges::move(*findings, std::back_inserter(diagnosis.findings));
}

}  // namespace

model::Finding finding(std::string_view rule, std::string subject, std::string expected, std::string observed,
                       std::vector<model::Evidence> evidence) {
  model::Finding out;
  out.rule = rule;
  out.subject = std::move(subject);
  out.expected = std::move(expected);
  out.observed = std::move(observed);
  out.evidence = std::move(evidence);
  if (const auto* row = find_rule(rule)) {
    out.severity = model::severity_from(row->severity).value_or(model::Severity::warn);
    out.title = row->title;
    out.impact = row->impact;
    out.remedy = row->remedy;
    out.reference = row->source;
  }
  out.action = "see-" + out.rule;
  return out;
}

void sort_findings(std::vector<model::Finding>& findings) {
  std::ranges::stable_sort(findings, [](const model::Finding& a, const model::Finding& b) {
    if (a.severity != b.severity) return a.severity > b.severity;
    return std::tie(a.rule, a.subject) < std::tie(b.rule, b.subject);
  });
}

model::Diagnosis run(const Evidence& given) {
  Evidence evidence = given;
  const auto paths = model::paths_of(evidence.machine->topology);
  const auto files = topology_files(evidence);
  evidence.paths = &paths;
  evidence.files = &files;
  model::Diagnosis diagnosis;
  for (const auto& row : catalogue()) {
    const auto* rule = function_of(row.id);
    const bool of_a_job = std::ranges::find(job_rules(), row.id, &Rule::id) != job_rules().end();
    if (rule != nullptr && (!of_a_job || evidence.environment))
      judge(*rule, evidence, diagnosis);
    else if (about_a_machine(row))
      diagnosis.not_checked.push_back({std::string(row.id), "not implemented"});
  }
  sort_findings(diagnosis.findings);
  return diagnosis;
}

}  // namespace topotune::checks
