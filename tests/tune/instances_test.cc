#include "tune/instances.h"

#include <gtest/gtest.h>

#include <map>

#include "fresh.h"
#include "tune/compare.h"
#include "tune/rounds.h"

namespace topotune::tune {
namespace {

const Cell kCell{Collective::all_reduce, 1024};
const auto kNever = [] { return false; };

TEST(MakingOrder, EveryKindStandsInEveryPlaceEquallyOften) {
  EXPECT_EQ(making_order({Kind::standard, Kind::tuned}, 0),
            (std::vector<Kind>{Kind::standard, Kind::tuned, Kind::tuned, Kind::standard}));
  for (const auto& kinds : {std::vector<Kind>{Kind::standard, Kind::tuned},
                            std::vector<Kind>{Kind::standard, Kind::tuned, Kind::control}}) {
    // Also among the even and among the odd ones alone, which may get other memory.
    for (const std::size_t parity : {0u, 1u}) {
      std::map<std::pair<std::size_t, Kind>, int> count;
      for (std::size_t g = parity; g < 12; g += 2) {
        const auto order = making_order(kinds, g);
        ASSERT_EQ(order.size(), 2 * kinds.size());
        for (std::size_t i = 0; i < order.size(); ++i) ++count[{i, order[i]}];
      }
      for (const auto& [where, n] : count) EXPECT_EQ(n, 6 / static_cast<int>(kinds.size()));
      EXPECT_EQ(count.size(), 2 * kinds.size() * kinds.size());
    }
  }
}

// One set of communicators S T T S, many samples of each, the interval over the samples.
Ratio of_one_set(Fresh& m, std::size_t samples) {
  EXPECT_TRUE(m.make({Kind::standard, Kind::tuned, Kind::tuned, Kind::standard}));
  std::vector<double> standard, tuned;
  for (std::size_t i = 0; i < samples; ++i) {
    std::vector<double> t(4);
    for (std::size_t k = 0; k < 4; ++k) {
      const auto at = i % 2 == 0 ? k : 3 - k;
      t[at] = *m.sample(kCell, {at, {}});
    }
    standard.push_back(t[0] + t[3]), tuned.push_back(t[1] + t[2]);
  }
  return *paired_ratio(standard, tuned);
}

Ratio of_generations(Fresh& m) {
  std::vector<Trial> trials(1);
  trials[0].cell = kCell;
  EXPECT_TRUE(run_trials(m, trials, {}, m.hooks()));
  return *paired_ratio(trials[0].usual.standard, trials[0].usual.tuned[0]);
}

// The table's communicators are exactly as fast. Many samples of one set say otherwise, and are sure of it.
TEST(Instances, EqualCommunicatorsAreNotSlower) {
  int old_slower = 0, old_wrong = 0, slower = 0, wrong = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Fresh a(seed), b(seed);
    const auto old = of_one_set(a, 31), ratio = of_generations(b);
    old_slower += verdict_of(old, 0.99) == Verdict::slower;
    old_wrong += old.low > 1 || old.high < 1;
    slower += verdict_of(ratio, 0.99) == Verdict::slower;
    wrong += ratio.low > 1 || ratio.high < 1;
  }
  EXPECT_GT(old_slower, 20);  // of 200
  EXPECT_GT(old_wrong, 120);
  EXPECT_LE(slower, 1);
  EXPECT_LE(wrong, 24);  // about 5 % of all
}

TEST(Instances, WhatIsSlowerIsFound) {
  int slower = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Fresh m(seed);
    m.usual = [](const Cell&, Kind kind, const Choice&) { return kind == Kind::tuned ? 10.4e-6 : 10e-6; };
    slower += verdict_of(of_generations(m), 0.99) == Verdict::slower;
  }
  EXPECT_GE(slower, 48);
}

TEST(Instances, TheOneThatIsMadeFirstHasNoAdvantage) {
  Fresh a, b;
  a.offset = b.offset = 0, a.made_first = b.made_first = 0.03;
  EXPECT_LT(of_one_set(a, 31).high, 0.99);
  EXPECT_NEAR(of_generations(b).median, 1, 0.008);
}

// Outside in a round stands twice in a row what comes last in one and first in the next.
TEST(Instances, TheOneThatIsMeasuredTwiceInARowHasNoAdvantage) {
  Fresh a, b;
  a.offset = b.offset = 0, a.measured_before = b.measured_before = 0.08;
  EXPECT_LT(of_one_set(a, 31).high, 0.99);
  ASSERT_TRUE(b.make({Kind::standard, Kind::tuned, Kind::tuned, Kind::standard}));
  const auto got = rounds(b, kCell, {{0, {}}, {1, {}}, {2, {}}, {3, {}}}, 31, Way::usual, kNever);
  ASSERT_TRUE(got);
  for (const std::size_t i : {0u, 3u})
    for (const std::size_t k : {1u, 2u}) EXPECT_NEAR(paired_ratio((*got)[i], (*got)[k])->median, 1, 0.012);
}

TEST(Rounds, TwoGoForwardsAndBackwards) {
  Fresh m;
  ASSERT_TRUE(m.make({Kind::standard, Kind::tuned}));
  std::vector<std::size_t> seen;
  m.usual = [&](const Cell&, Kind kind, const Choice&) {
    seen.push_back(kind == Kind::tuned);
    return 1e-6;
  };
  ASSERT_TRUE(rounds(m, kCell, {{0, {}}, {1, {}}}, 3, Way::usual, kNever));
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1, 1, 0, 0, 1, 1, 0}));
}

TEST(Trials, WhatWouldNotGetThreeGenerationsIsNotBegun) {
  Fresh m;
  std::vector<Trial> trials(100);
  for (auto& t : trials) t.cell = kCell;
  TrialOptions o;
  o.budget_seconds = 1;  // a generation of all takes two
  ASSERT_TRUE(run_trials(m, trials, o, m.hooks()));
  EXPECT_GE(trials.front().usual.standard.size(), 6u);
  EXPECT_TRUE(trials.back().usual.standard.empty());
  EXPECT_LT(m.clock, 1.3);
}

TEST(Trials, NothingIsWorthMoreThanATenthMoreTime) {
  for (const double budget : {0.1, 0.5, 1.0, 2.0}) {
    Fresh m;
    m.two_ways = true;
    m.per_sample = 0.05;
    std::vector<Trial> trials(2);
    for (auto& t : trials) t.cell = kCell;
    TrialOptions o;
    o.budget_seconds = budget;
    ASSERT_TRUE(run_trials(m, trials, o, m.hooks()));
    EXPECT_LT(m.clock, 1.1 * budget + 0.1) << budget;
    for (const auto& t : trials) {
      EXPECT_EQ(t.failed, "");
      EXPECT_EQ(t.usual.standard.size(), t.usual.tuned[0].size());
    }
  }
}

TEST(Trials, AStopWaitsForNothing) {
  Fresh m;
  m.two_ways = true;
  std::vector<Trial> trials(5);
  for (auto& t : trials) t.cell = kCell;
  auto h = m.hooks();
  h.stop = [&] { return m.clock > 0.09; };
  ASSERT_TRUE(run_trials(m, trials, {}, h));
  EXPECT_LT(m.clock, 0.09 + 2 * m.per_sample);
}

TEST(Trials, WhatIsSettledIsMeasuredNoMore) {
  Fresh m;
  std::vector<Trial> trials(2);
  trials[0].cell = kCell, trials[1].cell = {Collective::all_reduce, 2048};
  TrialOptions o;
  o.settled = [](const Trial& t) { return t.cell.bytes == 1024; };
  ASSERT_TRUE(run_trials(m, trials, o, m.hooks()));
  EXPECT_EQ(trials[0].usual.standard.size(), 12u);
  EXPECT_EQ(trials[1].usual.standard.size(), 24u);
}

TEST(Trials, WithoutMoreMemoryWhatThereIsCounts) {
  Fresh m;
  std::vector<Trial> trials(1);
  m.fails_at = 2;
  const auto failed = run_trials(m, trials, {}, m.hooks());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text, "out of memory");
  Fresh n;
  n.fails_at = 4;
  trials.assign(1, {});
  ASSERT_TRUE(run_trials(n, trials, {}, n.hooks()));
  EXPECT_EQ(trials[0].usual.standard.size(), 8u);
}

TEST(Verdicts, OnlyWholeIntervalsDecide) {
  EXPECT_EQ(verdict_of({0.97, 0.96, 0.985}, 0.99), Verdict::slower);
  EXPECT_EQ(verdict_of({0.985, 0.97, 1.0}, 0.99), Verdict::undecided);
  EXPECT_EQ(verdict_of({1.0, 0.98, 1.02}, 0.99), Verdict::undecided);
  EXPECT_EQ(verdict_of({1.0, 0.99, 1.01}, 0.99), Verdict::not_slower);
  EXPECT_EQ(both(Verdict::not_slower, Verdict::slower), Verdict::slower);
  EXPECT_EQ(both(Verdict::not_slower, Verdict::undecided), Verdict::undecided);
  EXPECT_EQ(both(Verdict::not_slower, Verdict::not_slower), Verdict::not_slower);
}

// What single sizes cannot show, all of them together do.
TEST(Pooled, ManySizesTogetherAreSurer) {
  std::vector<InstanceValues> values(30);
  measure::Random random(5);
  for (auto& v : values) {
    v.tuned.resize(1);
    for (int i = 0; i < 12; ++i) {
      v.standard.push_back(10e-6 * (1 + 0.02 * random.normal()));
      v.tuned[0].push_back(10.1e-6 * (1 + 0.02 * random.normal()));
    }
  }
  std::vector<const InstanceValues*> all;
  for (const auto& v : values) all.push_back(&v);
  const auto one = paired_ratio(values[0].standard, values[0].tuned[0]), together = pooled_ratio(all);
  ASSERT_TRUE(together);
  EXPECT_NEAR(together->median, 10.0 / 10.1, 0.004);
  EXPECT_LT(together->high - together->low, 0.4 * (one->high - one->low));
  EXPECT_FALSE(pooled_ratio({}));
}

TEST(Columns, TheControlShowsWhatTheInstrumentMakesOfNothing) {
  Fresh m;
  m.usual = [](const Cell& cell, Kind kind, const Choice&) {
    return kind != Kind::tuned ? 10e-6 : cell.bytes == 1024 ? 10.5e-6 : 9e-6;
  };
  CompareOptions o;
  o.cells = {{Collective::all_reduce, 1024}, {Collective::all_reduce, 2048}};
  o.held_back = {{Collective::all_reduce, 1536}};
  const auto columns = compare_instances(m, o, m.hooks());
  ASSERT_TRUE(columns);
  ASSERT_EQ(columns->size(), 3u);
  EXPECT_TRUE((*columns)[1].held_back);
  const auto s = summary_of(*columns);
  EXPECT_EQ(s.tuned.slower, 1u);
  EXPECT_EQ(s.tuned.not_slower, 2u);
  EXPECT_EQ(s.tuned.faster, 2u);
  EXPECT_EQ(s.faster, 2u);
  ASSERT_TRUE(s.control);
  EXPECT_EQ(s.control->slower, 0u);
  EXPECT_NEAR(s.control->least, 1, 0.02);
}

}  // namespace
TEST(Instances, NearlyAllPairsMustBeSlower) {
  const std::vector<double> twelve(12, 1.0), seven(7, 1.0);
  auto tuned = std::vector<double>(12, 1.02);
  EXPECT_TRUE(nearly_all_slower(twelve, tuned, 0.99));
  tuned[3] = 1.0;
  EXPECT_TRUE(nearly_all_slower(twelve, tuned, 0.99));
  tuned[7] = 1.005;
  EXPECT_FALSE(nearly_all_slower(twelve, tuned, 0.99));
  EXPECT_FALSE(nearly_all_slower(seven, std::vector<double>(7, 1.02), 0.99)) << "too few to say";
}

}  // namespace topotune::tune
