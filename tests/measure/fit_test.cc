#include "measure/fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/statistics.h"

namespace topotune::measure {
namespace {

std::vector<SizePoint> sweep(double noise) {
  std::vector<SizePoint> points;
  Random random(7);
  for (double bytes = 8; bytes <= 1 << 30; bytes *= 2) {
    // 2.5 us up to 64 KiB, then 4 us + 200 GB/s, then 12 us + 395 GB/s
    double t = bytes <= 65536 ? 2.5e-6 : bytes <= (8 << 20) ? 4e-6 + bytes / 200e9 : 12e-6 + bytes / 395e9;
    t *= 1 + noise * random.normal();
    points.push_back({bytes, t});
  }
  return points;
}

TEST(Fit, FindsThreeSegmentsExactly) {
  const auto fit = fit_sizes(sweep(0));
  ASSERT_EQ(fit.segments.size(), 3u);
  EXPECT_LT(fit.mean_error, 0.001);
  EXPECT_NEAR(fit.segments[0].alpha_seconds, 2.5e-6, 1e-8);
  EXPECT_NEAR(fit.segments[2].gbytes_per_s, 395, 0.5);
}

TEST(Fit, StaysUnderThreePercentWithNoise) { EXPECT_LT(fit_sizes(sweep(0.01)).mean_error, 0.03); }

TEST(Fit, OneLineIsOneSegment) {
  std::vector<SizePoint> points;
  for (double bytes = 1024; bytes <= 1 << 24; bytes *= 2) points.push_back({bytes, 1e-6 + bytes / 50e9});
  const auto fit = fit_sizes(points);
  ASSERT_EQ(fit.segments.size(), 1u);
  EXPECT_NEAR(fit.segments[0].alpha_seconds, 1e-6, 1e-9);
  EXPECT_NEAR(fit.segments[0].gbytes_per_s, 50, 0.01);
}

TEST(Fit, TooFewPointsGiveNothing) {
  EXPECT_TRUE(fit_sizes(std::vector<SizePoint>{{8, 1e-6}, {16, 1e-6}}).segments.empty());
  EXPECT_TRUE(fit_sizes(std::vector<SizePoint>{{8, 0}, {16, -1}, {0, 1}, {1, NAN}}).segments.empty());
}

TEST(Fit, NeverGivesNegativeParameters) {
  const std::vector<SizePoint> falling{{8, 5e-6}, {16, 4e-6}, {32, 3e-6}, {64, 2e-6}};
  for (const auto& s : fit_sizes(falling).segments) {
    EXPECT_GE(s.alpha_seconds, 0);
    EXPECT_GE(s.gbytes_per_s, 0);
  }
}

TEST(Predict, TakesTheSegmentOfTheSize) {
  const std::vector<model::PiecewiseSegment> segments{{8, 1024, 2e-6, 0}, {2048, 1 << 20, 3e-6, 100}};
  EXPECT_DOUBLE_EQ(predict(segments, 512), 2e-6);
  EXPECT_DOUBLE_EQ(predict(segments, 1e6), 3e-6 + 1e6 / 100e9);
  EXPECT_DOUBLE_EQ(predict(segments, 1e9), 3e-6 + 1e9 / 100e9);
}

}  // namespace
}  // namespace topotune::measure
