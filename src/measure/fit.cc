#include "measure/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace topotune::measure {

namespace {

constexpr std::size_t kMinPoints = 3;

struct Line {
  double alpha = 0, beta = 0;  // seconds, seconds per byte
  double error = 0;            // sum of |relative error|
};

double error_of(std::span<const SizePoint> points, double alpha, double beta) {
  double sum = 0;
  for (const auto& p : points) sum += std::abs(alpha + beta * p.bytes - p.seconds) / p.seconds;
  return sum;
}

// Least squares of the relative error: sum of ((alpha + beta x - t) / t)^2.
Line line_through(std::span<const SizePoint> points) {
  double a = 0, b = 0, c = 0, d = 0, e = 0;
  for (const auto& p : points) {
    const double w = 1 / (p.seconds * p.seconds);
    a += w, b += w * p.bytes, c += w * p.bytes * p.bytes, d += w * p.seconds, e += w * p.bytes * p.seconds;
  }
  const double determinant = a * c - b * b;
  Line line;
  if (determinant > 0) line.beta = (a * e - b * d) / determinant;
  line.alpha = a > 0 ? (d - line.beta * b) / a : 0;
  if (line.beta < 0) line = {d / a, 0, 0};
  if (line.alpha < 0) line = {0, e / c, 0};
  line.error = error_of(points, line.alpha, line.beta);
  return line;
}

model::PiecewiseSegment segment_of(std::span<const SizePoint> points) {
  const Line line = line_through(points);
  // A slope that adds less than a thousandth over the segment is none.
  const bool flat = line.beta * points.back().bytes < 0.001 * line.alpha;
  return {points.front().bytes, points.back().bytes, line.alpha,
          flat || line.beta <= 0 ? 0 : 1e-9 / line.beta};
}

// best[k][j]: the least error of the first j points in k segments, with where the last one starts.
struct Table {
  std::vector<std::vector<double>> error;
  std::vector<std::vector<std::size_t>> start;
};

Table solve(std::span<const SizePoint> points, std::size_t max_segments) {
  const std::size_t n = points.size();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Table t{{max_segments + 1, std::vector<double>(n + 1, kInfinite)},
          {max_segments + 1, std::vector<std::size_t>(n + 1, 0)}};
  t.error[0][0] = 0;
  for (std::size_t i = 0; i + kMinPoints <= n; ++i) {
    for (std::size_t j = i + kMinPoints; j <= n; ++j) {
      const double cost = line_through(points.subspan(i, j - i)).error;
      for (std::size_t k = 1; k <= max_segments; ++k) {
        if (t.error[k - 1][i] + cost >= t.error[k][j]) continue;
        t.error[k][j] = t.error[k - 1][i] + cost;
        t.start[k][j] = i;
      }
    }
  }
  return t;
}

}  // namespace

Fit fit_sizes(std::span<const SizePoint> input, std::size_t max_segments, double enough) {
  std::vector<SizePoint> points;
  for (const auto& p : input) {
    if (p.bytes > 0 && p.seconds > 0 && std::isfinite(p.seconds)) points.push_back(p);
  }
  std::ranges::sort(points, {}, &SizePoint::bytes);
  Fit fit;
  const std::size_t n = points.size();
  if (n < kMinPoints) return fit;
  max_segments = std::clamp<std::size_t>(max_segments, 1, n / kMinPoints);
  const Table table = solve(points, max_segments);
  std::size_t k = 1;
  while (k < max_segments && table.error[k][n] / static_cast<double>(n) > enough) ++k;
  fit.mean_error = table.error[k][n] / static_cast<double>(n);
  for (std::size_t end = n; k > 0; --k) {
    const std::size_t start = table.start[k][end];
    fit.segments.push_back(segment_of(std::span(points).subspan(start, end - start)));
    end = start;
  }
  std::ranges::reverse(fit.segments);
  return fit;
}

double predict(std::span<const model::PiecewiseSegment> segments, double bytes) {
  if (segments.empty()) return 0;
  auto it = std::ranges::find_if(segments, [&](const auto& s) { return bytes <= s.to_bytes; });
  const auto& s = it == segments.end() ? segments.back() : *it;
  return s.alpha_seconds + (s.gbytes_per_s > 0 ? bytes / (s.gbytes_per_s * 1e9) : 0);
}

}  // namespace topotune::measure
