#include "emit/findings_junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/text.h"
#include "emit/xml_text.h"

namespace topotune::emit {

namespace {

using Findings = std::vector<const model::Finding*>;

std::string details(const model::Finding& f) {
  std::string out = fmt::format("{} {}: {}\nexpected: {}\nobserved: {}\n", f.rule, f.subject, f.title, f.expected, f.observed);
  for (const auto& e : f.evidence) out += fmt::format("evidence: {}: {}\n", e.source, e.text);
  return out + fmt::format("impact: {}\nremedy: {}\n", f.impact, f.remedy);
}

std::string test_case(const std::string& suite, const std::string& rule, const Findings& findings) {
  std::string out = fmt::format("  <testcase classname=\"{}\" name=\"{}\">\n", xml_text(suite), xml_text(rule));
  for (const auto* f : findings) {
    if (f->severity == model::Severity::info) {
      out += fmt::format("    <system-out>{}</system-out>\n", xml_text(details(*f)));
    } else {
      out += fmt::format("    <failure type=\"{}\" message=\"{}\">{}</failure>\n", model::name_of(f->severity),
                         xml_text(f->subject + ": " + f->title), xml_text(details(*f)));
    }
  }
  return out + "  </testcase>\n";
}

bool fails(const Findings& findings) {
  return std::ranges::any_of(findings, [](const auto* f) { return f->severity != model::Severity::info; });
}

}  // namespace

std::string findings_junit(const model::Diagnosis& diagnosis, const std::string& name) {
  std::map<std::string, Findings> by_rule;
  for (const auto& rule : diagnosis.checked) by_rule[rule];
  for (const auto& f : diagnosis.findings) by_rule[f.rule].push_back(&f);
  std::string cases;
  std::size_t failures = 0;
  for (const auto& [rule, findings] : by_rule) {
    cases += test_case(name, rule, findings);
    failures += fails(findings) ? 1 : 0;
  }
  std::size_t skipped = 0;
  for (const auto& n : diagnosis.not_checked) {
    if (by_rule.contains(n.rule)) continue;
    ++skipped;
    cases += fmt::format("  <testcase classname=\"{}\" name=\"{}\">\n    <skipped message=\"{}\"/>\n  </testcase>\n",
                         xml_text(name), xml_text(n.rule), xml_text(n.why));
  }
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"topotune {}\" tests=\"{}\" failures=\"{}\""
                     " errors=\"0\" skipped=\"{}\">\n{}</testsuite>\n",
                     xml_text(name), by_rule.size() + skipped, failures, skipped, cases);
}

}  // namespace topotune::emit
