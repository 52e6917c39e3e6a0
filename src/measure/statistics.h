#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/measurement.h"

namespace topotune::measure {

// Of the values in any order; nothing for none. Even counts: the mean of the middle two.
std::optional<double> median_of(std::span<const double> values);
// Nearest rank, q in (0, 1]: the smallest value that at least q of the values do not exceed.
std::optional<double> percentile_of(std::span<const double> values, double q);

// 95 % confidence interval of the median. Up to 200 values: percentile bootstrap of 1000 resamples (the same
// values give the same interval). More: the order statistics of the binomial distribution. Fewer than 3:
// nothing.
std::optional<model::Interval> median_ci95(std::span<const double> values);

// Indices of values further than 5 robust standard deviations (1.4826 x the median absolute deviation, at
// least 0.1 % of the median) from the median.
std::vector<std::size_t> outliers_of(std::span<const double> values);

// Half the width of an interval over the median: 0.005 is +-0.5 %.
double relative_half_width(const model::Interval& interval, double median);

struct NoiseLimits {
  double ci = 0.005;     // half width of the interval over the median
  double spread = 0.10;  // (p99 - p50) / p50, downwards (p50 - p1) / p50
  std::size_t min_samples = 3;
};
// Why the values are not repeatable; nothing when they are.
std::optional<std::string> noise_of(std::span<const double> values, const NoiseLimits& limits);

// Fills median, percentiles, interval and outliers of `m` from its samples, and its status when that is ok:
// `noisy` with the reason.
void summarise(model::Measurement& m, const NoiseLimits& limits);

// A small generator whose numbers are the same on every machine (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // [0, 1)
  double normal();                                                            // mean 0, deviation 1

 private:
  std::uint64_t state_;
};

}  // namespace topotune::measure
