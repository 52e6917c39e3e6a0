#include "measure/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace topotune::measure {
namespace {

using model::Measurement;
using model::MeasureStatus;

TEST(Median, OfOddEvenAndNone) {
  EXPECT_EQ(median_of(std::vector<double>{3, 1, 2}), 2.0);
  EXPECT_EQ(median_of(std::vector<double>{4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median_of(std::vector<double>{}), std::nullopt);
}

TEST(Percentile, IsTheNearestRank) {
  std::vector<double> values(100);
  std::iota(values.begin(), values.end(), 1.0);
  EXPECT_EQ(percentile_of(values, 0.99), 99.0);
  EXPECT_EQ(percentile_of(values, 0.01), 1.0);
  EXPECT_EQ(percentile_of(values, 1.0), 100.0);
  EXPECT_EQ(percentile_of(std::vector<double>{7}, 0.5), 7.0);
  EXPECT_EQ(percentile_of(std::vector<double>{}, 0.5), std::nullopt);
}

TEST(MedianInterval, NeedsThreeValues) {
  EXPECT_FALSE(median_ci95(std::vector<double>{1, 2}));
  EXPECT_TRUE(median_ci95(std::vector<double>{1, 2, 3}));
}

TEST(MedianInterval, IsTheSameForTheSameValues) {
  const std::vector<double> values{1, 5, 2, 8, 3, 9, 4};
  const auto a = median_ci95(values), b = median_ci95(values);
  EXPECT_EQ(a->low, b->low);
  EXPECT_EQ(a->high, b->high);
}

// How often the interval holds the true median of a normal distribution.
double coverage(std::size_t n, int runs) {
  int inside = 0;
  Random random(n);
  for (int run = 0; run < runs; ++run) {
    std::vector<double> values(n);
    for (auto& v : values) v = 100 + random.normal();
    const auto ci = median_ci95(values);
    inside += ci->low <= 100 && 100 <= ci->high;
  }
  return static_cast<double>(inside) / runs;
}

TEST(MedianInterval, HoldsTheMedianNineteenTimesInTwenty) {
  EXPECT_NEAR(coverage(25, 400), 0.95, 0.04);    // bootstrap
  EXPECT_NEAR(coverage(1001, 400), 0.95, 0.04);  // order statistics
}

TEST(Outliers, AreFoundAndKept) {
  std::vector<double> values(20, 100.0);
  values[7] = 90;
  EXPECT_THAT(outliers_of(values), testing::ElementsAre(7u));
  Measurement m;
  m.samples = values;
  summarise(m, {});
  EXPECT_EQ(m.samples.size(), 20u);
  EXPECT_THAT(m.outliers, testing::ElementsAre(7u));
}

TEST(Outliers, ASpreadIsNoOutlier) {
  EXPECT_THAT(outliers_of(std::vector<double>{95, 97, 99, 100, 101, 103, 105}), testing::IsEmpty());
}

TEST(Noise, QuietValuesAreOk) {
  Measurement m;
  m.samples = {100, 100.1, 99.9, 100, 100.05, 99.95, 100};
  summarise(m, {});
  EXPECT_EQ(m.status, MeasureStatus::ok);
  EXPECT_EQ(m.why, "");
  EXPECT_EQ(m.median, 100.0);
}

TEST(Noise, ALooseIntervalIsNoisy) {
  Measurement m;
  m.samples = {100, 80, 120, 90, 110, 70, 130};
  summarise(m, {});
  EXPECT_EQ(m.status, MeasureStatus::noisy);
  EXPECT_THAT(m.why, testing::HasSubstr("95 % interval"));
}

TEST(Noise, ALongTailIsNoisyThoughTheIntervalIsTight) {
  std::vector<double> values(100, 1.0);
  values[3] = values[50] = 1.3;
  EXPECT_THAT(noise_of(values, {}).value_or(""), testing::HasSubstr("p99 is 30.0 % above"));
  for (auto& v : values) v = 2 - v;
  EXPECT_THAT(noise_of(values, {}).value_or(""), testing::HasSubstr("p1 is 30.0 % below"));
}

TEST(Noise, TwoSamplesAreTooFew) { EXPECT_EQ(noise_of(std::vector<double>{1, 1}, {}), "only 2 samples"); }

TEST(Summary, AFailedResultStaysFailed) {
  Measurement m;
  m.samples = {100, 80, 120, 90};
  m.status = MeasureStatus::failed;
  m.why = "x";
  summarise(m, {});
  EXPECT_EQ(m.status, MeasureStatus::failed);
  EXPECT_EQ(m.why, "x");
}

}  // namespace
}  // namespace topotune::measure
