#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "checks/language.h"
#include "lint/fix.h"
#include "lint/lint.h"

namespace topotune::lint {

// The report about one text; `name` decides the kind unless one is given.
struct Judged {
  std::string text;
  std::vector<Input> inputs;
  Report report;

  const Found* find(std::string_view rule, int line = 0) const {
    for (const auto& one : report.found)
      if (one.finding.rule == rule && (line == 0 || one.finding.line == line)) return &one;
    return nullptr;
  }
  std::string ids() const {
    std::string out;
    for (const auto& one : report.found)
      out += fmt::format("{}{}:{}:{}", out.empty() ? "" : " ", one.finding.rule,
                         name_of(one.finding.severity), one.finding.line.value_or(0));
    return out;
  }
  std::string fixed() const { return fixed_text(text, report.found, 0); }
};

// What a person reads of a finding has a Chinese form: the catalogue's, or one of data/messages.zh.tsv.
inline void expect_translated(const model::Finding& finding) {
  const auto* row = checks::find_rule(finding.rule);
  ASSERT_NE(row, nullptr) << finding.rule;
  const auto known = [](const std::string& text, std::string_view own) {
    if (text == own || !checks::is_prose(text)) return true;
    const auto translated = checks::translated_message(text);
    return translated && !checks::is_prose(*translated);
  };
  EXPECT_TRUE(known(finding.title, row->title)) << finding.rule << ": " << finding.title;
  EXPECT_TRUE(known(finding.impact, row->impact)) << finding.rule << ": " << finding.impact;
  EXPECT_TRUE(known(finding.remedy, row->remedy)) << finding.rule << ": " << finding.remedy;
}

inline std::unique_ptr<Judged> judged(const std::string& name, std::string text,
                                      const Options& options = {}) {
  auto out = std::make_unique<Judged>();
  out->text = std::move(text);
  if (auto input = read_input(name, out->text)) out->inputs.push_back(std::move(*input));
  out->report = judge(out->inputs, options);
  for (const auto& one : out->report.found) expect_translated(one.finding);
  return out;
}

inline Options with_nccl(std::string_view version) {
  Options out;
  out.nccl = parse_version(version);
  return out;
}

}  // namespace topotune::lint
