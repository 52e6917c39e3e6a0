#include "tune/search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/statistics.h"
#include "tune/compare.h"
#include "tune/decide.h"
#include "tune/prove.h"

namespace topotune::tune {
namespace {

// A machine of formulas: 24 channels by default; more thread blocks give more bandwidth; LL is quick and
// narrow.
class Model : public Measurer {
 public:
  explicit Model(std::vector<Level> levels, double noise = 0.01)
      : levels_(std::move(levels)), noise_(noise) {}
  int ranks() const override { return 2; }
  const std::vector<Level>& levels() const override { return levels_; }
  bool steerable(Collective c) const override { return c != Collective::all_to_all; }

  double seconds(const Cell& cell, const Candidate& c) const {
    auto choice = c.choice;
    if (choice.algorithm == kNcclChooses) choice = nccl(cell);
    if (c.choice.channels == 0) choice.channels = 99;
    const double channels = std::min(choice.channels, levels_[c.level].ctas.value_or(24));
    const double alpha = choice.protocol == 0 ? 6e-6 : choice.protocol == 1 ? 9e-6 : 17e-6;
    const double width = choice.protocol == 0 ? 0.35 : choice.protocol == 1 ? 0.93 : 1.0;
    const double tree = choice.algorithm == 0 ? 0.9 : 1;
    return alpha + static_cast<double>(cell.bytes) / (width * tree * 14e9 * channels);
  }
  // NCCL is wrong about LL128: it never takes it.
  static Choice nccl(const Cell& cell) { return cell.bytes < (1 << 20) ? Choice{1, 0, 0} : Choice{1, 2, 0}; }

  Result<Costs> costs(const Cell& cell, std::size_t) override {
    Costs out{7, 3, std::vector<float>(21, -1.0f), nccl(cell)};
    for (const int a : {0, 1})
      for (const int p : {0, 1, 2})
        out.microseconds[static_cast<std::size_t>(a * 3 + p)] = a == 0 && p == 1 ? -1.0f : 10.0f;
    return out;
  }
  Result<double> sample(const Cell& cell, const Candidate& c) override {
    if (failing && cell.bytes == 4096) return fail(Errc::io, "broken");
    ++samples;
    EXPECT_FALSE(c.choice.algorithm == 0 && c.choice.protocol == 1)
        << "an entry that is not possible was measured";
    const double t =
        seconds(cell, c) * (1 + noise_ * random_.normal()) * (1 + 0.05 * std::sin(clock));  // drift
    clock += t * 20 + per_sample;
    return t;
  }
  Result<bool> verify(const Cell&, const Candidate&) override { return true; }

  bool has_other_way(const Cell&) const override { return two_ways; }

  double clock = 0, per_sample = 1e-4;
  bool two_ways = false;
  int samples = 0;
  bool failing = false;

 private:
  std::vector<Level> levels_;
  double noise_;
  measure::Random random_{7};
};

SearchOptions options() {
  SearchOptions o;
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = 1024; bytes <= 1u << 30; bytes *= 2) sizes.push_back(bytes);
  o.cells = cells_of({Collective::all_reduce, Collective::all_to_all}, sizes);
  return o;
}

Hooks hooks(Model& m) {
  Hooks h;
  h.now = [&m] { return m.clock; };
  return h;
}

TEST(Search, FindsWhatIsFasterAndTakesNothingThatIsSlower) {
  Model m(std::vector<Level>{{}, {32}});
  const auto o = options();
  const auto result = search(m, o, hooks(m));
  ASSERT_EQ(result.cells.size(), 42u);
  EXPECT_FALSE(result.out_of_time);
  const auto scores = score_levels(result, m.levels(), o);
  const auto level = best_level(scores);
  EXPECT_EQ(level, 1u);
  const auto regions = regions_of(answers_of(result, level, o), 2, 1);
  Table table;
  table.regions = regions;
  const Decider decider(table, 2, 1);
  double gain = 0;
  int large = 0;
  for (const auto& cell : o.cells) {
    if (cell.collective != Collective::all_reduce) continue;
    const auto bytes = cell.bytes;
    const auto* choice = decider.choice(4, bytes);
    const Candidate tuned{level, choice == nullptr ? Choice{} : *choice};
    const double ratio = m.seconds(cell, {0, {}}) / m.seconds(cell, tuned);
    EXPECT_GT(ratio, 0.99) << bytes;
    if (bytes < (4u << 20)) continue;
    gain += std::log(ratio), ++large;
  }
  EXPECT_GT(std::exp(gain / large), 1.2);  // 32 of 24 channels, and LL128 where it is better
  // LL128 is best in the middle, and NCCL does not know.
  ASSERT_NE(decider.choice(4, 1 << 20), nullptr);
  EXPECT_EQ(decider.choice(4, 1 << 20)->protocol, 1);
}

TEST(Search, LeavesOutWhatItsModelRulesOut) {
  Model m(std::vector<Level>{{}});
  const auto result = search(m, options(), hooks(m));
  EXPECT_GT(result.cells[result.cells.size() - 2].left_out, 0u);
  EXPECT_EQ(result.cells.front().left_out, 0u);
}

TEST(Search, NothingIsFasterMeansNoRegion) {
  class Flat : public Model {
   public:
    using Model::Model;
    Result<double> sample(const Cell& cell, const Candidate& c) override {
      auto t = Model::sample(cell, {0, {}});
      (void)c;
      return t;
    }
  } m(std::vector<Level>{{}, {32}});
  auto o = options();
  const auto result = search(m, o, hooks(m));
  const auto level = best_level(score_levels(result, m.levels(), o));
  EXPECT_EQ(level, 0u);
  EXPECT_EQ(regions_of(answers_of(result, level, o), 2, 1).size(), 0u);
}

TEST(Search, KeepsToItsTimeAndStopsWhenTold) {
  Model m(std::vector<Level>{{}, {32}});
  auto o = options();
  o.budget_seconds = 0.05;
  const auto result = search(m, o, hooks(m));
  EXPECT_TRUE(result.out_of_time);
  EXPECT_LT(result.cells.size(), 42u);
  EXPECT_LT(m.clock, 0.15);
  Model n(std::vector<Level>{{}});
  auto h = hooks(n);
  h.stop = [&n] { return n.samples > 100; };
  const auto stopped = search(n, options(), h);
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_LT(stopped.cells.size(), 42u);
}

// A sample of the size takes longer than a thousandth of the time: no number of samples is worth the wait.
TEST(Search, ACellThatCannotBeDecidedInTimeIsLeft) {
  for (const bool two_ways : {false, true}) {
    Model m(std::vector<Level>{{}, {32}});
    m.two_ways = two_ways;
    m.per_sample = 0.1;
    auto o = options();
    o.cells = {{Collective::all_reduce, 1 << 20}};
    for (const double budget : {0.5, 2.0, 3.5}) {
      o.budget_seconds = budget;
      const double start = m.clock;
      const auto result = search(m, o, hooks(m));
      EXPECT_LT(m.clock - start, 1.1 * budget + 0.2);
      EXPECT_TRUE(result.out_of_time || budget == 3.5);
      EXPECT_EQ(result.left.size() + result.cells.size(), 1u);
      for (const auto& cell : result.cells) {
        EXPECT_EQ(cell.failed, "");
        for (const auto& c : cell.levels) EXPECT_GE(std::min(c.standard.size(), c.tuned.size()), 7u);
      }
    }
  }
}

TEST(Search, AStopWaitsForNothing) {
  Model m(std::vector<Level>{{}, {32}});
  m.two_ways = true;
  int asked = 0;
  auto h = hooks(m);
  for (const int samples : {1, 40, 100, 150}) {
    m.samples = 0;
    h.stop = [&] { return asked = m.samples, m.samples >= samples; };
    auto o = options();
    o.cells = {{Collective::all_reduce, 1 << 20}};
    const auto result = search(m, o, h);
    EXPECT_TRUE(result.interrupted);
    EXPECT_FALSE(result.out_of_time);
    EXPECT_EQ(m.samples, samples);
  }
}

TEST(Search, AFailingCellDoesNotEndIt) {
  Model m(std::vector<Level>{{}});
  m.failing = true;
  const auto result = search(m, options(), hooks(m));
  ASSERT_EQ(result.cells.size(), 42u);
  EXPECT_EQ(result.cells[4].failed, "broken");
  EXPECT_EQ(result.cells[6].failed, "");
}

TEST(Regions, NeighboursAreJoinedAndBordersLieHalfWay) {
  SearchResult result;
  const auto cell = [&](std::uint64_t bytes, Choice choice, double ratio) {
    CellResult r;
    r.cell = {Collective::all_gather, bytes};
    r.levels.push_back({{0, choice}, {ratio, ratio - 0.01, ratio + 0.01}, {}, {}, {}});
    result.cells.push_back(r);
  };
  cell(1024, {1, 0, 0}, 1.2), cell(4096, {1, 0, 0}, 1.1), cell(16384, {1, 2, 0}, 1.3),
      cell(65536, {1, 2, 0}, 1.005);
  const auto regions = regions_of(answers_of(result, 0, {}), 2, 1);
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0].from, 1024u);
  EXPECT_EQ(regions[0].to, 8192u);
  EXPECT_DOUBLE_EQ(regions[0].ratio, 1.1);
  EXPECT_EQ(regions[1].from, 8193u);
  EXPECT_EQ(regions[1].to, 32768u);
}

TEST(Accept, DriftCancelsInPairs) {
  std::vector<double> standard, tuned;
  measure::Random random(3);
  for (int i = 0; i < 21; ++i) {
    const double drift = 1 + 0.3 * std::sin(i / 3.0);
    standard.push_back(100e-6 * drift * (1 + 0.002 * random.normal()));
    tuned.push_back(95e-6 * drift * (1 + 0.002 * random.normal()));
  }
  const auto ratio = paired_ratio(standard, tuned);
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->median, 100.0 / 95, 0.003);
  EXPECT_LT(ratio->high - ratio->low, 0.01);
  EXPECT_EQ(judge(*ratio, 0.01, 0.01), Judged::faster);
  EXPECT_EQ(judge({1.0, 0.995, 1.005}, 0.01, 0.01), Judged::as_good);
  EXPECT_EQ(judge({0.97, 0.96, 0.98}, 0.01, 0.01), Judged::slower);
  EXPECT_EQ(judge({1.0, 0.9, 1.1}, 0.01, 0.01), Judged::unclear);
  EXPECT_FALSE(paired_ratio(std::vector<double>{1, 1, 1, 1}, std::vector<double>{1, 1, 1, 1}));
}

TEST(Halving, KeepsTheBetterHalfAndTies) {
  EXPECT_EQ(better_half({4, 1, 3, 2}, 0.01), (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(better_half({1, 1.005, 1.002, 2}, 0.01), (std::vector<std::size_t>{0, 2, 1}));
  EXPECT_EQ(better_half({5}, 0.01), (std::vector<std::size_t>{0}));
  EXPECT_TRUE(better_half({}, 0.01).empty());
}

TEST(Extrapolated, GoesThroughTheLastTwo) {
  EXPECT_FALSE(extrapolated({{1, 1}}, 2));
  EXPECT_DOUBLE_EQ(*extrapolated({{1, 5}, {10, 20}, {20, 30}}, 40), 50);
  EXPECT_DOUBLE_EQ(*extrapolated({{10, 20}, {20, 19}}, 40), 19);  // never falling
}

TEST(AtLeast, SaysNoMoreThanWhatIsSure) {
  EXPECT_FALSE(at_least({{1, 1}}, 2));
  // Latency decides: a little noise between two small sizes says nothing about a gigabyte.
  EXPECT_DOUBLE_EQ(*at_least({{1024, 17.0}, {2048, 17.5}}, 1e9), 17.5);
  // Bandwidth decides: it goes on.
  EXPECT_DOUBLE_EQ(*at_least({{10, 100}, {20, 180}}, 40), 340);
}

// A protocol that is slow for small messages comes back where it is best.
TEST(Search, WhatWasHopelessOnceIsTriedAgain) {
  Model m(std::vector<Level>{{}});
  const auto result = search(m, options(), hooks(m));
  const auto& last = result.cells[result.cells.size() - 2];
  ASSERT_EQ(last.cell.collective, Collective::all_reduce);
  for (const auto& c : last.levels) EXPECT_GT(c.ratio.median, 0.97) << text_of(c.candidate.choice);
}

// More channels that GPUs like and hosts do not: what is slower in one way to start kernels is not taken.
TEST(Search, BothWaysToStartKernelsCount) {
  class TwoWays : public Model {
   public:
    using Model::Model;
    bool has_other_way(const Cell& cell) const override { return cell.bytes <= 4u << 20; }
    Result<double> sample_other_way(const Cell& cell, const Candidate& c) override {
      const int channels = c.choice.channels > 0 ? c.choice.channels : levels()[c.level].ctas.value_or(24);
      return std::max(seconds(cell, c), 40e-6 + 0.1e-6 * channels) * (1 + 1e-3 * (++samples % 3));
    }
  } m(std::vector<Level>{{}, {32}}, 0.003);
  auto o = options();
  std::erase_if(o.cells, [](const Cell& c) { return c.collective != Collective::all_reduce; });
  const auto result = search(m, o, hooks(m));
  for (const auto& cell : result.cells) {
    for (const auto& c : cell.levels) {
      if (cell.cell.bytes > 256 * 1024 || c.candidate.level == 0) continue;
      ASSERT_TRUE(c.other_way) << cell.cell.bytes;
      EXPECT_NE(judge(c, o), Judged::slower) << cell.cell.bytes << " " << text_of(c.candidate.choice);
      EXPECT_LE(c.candidate.choice.channels, 24);
      EXPECT_GT(c.candidate.choice.channels, 0);
    }
  }
  EXPECT_EQ(best_level(score_levels(result, m.levels(), o)), 1u);
}

TEST(Columns, SummaryCountsWhatTheyCameTo) {
  Model m(std::vector<Level>{{}, {32}}, 0.001);
  CompareOptions o;
  o.cells = cells_of({Collective::all_reduce}, {1024, 64u << 20});
  o.held_back = cells_of({Collective::all_reduce}, {48u << 20});
  const auto columns = compare_switched(m, o, {0, {}}, {1, {}}, hooks(m));
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_TRUE(columns[1].held_back);
  const auto s = summary_of(columns);
  EXPECT_EQ(s.cells, 3u);
  EXPECT_EQ(s.faster, 2u);
  EXPECT_EQ(s.tuned.slower, 0u);
  EXPECT_FALSE(s.control);
  EXPECT_GT(s.large_gain, 1.2);
}

}  // namespace
}  // namespace topotune::tune
