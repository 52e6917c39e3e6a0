#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/finding.h"
#include "model/machine.h"

namespace topotune::checks {

// A row of data/rules.tsv: the specification of one rule. Texts live there, the condition in a function.
struct RuleText {
  std::string_view id, severity, input, title, condition, evidence_needed, not_when, impact, remedy, source, since,
      priority;
};
std::span<const RuleText> catalogue();           // in the file's order
const RuleText* find_rule(std::string_view id);  // null: no such rule

struct NotEvaluated {
  std::string why;
};
struct Clean {
  std::string why;  // "no RDMA NIC": said in verbose output; usually empty
};
using Outcome = std::variant<Clean, std::vector<model::Finding>, NotEvaluated>;

struct ParsedFile;  // checks/topology_files.h

// What a rule may look at. Pure: no Host, no clock.
struct Evidence {
  const model::Machine* machine = nullptr;
  // The same machine at an earlier time, for counters; null: one reading. `seconds` between both, where known.
  const model::Machine* before = nullptr;
  std::optional<double> seconds;
  const std::vector<model::Path>* paths = nullptr;  // of the machine; run() fills both in
  const std::vector<ParsedFile>* files = nullptr;   // topology files of the input
  std::string_view raw_text;        // the input's own bytes where it was one text (topology XML rules)
  std::string nccl_version;         // "--nccl-version" or found; "" unknown
  bool multi_node_job = false;
  // NCCL_* of the job, from its log or its configuration beside it; nothing: not known.
  std::optional<std::map<std::string, std::string>> environment;
};

// One entry a rule; each family file exports a span of these, rules.cc joins them in a visible table.
struct Rule {
  std::string_view id;
  Outcome (*evaluate)(const Evidence&);
};

// A finding with the catalogue's title, severity, impact, remedy and reference filled in.
model::Finding finding(std::string_view rule, std::string subject, std::string expected, std::string observed,
                       std::vector<model::Evidence> evidence);

// Every rule about a machine or a topology file, in the catalogue's order. A rule whose facts are missing is listed
// under `not_checked` with the reason.
model::Diagnosis run(const Evidence& evidence);

// Worst first, then by rule and subject.
void sort_findings(std::vector<model::Finding>& findings);

}  // namespace topotune::checks
