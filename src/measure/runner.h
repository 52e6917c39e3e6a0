#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "measure/statistics.h"

namespace topotune::measure {

// How long one number is measured.
struct Policy {
  double ci_target = 0.002;  // half width of the 95 % interval of the median over the median: enough
  std::size_t min_samples = 7;
  std::size_t max_samples = 200;
  double max_seconds =
      0.2;  // of sampling; min_samples are taken even when that takes longer (up to 20 times)
  std::size_t max_warmup = 10;
  double warmup_tolerance = 0.01;  // warm when the last three samples lie this close together; then the last
                                   // two of them count
  NoiseLimits noise;
};

struct Sampled {
  std::vector<double> samples;  // after the warm-up
  std::size_t warmup = 0;       // samples thrown away
  bool interrupted = false;
};

using Sampler = std::function<Result<double>()>;
using Now = std::function<double()>;  // seconds, monotonic
using Stop = std::function<bool()>;   // asked before each sample

// Warms up until stable, then samples until the interval is narrow enough or the time is up. An error of the
// sampler ends it and is returned.
Result<Sampled> sample_until(const Policy& policy, const Sampler& sampler, const Now& now, const Stop& stop);

double monotonic_seconds();

}  // namespace topotune::measure
