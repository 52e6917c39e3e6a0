#include "emit/findings_markdown.h"

#include <fmt/format.h>

#include "base/text.h"
#include "emit/labels.h"

namespace topotune::emit {

namespace {

// Markup characters of GitHub's and GitLab's Markdown, escaped; a table cell has no line end and no bar.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\n' || c == '\t') {
      out += ' ';
      continue;
    }
    if (std::string_view("|\\`*_<>[]").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// An inline code span that may hold backticks: fenced by one more than the text has in a row.
std::string code(const std::string& text) {
  std::string clean;
  std::size_t run = 0;
  std::size_t longest = 0;
  for (char c : printable(text)) {
    if (c == '\n') c = ' ';
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    clean += c;
  }
  const std::string fence(longest + 1, '`');
  return fence + (longest ? " " : "") + clean + (longest ? " " : "") + fence;
}

std::string item(const char* label, const std::string& text) {
  return fmt::format("- {}: {}\n", label, text);
}

std::string section(const model::Finding& f, const Labels& labels) {
  std::string out = fmt::format("\n### {} {}: {}\n\n", f.rule, cell(f.subject), cell(f.title));
  if (!f.expected.empty()) out += item(labels.expected, cell(f.expected));
  if (!f.observed.empty()) out += item(labels.observed, cell(f.observed));
  for (const auto& e : f.evidence)
    out += item(labels.evidence, fmt::format("{} — {}", code(e.source), code(e.text)));
  if (!f.because.empty()) out += item(labels.because, cell(fmt::format("{}", fmt::join(f.because, ", "))));
  return out + item(labels.impact, cell(f.impact)) + item(labels.remedy, cell(f.remedy)) +
         item(labels.reference, cell(f.reference));
}

}  // namespace

std::string findings_markdown(const model::Diagnosis& diagnosis, const std::string& name,
                              model::Language language) {
  const auto& labels = labels_of(language);
  std::string out =
      fmt::format("## topotune: {} — {}\n\n", cell(name), model::name_of(model::verdict_of(diagnosis)));
  if (!diagnosis.findings.empty()) {
    out += labels.table_head;
    for (const auto& f : diagnosis.findings)
      out += fmt::format("| {} | {} | {} | {} |\n", model::name_of(f.severity), f.rule, cell(f.subject),
                         cell(f.title));
    for (const auto& f : diagnosis.findings) out += section(f, labels);
  }
  out += fmt::format(fmt::runtime(labels.rules_checked), diagnosis.checked.size());
  if (diagnosis.not_checked.empty()) return out + ".\n";
  out += fmt::format(fmt::runtime(labels.could_not_be), diagnosis.not_checked.size());
  for (const auto& n : diagnosis.not_checked) out += fmt::format("- {}: {}\n", n.rule, cell(n.why));
  return out;
}

}  // namespace topotune::emit
