#include "checks/log_tuner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "checks/log_rules.h"
#include "parse/nccl_log.h"

namespace topotune::checks {
namespace {

using State = TableUse::State;
using testing::HasSubstr;

// One rank's lines; a rank is a process of its own unless `pid` says otherwise.
struct Rank {
  int rank = 0, nranks = 2;
  std::string communicator = "0xabc";
  int pid = -1;
  std::string tag = "";  // a launcher's

  std::string line(std::string_view text) const {
    const int process = pid < 0 ? 100 + rank : pid;
    return fmt::format("{}vm:{}:{} [{}] NCCL INFO {}\n", tag, process, process, rank, text);
  }
  std::string comm(std::string_view end) const {
    return line(
        fmt::format("ncclCommInitRank comm 0x{}{} rank {} nranks {} cudaDev {} nvmlDev {} busId {}000 commId "
                    "{} - Init {}",
                    rank + 1, communicator.substr(2), rank, nranks, rank, rank, rank + 1, communicator, end));
  }
  std::string made(const std::string& said) const {
    return comm("START") + (said.empty() ? "" : line("topotune tuner: " + said)) + comm("COMPLETE");
  }
  std::string used() const { return line("topotune tuner: in use"); }
};

std::string table(int nranks = 2, std::string_view hash = "2ec5fb8969a21500") {
  return fmt::format("table /t hash {}, 13 regions for {} ranks on 1 node(s)", hash, nranks);
}
const std::string kNothingForOne = "off: the table has nothing for 1 ranks on 1 node(s)";

std::vector<TableUse> uses(std::string_view text, std::string_view hash = "") {
  return table_uses(parse::parse_nccl_log(text), hash);
}
std::vector<State> states(std::string_view text, std::string_view hash = "") {
  std::vector<State> out;
  for (const auto& use : uses(text, hash)) out.push_back(use.state);
  return out;
}
std::string only_text(std::string_view text) {
  const auto all = uses(text);
  return all.size() == 1 ? all.front().text : fmt::format("{} entries", all.size());
}

const Rank kFirst{.rank = 0}, kSecond{.rank = 1};
const std::string kGood = kFirst.made(table()) + kSecond.made(table()) + kFirst.used() + kSecond.used();

TEST(TableUse, EveryRankUsesIt) {
  EXPECT_THAT(states(kGood), testing::ElementsAre(State::used));
  EXPECT_THAT(states(kGood, "2ec5fb8969a21500"), testing::ElementsAre(State::used));
  EXPECT_THAT(states(kGood, "0000000000000001"), testing::ElementsAre(State::unused));
}

TEST(TableUse, ARankIsOffOrNeverLoadedIt) {
  const auto off = kFirst.made(table()) + kFirst.used() + kSecond.made("off: /t: No such file or directory");
  EXPECT_EQ(only_text(off), "rank 1 (vm, process 101): off: /t: No such file or directory");
  EXPECT_TRUE(uses(off).front().differs);
  EXPECT_EQ(only_text(kFirst.made(table()) + kFirst.used() + kSecond.made("")),
            "the plugin was not loaded by rank 1 (vm, process 101)");
  for (const auto* why :
       {"the ranks of this node do not have the same table", "1 of this node's 2 ranks have the plugin",
        "1 of this node's 2 ranks agreed on this table", "a rank of this node is gone, or began anew"}) {
    const auto late = kFirst.made(table()) + kSecond.made(table()) + kFirst.used() +
                      kSecond.line(fmt::format("topotune tuner: off: {}", why));
    EXPECT_EQ(only_text(late), fmt::format("rank 1 (vm, process 101): off: {}", why));
    EXPECT_EQ(uses(late).front().at.line, 8U);  // where it says so, not where the table was read
  }
  const auto all = kFirst.made("off: WHY") + kSecond.made("off: WHY");
  EXPECT_EQ(only_text(all), "off: WHY");
  EXPECT_FALSE(uses(all).front().differs);
}

TEST(TableUse, RanksHaveOtherTables) {
  EXPECT_THAT(only_text(kFirst.made(table()) + kSecond.made(table(2, "11")) + kFirst.used() + kSecond.used()),
              HasSubstr("different tables: 11 at rank 1"));
  EXPECT_THAT(only_text(kFirst.made(table()) + kFirst.used() +
                        kSecond.made("off: the table has nothing for 2 ranks on 1 node(s)")),
              HasSubstr("rank 1 (vm, process 101) has another table"));
}

TEST(TableUse, WhatTheLogDoesNotHoldIsUnknown) {
  EXPECT_THAT(only_text(kFirst.made(table()) + kFirst.used()),
              HasSubstr("1 of 2 ranks are in the log; rank 1 is not"));
  EXPECT_THAT(only_text(kFirst.made(table()) + kSecond.made(table()) + kFirst.used()),
              HasSubstr("no collective has asked for it at rank 1"));
  EXPECT_THAT(only_text(kFirst.made(table()) + kFirst.used() + kSecond.comm("START")),
              HasSubstr("the log ends before the plugin speaks to rank 1"));
  auto cut = kFirst.made(table()) + kSecond.comm("START") + kSecond.line("topotune tuner: ta");
  cut.pop_back();
  EXPECT_THAT(only_text(cut), HasSubstr("the plugin's line is cut at rank 1"));
  for (const auto& text : {kFirst.made(table()) + kFirst.used(), cut})
    EXPECT_THAT(states(text), testing::ElementsAre(State::unknown));
}

TEST(TableUse, ACutReasonMayBeAnyOther) {
  auto text = kFirst.comm("START") + kFirst.line("topotune tuner: off: the table has nothing fo");
  EXPECT_THAT(states(text), testing::ElementsAre(State::unused));
  text.pop_back();
  EXPECT_THAT(states(text), testing::ElementsAre(State::unknown));
}

// Without "Init START" the communicator is named behind the plugin's line.
TEST(TableUse, ACommunicatorThatIsNamedLater) {
  std::string text;
  for (const auto& r : {kFirst, kSecond})
    text += r.line("topotune tuner: " + table()) + r.comm("COMPLETE") + r.used();
  EXPECT_THAT(states(text), testing::ElementsAre(State::used));
}

// Two communicators of one GPU are made at a time: the lines are of either.
TEST(TableUse, CommunicatorsThatAreMadeTogether) {
  std::string text;
  for (int rank = 0; rank < 2; ++rank) {
    const Rank a{.rank = rank}, b{.rank = rank, .communicator = "0xdef"};
    text += a.comm("START") + b.comm("START") + a.line("topotune tuner: " + table()) +
            b.line("topotune tuner: " + table()) + a.comm("COMPLETE") + b.comm("COMPLETE") + a.used() +
            b.used();
  }
  const auto found = uses(text);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().state, State::used);
  EXPECT_THAT(found.front().text, HasSubstr("(2 communicators)"));
}

TEST(TableUse, NobodyAskedYet) {
  EXPECT_THAT(states(kFirst.made(table()) + kSecond.made(table())), testing::ElementsAre(State::idle));
}

TEST(TableUse, AnEchoIsNoProof) {
  const std::string echo = "+ grep 'topotune tuner: in use' old.log\n";
  EXPECT_FALSE(wants_table(parse::parse_nccl_log(echo + kFirst.made("") + kSecond.made(""))));
  EXPECT_THAT(states(echo + kFirst.made(table()) + kSecond.made(table())), testing::ElementsAre(State::idle));
}

TEST(TableUse, OtherSizesAreNoFault) {
  const Rank alone{.rank = 0, .nranks = 1, .communicator = "0xdef"};
  EXPECT_THAT(states(kGood + alone.made(kNothingForOne)),
              testing::UnorderedElementsAre(State::used, State::other_size));
  EXPECT_THAT(states(kGood + alone.made("")), testing::ElementsAre(State::used));
}

TEST(TableUse, ACommunicatorThatIsNeverAskedIsIdle) {
  const Rank a{.rank = 0, .communicator = "0xdef"}, b{.rank = 1, .communicator = "0xdef"};
  EXPECT_THAT(states(kGood + a.made(table()) + b.made(table())),
              testing::ElementsAre(State::used, State::idle));
  EXPECT_THAT(uses(kGood + a.made(table()) + b.made(table()) + a.used() + b.used()).front().text,
              HasSubstr("(2 communicators)"));
}

TEST(TableUse, ASecondJobWithoutThePlugin) {
  const Rank a{.rank = 0, .communicator = "0xdef", .pid = 500},
      b{.rank = 1, .communicator = "0xdef", .pid = 501};
  const auto found = uses(kGood + a.made("") + b.made(""));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_THAT(found.back().text, HasSubstr("communicator 0xdef: the plugin was not loaded by rank 0"));
}

TEST(TableUse, OneProcessHasSeveralRanks) {
  const Rank a{.rank = 0, .pid = 7}, b{.rank = 1, .pid = 7};
  const auto made = a.comm("START") + b.comm("START") + a.line("topotune tuner: " + table()) +
                    b.line("topotune tuner: " + table()) + a.comm("COMPLETE") + b.comm("COMPLETE");
  EXPECT_THAT(states(made + a.used() + b.used()), testing::ElementsAre(State::used));
  EXPECT_THAT(states(made + a.used()), testing::ElementsAre(State::unknown));
}

TEST(TableUse, BehindALaunchersTag) {
  const Rank a{.rank = 0, .tag = "0: "}, b{.rank = 1, .tag = "1: "};
  EXPECT_THAT(states(a.made(table()) + b.made(table()) + a.used() + b.used()),
              testing::ElementsAre(State::used));
}

TEST(TableUse, WithoutInitLinesTheSizeCounts) {
  const auto a = kFirst.line("topotune tuner: " + table()), b = kSecond.line("topotune tuner: " + table());
  EXPECT_THAT(states(a + b + kFirst.used() + kSecond.used()), testing::ElementsAre(State::used));
  EXPECT_THAT(only_text(a + kFirst.used()), HasSubstr("1 of 2 ranks are in the log"));
  EXPECT_THAT(states(a + b + kFirst.line("topotune tuner: off: WHY")), testing::Contains(State::unused));
}

TEST(TableUse, AnotherPluginOrNone) {
  const auto made = kFirst.made("") + kSecond.made("");
  EXPECT_EQ(only_text(kFirst.line("TUNER/Plugin: Using tuner plugin ofi (v3)") + made),
            "NCCL loaded ofi, which is not topotune's");
  EXPECT_EQ(only_text(made), "NCCL loaded no tuner plugin, none was named");
  EXPECT_EQ(only_text(kFirst.line("NCCL_TUNER_PLUGIN set by environment to /opt/ofi.so") + made),
            "NCCL did not load /opt/ofi.so, which is not topotune's");
  EXPECT_EQ(only_text(kFirst.line("topotune env: off: /t: damaged") + made),
            "the environment plugin is off: /t: damaged");
  EXPECT_THAT(states(kFirst.comm("START")), testing::ElementsAre(State::unknown));
}

TEST(Log24, SeverityIsWhetherRanksDiffer) {
  const auto severity = [](std::string_view text) -> std::optional<model::Severity> {
    const auto d = diagnose_log(parse::parse_nccl_log(text), nullptr, "job.log");
    const auto at = std::ranges::find(d.findings, "LOG24", &model::Finding::rule);
    return at == d.findings.end() ? std::nullopt : std::optional(at->severity);
  };
  EXPECT_EQ(severity(kGood), std::nullopt);
  EXPECT_EQ(severity(kFirst.made("") + kSecond.made("")), std::nullopt);
  EXPECT_EQ(severity(kFirst.made(table()) + kSecond.made("off: WHY")), model::Severity::error);
  EXPECT_EQ(severity(kFirst.made("off: WHY") + kSecond.made("off: WHY")), model::Severity::warn);
  EXPECT_EQ(severity(kFirst.made(table())), std::nullopt);  // not known
}

TEST(NcclLog, ATunerIsNoNetworkPlugin) {
  const auto log = parse::parse_nccl_log(
      kGood + kFirst.line("TUNER/Plugin: Using topotune (v5)") +
      kFirst.line("Successfully loaded external tuner plugin /o/libnccl-tuner-topotune.so") +
      kFirst.line("NET/Plugin: Loaded net plugin AWS Libfabric (v9)"));
  EXPECT_THAT(log.net.plugins, testing::ElementsAre("AWS Libfabric"));
  EXPECT_THAT(log.tuner.loaded, testing::ElementsAre("/o/libnccl-tuner-topotune.so", "topotune"));
  EXPECT_EQ(log.unrecognised, 0U);
}

TEST(LogView, NcclsNumberOfNodesGoesBeforeNames) {
  std::string text;
  for (const auto& r : {kFirst, kSecond})
    text += r.comm("START") +
            r.line(fmt::format("comm 0x{}abc rank {} nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0",
                               r.rank + 1, r.rank)) +
            r.line(fmt::format("Channel 00/0 : {}[{}] -> {}[{}] [send] via NET/Socket/0", r.rank, r.rank,
                               1 - r.rank, 1 - r.rank)) +
            r.comm("COMPLETE");
  const auto log = parse::parse_nccl_log(text);
  const LogView view(log, nullptr, "job.log");
  ASSERT_FALSE(log.edges.empty());
  EXPECT_EQ(view.same_host(log.edges.front()), false);
}

}  // namespace
}  // namespace topotune::checks
