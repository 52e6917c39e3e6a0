#include "checks/pages.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/text.h"
#include "checks/known_gpus.h"

namespace topotune::checks {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Catalogue, EveryRowIsWhole) {
  ASSERT_GE(catalogue().size(), 190U);
  std::set<std::string_view> ids;
  for (const auto& row : catalogue()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id << " stands twice";
    for (const auto cell : {row.id, row.severity, row.input, row.title, row.condition, row.evidence_needed,
                            row.not_when, row.impact, row.remedy, row.source, row.since, row.priority})
      EXPECT_FALSE(trim(cell).empty()) << row.id << " has an empty column";
    EXPECT_TRUE(model::severity_from(row.severity)) << row.id;
    EXPECT_NE(row.source, "none") << row.id;
  }
}

// What looks like a rule id and names none.
TEST(Catalogue, CrossReferencesNameRules) {
  std::set<std::string_view> known;
  for (const auto family : families()) known.insert(family);
  for (const auto& row : catalogue())
    for (const auto text : {row.condition, row.not_when, row.remedy, row.impact})
      for (std::size_t i = 0; i + 2 < text.size(); ++i) {
        const bool starts = i == 0 || !(is_digit(text[i - 1]) || (text[i - 1] >= 'A' && text[i - 1] <= 'Z'));
        const auto end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ", i);
        if (!starts || end == i || end == std::string_view::npos || end + 2 > text.size()) continue;
        const bool two_digits = is_digit(text[end]) && is_digit(text[end + 1]) &&
                                (end + 2 == text.size() || !is_digit(text[end + 2]));
        if (!two_digits || !known.contains(text.substr(i, end - i)) || text.substr(i).starts_with("NVL72")) continue;
        EXPECT_NE(find_rule(text.substr(i, end + 2 - i)), nullptr)
            << row.id << " names " << text.substr(i, end + 2 - i);
      }
}

TEST(Docs, AgreeWithTheCatalogue) {
  for (const auto family : families()) {
    const auto path = std::string(TOPOTUNE_TEST_DATA) + "/../docs/rules/" + to_lower(family) + ".md";
    EXPECT_EQ(read_file(path), family_markdown(family)) << path << ": run scripts/make_rule_docs.sh";
  }
}

std::string section(const model::Page& page, const std::string& heading) {
  for (const auto& one : page.sections)
    if (one.heading == heading) return one.text;
  return "";
}

TEST(Pages, RulesPathsVariablesXidsCounters) {
  ASSERT_TRUE(page_of("acs01"));
  EXPECT_EQ(page_of("ACS01")->kind, "rule");
  EXPECT_NE(section(*page_of("ACS01"), "remedy").find("setpci"), std::string::npos);
  EXPECT_EQ(page_of("PXB")->kind, "path");
  EXPECT_EQ(page_of("NCCL_P2P_DISABLE")->kind, "nccl-variable");
  EXPECT_NE(section(*page_of("NCCL_P2P_DISABLE"), "misuse").find("NCCL02"), std::string::npos);
  EXPECT_EQ(section(*page_of("NCCL_AGG_ALLOC_MODE"), "removed"), "2.13.4");
  EXPECT_EQ(section(*page_of("NCCL_ALGO"), "since"), "2.5.6");
  EXPECT_EQ(page_of("UCX_TLS")->kind, "ucx-variable");
  EXPECT_EQ(page_of("79")->kind, "xid");
  EXPECT_EQ(page_of("Xid 79")->name, "Xid 79");
  EXPECT_EQ(page_of("symbol_error")->kind, "counter");
  EXPECT_FALSE(page_of("NCCL_NO_SUCH"));
  EXPECT_FALSE(page_of(""));
}

TEST(Pages, EveryNameHasAPage) {
  for (const auto& one : all_names()) EXPECT_TRUE(page_of(one.name)) << one.name;
}

TEST(Pages, PathTypesOfTheContractAreAllThere) {
  for (const auto* name :
       {"NVL", "XGMI", "C2C", "PIX", "PXB", "PHB", "NODE", "SYS", "LOC", "NVB", "PXN", "P2C", "NET", "DIS"})
    EXPECT_TRUE(page_of(name)) << name;
}

TEST(Pages, NearestNames) {
  const auto near = nearest_names("NCCL_P2P_DISABEL");
  ASSERT_FALSE(near.empty());
  EXPECT_EQ(near.front(), "NCCL_P2P_DISABLE");
  EXPECT_TRUE(nearest_names("zzzzzzzzzzzzzzzzzzzzzzzzzz").empty());
  EXPECT_TRUE(nearest_names(std::string(100000, 'x')).empty());
}

TEST(KnownGpus, TableIsWhole) {
  std::set<std::pair<int, int>> ids;
  for (const auto& gpu : known_gpus()) {
    EXPECT_TRUE(ids.insert({gpu.vendor, gpu.device}).second);
    EXPECT_GT(gpu.sm, 0);
    EXPECT_GT(gpu.pcie_gen, 0);
    ASSERT_FALSE(gpu.sources.empty());
    EXPECT_TRUE(gpu.sources.front().starts_with("https://")) << gpu.device;
    EXPECT_TRUE(gpu.sources.front().ends_with(")")) << gpu.device;
    if (gpu.wiring == Wiring::none) {
      EXPECT_EQ(gpu.nvlinks, 0) << gpu.device;
    }
  }
  EXPECT_GE(ids.size(), 70U);
}

TEST(Run, EveryImplementedRuleIsJudgedOnce) {
  model::Machine machine;
  Evidence evidence;
  evidence.machine = &machine;
  const auto diagnosis = run(evidence);
  std::set<std::string> seen(diagnosis.checked.begin(), diagnosis.checked.end());
  for (const auto& one : diagnosis.not_checked) EXPECT_TRUE(seen.insert(one.rule).second) << one.rule;
  for (const auto& row : catalogue())
    if (row.input == "machine" || row.input == "topology-file") {
      EXPECT_TRUE(seen.contains(std::string(row.id))) << row.id;
    }
  EXPECT_TRUE(diagnosis.findings.empty());
  EXPECT_TRUE(diagnosis.checked.empty()) << "an empty machine proves nothing: " << diagnosis.checked.front();
  for (const auto& one : diagnosis.not_checked) EXPECT_NE(one.why, "not implemented") << one.rule;
}

}  // namespace
}  // namespace topotune::checks
