#include "checks/language.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "base/text.h"
#include "checks/pages.h"

namespace topotune::checks {
namespace {

bool has_chinese(std::string_view text) {
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0xe4 && byte <= 0xe9) return true;  // U+4E00 to U+9FFF
  }
  return false;
}

std::vector<std::string> all_of(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> out;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    out.push_back(at->str());
  std::ranges::sort(out);
  return out;
}

// Variables, functions and rule ids: the same in every language.
std::set<std::string> identifiers(std::string_view text) {
  const auto found =
      all_of(std::string(text), R"([A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]+|\b[A-Z]{3,5}[0-9]{2}\b)");
  return {found.begin(), found.end()};
}

TEST(Language, EveryRuleHasItsChineseTexts) {
  ASSERT_EQ(translations().size(), catalogue().size());
  for (const auto& row : catalogue()) {
    const auto* translated = find_translation(row.id);
    ASSERT_NE(translated, nullptr) << row.id;
    EXPECT_TRUE(has_chinese(translated->title)) << row.id;
    EXPECT_FALSE(translated->impact.empty()) << row.id;
    EXPECT_FALSE(translated->remedy.empty()) << row.id;
    EXPECT_TRUE(has_chinese(translated->impact) || !is_prose(row.impact)) << row.id << ": " << row.impact;
    EXPECT_TRUE(has_chinese(translated->remedy) || !is_prose(row.remedy)) << row.id << ": " << row.remedy;
  }
}

TEST(Language, IdentifiersAreTheSame) {
  for (const auto& row : catalogue()) {
    const auto* t = find_translation(row.id);
    ASSERT_NE(t, nullptr);
    EXPECT_EQ(identifiers(row.title), identifiers(t->title)) << row.id;
    EXPECT_EQ(identifiers(row.impact), identifiers(t->impact)) << row.id;
    if (row.id == "NCCL03") continue;  // names the table in English, the command in Chinese
    EXPECT_EQ(identifiers(row.remedy), identifiers(t->remedy)) << row.id;
  }
}

TEST(Language, MessagesKeepTheirPlaceholders) {
  ASSERT_GT(message_translations().size(), 100u);
  for (const auto& row : message_translations()) {
    const std::string from(row.from), to(row.to);
    EXPECT_EQ(all_of(from, R"(\{\})").size(), all_of(to, R"(\{[0-9]?\})").size()) << from;
    EXPECT_EQ(identifiers(from), identifiers(to)) << from;
    EXPECT_TRUE(has_chinese(to) || !is_prose(from)) << from;
  }
}

TEST(Language, FillsAndNestsMessages) {
  EXPECT_EQ(translated_message("did you mean NCCL_ALGO?"), "\u662f\u5426\u60f3\u5199 NCCL_ALGO?");
  const auto nested = translated_message("nccl.conf: the value keeps its quotes");
  ASSERT_TRUE(nested);
  EXPECT_THAT(*nested, testing::StartsWith("nccl.conf"));
  EXPECT_THAT(*nested, testing::Not(testing::HasSubstr("quotes")));
  const auto reordered = translated_message("NCCL_IB_TC=104 for DSCP 26 (the traffic class is DSCP x 4)");
  ASSERT_TRUE(reordered);
  EXPECT_THAT(*reordered, testing::StartsWith("DSCP 26"));
  EXPECT_FALSE(translated_message("no row has this text at all"));
}

TEST(Language, TranslatesADiagnosis) {
  model::Diagnosis d;
  d.findings.push_back(finding("ACS01", "bridge", "off", "on", {}));
  d.findings.push_back(finding("NCCL01", "X", "", "", {}));
  d.findings[1].title = "a text of a new rule";
  d.findings[1].remedy = "NCCL_ALGO=Ring";
  auto english = d;
  translate(english, model::Language::en);
  EXPECT_EQ(english.findings[0].title, d.findings[0].title);
  translate(d, model::Language::zh);
  EXPECT_EQ(d.findings[0].title, find_translation("ACS01")->title);
  EXPECT_EQ(d.findings[0].impact, find_translation("ACS01")->impact);
  EXPECT_EQ(d.findings[0].remedy, find_translation("ACS01")->remedy);
  EXPECT_EQ(d.findings[1].title, find_translation("NCCL01")->title);
  EXPECT_EQ(d.findings[1].remedy, "NCCL_ALGO=Ring");
}

TEST(Language, PagesOfRules) {
  for (const auto& row : catalogue()) {
    auto page = rule_page(row);
    const auto english = page;
    translate(page, model::Language::en);
    EXPECT_EQ(page.title, english.title);
    translate(page, model::Language::zh);
    EXPECT_EQ(page.title, find_translation(row.id)->title);
    ASSERT_EQ(page.sections.size(), english.sections.size());
    bool impact = false;
    for (std::size_t n = 0; n < page.sections.size(); ++n) {
      EXPECT_TRUE(has_chinese(page.sections[n].heading)) << page.sections[n].heading;
      impact = impact || page.sections[n].text == find_translation(row.id)->impact;
    }
    EXPECT_TRUE(impact) << row.id;
  }
}

TEST(Language, HeadingsOfAllOtherPages) {
  for (const char* name : {"PIX", "NCCL_P2P_DISABLE", "UCX_TLS", "Xid 79", "symbol_error"}) {
    auto page = page_of(name);
    ASSERT_TRUE(page) << name;
    translate(*page, model::Language::zh);
    for (const auto& section : page->sections)
      EXPECT_TRUE(has_chinese(section.heading)) << name << ": " << section.heading;
  }
}

// Literals of one statement "x.title = ...;", neighbours joined as the compiler does.
std::vector<std::string> literals_in(std::string statement) {
  statement = std::regex_replace(statement, std::regex(R"("\s*\n?\s*")"), "");
  std::vector<std::string> out;
  const std::regex literal(R"re("((?:[^"\\]|\\.)*)")re");
  for (std::sregex_iterator at(statement.begin(), statement.end(), literal), end; at != end; ++at)
    out.push_back(std::regex_replace((*at)[1].str(), std::regex(R"(\\(.))"), "$1"));
  return out;
}

std::vector<std::string> statements_in(const std::string& source) {
  std::vector<std::string> out;
  const std::regex start(R"((\.|\b)(title|impact|remedy) = )");
  for (std::sregex_iterator at(source.begin(), source.end(), start), end; at != end; ++at) {
    const auto from = static_cast<std::size_t>(at->position());
    bool quoted = false;
    for (std::size_t i = from; i < source.size(); ++i) {
      if (source[i] == '\\')
        ++i;
      else if (source[i] == '"')
        quoted = !quoted;
      else if (source[i] == ';' && !quoted) {
        out.push_back(source.substr(from, i - from));
        break;
      }
    }
  }
  return out;
}

TEST(Language, EveryTextBuiltInCodeIsTranslated) {
  const std::filesystem::path root = std::filesystem::path(TOPOTUNE_TEST_DATA) / ".." / "src";
  int seen = 0;
  for (const char* folder : {"checks", "lint"}) {
    for (const auto& entry : std::filesystem::directory_iterator(root / folder)) {
      if (entry.path().extension() != ".cc" || entry.path().filename() == "language.cc") continue;
      std::ifstream file(entry.path());
      std::stringstream text;
      text << file.rdbuf();
      for (const auto& statement : statements_in(text.str()))
        for (const auto& literal : literals_in(statement)) {
          if (!is_prose(literal)) continue;
          ++seen;
          const auto translated = translated_message(literal);
          ASSERT_TRUE(translated) << entry.path().filename() << ": " << literal;
          EXPECT_FALSE(is_prose(*translated)) << "half translated: " << *translated;
        }
    }
  }
  EXPECT_GT(seen, 70);
}

}  // namespace
}  // namespace topotune::checks
