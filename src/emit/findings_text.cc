#include "emit/findings_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "emit/labels.h"

namespace topotune::emit {
namespace {

using model::Finding;
using model::Severity;

constexpr std::size_t kSubjects = 4, kLines = 2;  // shown of one block when not verbose

std::string_view color_of(Severity severity) {
  if (severity == Severity::error) return "\x1b[31;1m";
  return severity == Severity::warn ? "\x1b[33;1m" : "\x1b[36m";
}

std::string painted(std::string text, std::string_view color, bool on) {
  return on ? std::string(color) + text + "\x1b[0m" : text;
}

std::string plain(const std::string& text) {
  auto out = printable(text);
  std::ranges::replace(out, '\n', ' ');
  return out;
}

// Findings of one rule and severity follow each other in a sorted diagnosis.
std::vector<std::vector<const Finding*>> blocks_of(const model::Diagnosis& diagnosis) {
  std::vector<std::vector<const Finding*>> out;
  for (const auto& finding : diagnosis.findings) {
    const bool same = !out.empty() && out.back().front()->rule == finding.rule &&
                      out.back().front()->severity == finding.severity &&
                      out.back().front()->title == finding.title;
    if (!same) out.emplace_back();
    out.back().push_back(&finding);
  }
  return out;
}

std::string seen_in(const Finding& finding, const Labels& labels) {
  std::string out = fmt::format("    {}: {}", plain(finding.subject), plain(finding.observed));
  if (!finding.expected.empty())
    out += fmt::format(fmt::runtime(labels.expected_in_line), plain(finding.expected));
  return out + "\n";
}

std::string evidence_in(const Finding& finding, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < std::min(most, finding.evidence.size()); ++i)
    out += fmt::format("      {}: {}\n", plain(finding.evidence[i].source), plain(finding.evidence[i].text));
  return out;
}

std::string block_text(const std::vector<const Finding*>& block, const FindingsTextOptions& options) {
  const auto& first = *block.front();
  const auto& labels = labels_of(options.language);
  const auto most = options.verbose ? block.size() : std::min(block.size(), kSubjects);
  std::string out = fmt::format(
      "{} {}  {}\n",
      painted(fmt::format("{:<5}", name_of(first.severity)), color_of(first.severity), options.color),
      painted(first.rule, "\x1b[1m", options.color), plain(first.title));
  for (std::size_t i = 0; i < most; ++i) {
    out += seen_in(*block[i], labels);
    if (options.verbose || i == 0)
      out += evidence_in(*block[i], options.verbose ? block[i]->evidence.size() : kLines);
  }
  if (most < block.size()) out += fmt::format(fmt::runtime(labels.more), block.size() - most);
  if (!first.because.empty())
    out += fmt::format(fmt::runtime(labels.because_line), fmt::join(first.because, ", "));
  if (!first.impact.empty()) out += fmt::format(fmt::runtime(labels.costs), plain(first.impact));
  if (!first.remedy.empty()) out += fmt::format(fmt::runtime(labels.remedy_line), plain(first.remedy));
  return out + "\n";
}

// "3 warnings", "1 error"; a form without a plural takes the ending as "".
std::string counted(std::ptrdiff_t n, const char* form, model::Language language) {
  const char* ending = n == 1 || language != model::Language::en ? "" : "s";
  return fmt::format(fmt::runtime(form), n, ending);
}

std::string summary(const model::Diagnosis& diagnosis, model::Language language) {
  const auto& labels = labels_of(language);
  std::vector<std::string> parts;
  const char* const forms[] = {labels.remarks, labels.warnings, labels.errors};
  for (const auto severity : {Severity::error, Severity::warn, Severity::info}) {
    const auto n = std::ranges::count(diagnosis.findings, severity, &Finding::severity);
    if (n > 0) parts.push_back(counted(n, forms[static_cast<std::size_t>(severity)], language));
  }
  if (diagnosis.unexplained && model::verdict_of(diagnosis) == model::Verdict::unknown)
    parts.push_back(labels.unexplained);
  if (parts.empty()) return diagnosis.checked.empty() ? labels.nothing_checked : labels.nothing_found;
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string_view verdict_color(model::Verdict verdict) {
  if (verdict == model::Verdict::error) return color_of(Severity::error);
  if (verdict == model::Verdict::ok) return "\x1b[32;1m";
  return verdict == model::Verdict::info ? color_of(Severity::info) : color_of(Severity::warn);
}

std::string not_checked_text(const model::Diagnosis& diagnosis, const Labels& labels) {
  std::string out = labels.not_checked;
  for (const auto& one : diagnosis.not_checked)
    out += fmt::format("    {:<7} {}\n", one.rule, plain(one.why));
  return out;
}

}  // namespace

std::string findings_text(const model::Diagnosis& diagnosis, const std::string& name,
                          const FindingsTextOptions& options) {
  const auto verdict = model::verdict_of(diagnosis);
  const auto& labels = labels_of(options.language);
  std::string out = fmt::format("{}: {} ({})\n\n", plain(name),
                                painted(name_of(verdict), verdict_color(verdict), options.color),
                                summary(diagnosis, options.language));
  for (const auto& block : blocks_of(diagnosis)) out += block_text(block, options);
  const bool plural = options.language == model::Language::en && diagnosis.checked.size() != 1;
  out += fmt::format(fmt::runtime(labels.checked), diagnosis.checked.size(), plural ? "s" : "",
                     diagnosis.not_checked.size());
  if (!diagnosis.not_checked.empty() && !options.verbose) out += labels.why_hint;
  out += "\n";
  if (options.verbose && !diagnosis.not_checked.empty()) out += not_checked_text(diagnosis, labels);
  return out;
}

}  // namespace topotune::emit
