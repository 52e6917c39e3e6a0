#pragma once

#include <span>
#include <vector>

#include "model/measurement.h"

namespace topotune::measure {

struct SizePoint {
  double bytes = 0, seconds = 0;
};

struct Fit {
  std::vector<model::PiecewiseSegment> segments;  // by size, without gaps
  double mean_error = 0;                          // mean |model - measured| / measured
};

// time = alpha + bytes / bandwidth, piecewise in the size, alpha and 1/bandwidth not negative. Segments of at
// least three points; the fewest (at most `max_segments`) whose mean relative error is under `enough`, else
// the best. Fewer than three points: no segment.
Fit fit_sizes(std::span<const SizePoint> points, std::size_t max_segments = 4, double enough = 0.01);

// Seconds that the model gives for a size; sizes outside take the nearest segment.
double predict(std::span<const model::PiecewiseSegment> segments, double bytes);

}  // namespace topotune::measure
