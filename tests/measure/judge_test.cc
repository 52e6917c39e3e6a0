#include "measure/judge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "measure/statistics.h"

namespace topotune::measure {
namespace {

using model::Trend;
using model::Measurement;
using testing::HasSubstr;

// A cell of a machine with equal links: `deviation` between samples, `drift` of the whole cell, both
// relative.
Measurement cell(int src, int dst, double value, double deviation, Random& random) {
  Measurement m;
  m.name = "p2p.write.ce";
  m.unit = "gbytes_per_s";
  m.params = {{"src", fmt::format("GPU{}", src)},
              {"dst", fmt::format("GPU{}", dst)},
              {"bytes", std::int64_t{1 << 29}}};
  m.expected = model::Expected{394, 397.5, "18 links", "own"};
  for (int i = 0; i < 15; ++i) m.samples.push_back(value * (1 + deviation * random.normal()));
  summarise(m, {});
  return m;
}

// All ordered pairs of n GPUs; the pair 0->1 is slow by `slow`.
std::vector<Measurement> machine(int n, double slow, Random& random) {
  std::vector<Measurement> cells;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      if (i == j) continue;
      const double drift =
          0.001 * random.normal();  // 0.1 % from cell to cell, as two runs of one pair differ
      const double value = 395.5 * (1 + drift) * (i == 0 && j == 1 ? 1 - slow : 1);
      cells.push_back(cell(i, j, value, 0.001, random));
    }
  }
  return cells;
}

TEST(EqualLinks, ATwoPercentSlowLinkIsFound) {
  Random random(1);
  int found = 0, others = 0;
  for (int run = 0; run < 100; ++run) {
    for (const auto& j : judge_equal_links(machine(8, 0.02, random)))
      (j.subject == "GPU0->GPU1" ? found : others)++;
  }
  EXPECT_GE(found, 99);
  EXPECT_EQ(others, 0);
}

// At most one false alarm in a thousand cells.
TEST(EqualLinks, FalseAlarmsAreRare) {
  Random random(2);
  std::size_t alarms = 0, cells = 0;
  for (int run = 0; run < 100; ++run) {
    const auto all = machine(8, 0, random);
    cells += all.size();
    alarms += judge_equal_links(all).size();
  }
  EXPECT_LE(static_cast<double>(alarms) / static_cast<double>(cells), 0.001);
}

TEST(EqualLinks, TwoGpus) {
  Random random(3);
  int found = 0, alarms = 0;
  for (int run = 0; run < 100; ++run) {
    found += !judge_equal_links(machine(2, 0.02, random)).empty();
    alarms += !judge_equal_links(machine(2, 0, random)).empty();
  }
  EXPECT_GE(found, 99);
  EXPECT_EQ(alarms, 0);
}

// name -> the samples of each cell that was recorded on real GPUs.
std::map<std::string, std::vector<std::vector<double>>> recorded_cells() {
  std::ifstream file(TOPOTUNE_TEST_DATA "/measure/h200x2_samples.txt");
  std::map<std::string, std::vector<std::vector<double>>> cells;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name;
    words >> name;
    auto& samples = cells[name].emplace_back();
    for (double value = 0; words >> value;) samples.push_back(value);
  }
  return cells;
}

// Eight GPUs whose cells are resampled from recorded ones, each from a cell chosen at random; 0->1 slow by
// `slow`.
std::vector<Measurement> resampled(const std::string& name, const std::vector<std::vector<double>>& cells,
                                   double slow, Random& random) {
  std::vector<Measurement> out;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      if (i == j) continue;
      const auto& source = cells[random.below(cells.size())];
      auto m = cell(i, j, 1, 0, random);
      m.name = name;
      for (auto& sample : m.samples)
        sample = source[random.below(source.size())] * (i == 0 && j == 1 ? 1 - slow : 1);
      summarise(m, {});
      out.push_back(m);
    }
  }
  return out;
}

TEST(EqualLinks, OnRecordedSamplesTwoPercentAreFoundAndFalseAlarmsAreRare) {
  const auto recorded = recorded_cells();
  ASSERT_EQ(recorded.size(), 4u);
  Random random(6);
  for (const auto& [name, cells] : recorded) {
    std::size_t found = 0, alarms = 0, healthy = 0;
    for (int run = 0; run < 50; ++run) {
      for (const auto& j : judge_equal_links(resampled(name, cells, 0.02, random)))
        (j.subject == "GPU0->GPU1" ? found : alarms)++;
      healthy += 56;
      alarms += judge_equal_links(resampled(name, cells, 0, random)).size();
    }
    EXPECT_EQ(found, 50u) << name;
    EXPECT_LE(static_cast<double>(alarms) / static_cast<double>(healthy), 0.001) << name;
  }
}

TEST(EqualLinks, DifferentLinksAreNotCompared) {
  Random random(4);
  auto cells = machine(3, 0, random);
  cells[0] = cell(0, 1, 197, 0.001, random);
  cells[0].expected = model::Expected{197, 199, "9 links", "own"};
  EXPECT_TRUE(judge_equal_links(cells).empty());
}

TEST(Expected, BelowIsAWarningAboveIsSaid) {
  Random random(5);
  std::vector<Measurement> cells{cell(0, 1, 380, 0.0001, random), cell(1, 0, 420, 0.0001, random),
                                 cell(0, 2, 393.5, 0.0001, random)};
  const auto said = judge_expected(cells);
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].severity, model::Severity::warn);
  EXPECT_THAT(said[0].text, HasSubstr("under the expected 394.0-397.5 (18 links)"));
  EXPECT_EQ(said[1].severity, model::Severity::info);
}

TEST(Moments, SlowdownAndOtherProcessesAreSaid) {
  model::GpuMoment before, after;
  before.gpu = after.gpu = "GPU0";
  before.other_processes = {77, 78};
  after.throttle_reasons = 0x40;
  const std::vector<model::GpuMoment> b{before}, a{after};
  const auto said = judge_moments(b, a);
  ASSERT_EQ(said.size(), 2u);
  EXPECT_THAT(said[0].text, HasSubstr("2 other processes"));
  EXPECT_THAT(said[1].text, HasSubstr("the hardware slowed it down"));
  after.throttle_reasons = 0x1;  // idle
  before.other_processes = std::vector<std::uint32_t>{};
  EXPECT_TRUE(judge_moments(std::vector{before}, std::vector{after}).empty());
}

model::MeasurementRun run_of(std::vector<Measurement> cells) {
  model::MeasurementRun run;
  run.results = std::move(cells);
  return run;
}

TEST(Compare, VerdictsFollowTheRatioAndItsInterval) {
  Random random(6);
  const auto before =
      run_of({cell(0, 1, 395, 0.0005, random), cell(1, 0, 395, 0.0005, random), cell(0, 2, 395, 0.2, random),
              cell(0, 3, 395, 0.0005, random), cell(4, 5, 1, 0, random)});
  const auto after =
      run_of({cell(0, 1, 395, 0.0005, random), cell(1, 0, 380, 0.0005, random), cell(0, 2, 395, 0.2, random),
              cell(0, 3, 410, 0.0005, random), cell(5, 4, 1, 0, random)});
  const auto compared = compare_runs(before, after);
  ASSERT_EQ(compared.rows.size(), 4u);
  EXPECT_EQ(compared.rows[0].change, Trend::same);
  EXPECT_EQ(compared.rows[1].change, Trend::worse);
  EXPECT_EQ(compared.rows[2].change, Trend::unclear);
  EXPECT_EQ(compared.rows[3].change, Trend::better);
  EXPECT_EQ(compared.only_before.size(), 1u);
  EXPECT_EQ(compared.only_after.size(), 1u);
}

TEST(Compare, MoreTimeIsWorse) {
  Random random(7);
  auto a = cell(0, 1, 1e-6, 0.0005, random), b = cell(0, 1, 2e-6, 0.0005, random);
  a.unit = b.unit = "seconds";
  EXPECT_EQ(compare_runs(run_of({a}), run_of({b})).rows[0].change, Trend::worse);
  EXPECT_EQ(compare_runs(run_of({b}), run_of({a})).rows[0].change, Trend::better);
}

TEST(FleetMedian, TakesTheMedianOfTheRuns) {
  Random random(8);
  const std::vector<model::MeasurementRun> runs{run_of({cell(0, 1, 390, 0, random)}),
                                                run_of({cell(0, 1, 395, 0, random)}),
                                                run_of({cell(0, 1, 200, 0, random)})};
  const auto median = fleet_median(runs);
  ASSERT_EQ(median.results.size(), 1u);
  EXPECT_EQ(median.results[0].median, 390.0);
}

}  // namespace
}  // namespace topotune::measure
