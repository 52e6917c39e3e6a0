#include "emit/findings_nagios.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "emit/labels.h"

namespace topotune::emit {

namespace {

const char* state_of(model::Verdict verdict) {
  switch (verdict) {
    case model::Verdict::ok:
    case model::Verdict::info: return "OK";
    case model::Verdict::warn: return "WARNING";
    case model::Verdict::error: return "CRITICAL";
    case model::Verdict::unknown: return "UNKNOWN";
  }
  return "UNKNOWN";
}

std::string one_line(std::string text) {
  text = printable(text);
  std::ranges::replace_if(text, [](char c) { return c == '|' || c == '\n' || c == '\t'; }, ' ');
  return text;
}

}  // namespace

std::string findings_nagios(const model::Diagnosis& diagnosis) {
  const auto count = [&](model::Severity s) { return std::ranges::count(diagnosis.findings, s, &model::Finding::severity); };
  const auto verdict = model::verdict_of(diagnosis);
  std::string says = fmt::format("{} rules checked, nothing found", diagnosis.checked.size());
  if (verdict == model::Verdict::unknown) says = "nothing could be checked";
  if (!diagnosis.findings.empty()) {
    const auto& worst = *std::ranges::max_element(diagnosis.findings, {}, &model::Finding::severity);
    says = fmt::format("{} {}: {}", worst.rule, worst.subject, worst.title);
    if (diagnosis.findings.size() > 1) says += fmt::format(" (+{} more)", diagnosis.findings.size() - 1);
  }
  if (verdict == model::Verdict::unknown && diagnosis.unexplained)
    says = labels_of(model::Language::en).unexplained;
  return fmt::format("TOPOTUNE {} - {} | errors={} warnings={} infos={} checked={} not_checked={}\n", state_of(verdict),
                     one_line(says), count(model::Severity::error), count(model::Severity::warn),
                     count(model::Severity::info), diagnosis.checked.size(), diagnosis.not_checked.size());
}

}  // namespace topotune::emit
