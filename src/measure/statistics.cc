#include "measure/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace topotune::measure {

namespace {

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> out(values.begin(), values.end());
  std::ranges::sort(out);
  return out;
}

double median_in_place(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Ranks k such that the k-th smallest and k-th largest value enclose the median in 95 % of all samples.
model::Interval order_statistics(std::span<const double> values) {
  const auto v = sorted(values);
  const double n = static_cast<double>(v.size());
  const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 - 0.98 * std::sqrt(n))));
  return {v[low], v[v.size() - 1 - low]};
}

model::Interval bootstrap(std::span<const double> values) {
  constexpr std::size_t kResamples = 1000;
  Random random(values.size());
  std::vector<double> medians(kResamples), resample(values.size());
  for (auto& median : medians) {
    for (auto& value : resample) value = values[random.below(values.size())];
    median = median_in_place(resample);
  }
  std::ranges::sort(medians);
  return {medians[kResamples / 40], medians[kResamples - 1 - kResamples / 40]};
}

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double Random::normal() {
  constexpr double kTwoPi = 6.283185307179586;
  return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(kTwoPi * uniform());
}

std::optional<double> median_of(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> copy(values.begin(), values.end());
  return median_in_place(copy);
}

std::optional<double> percentile_of(std::span<const double> values, double q) {
  if (values.empty()) return std::nullopt;
  const auto v = sorted(values);
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(v.size())));
  return v[std::clamp<std::size_t>(rank, 1, v.size()) - 1];
}

std::optional<model::Interval> median_ci95(std::span<const double> values) {
  if (values.size() < 3) return std::nullopt;
  return values.size() <= 200 ? bootstrap(values) : order_statistics(values);
}

std::vector<std::size_t> outliers_of(std::span<const double> values) {
  std::vector<std::size_t> out;
  if (values.size() < 5) return out;
  const double median = *median_of(values);
  std::vector<double> deviations;
  for (const double v : values) deviations.push_back(std::abs(v - median));
  const double scale = std::max(1.4826 * *median_of(deviations), 0.001 * std::abs(median));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (deviations[i] > 5 * scale) out.push_back(i);
  }
  return out;
}

double relative_half_width(const model::Interval& interval, double median) {
  return median == 0 ? 0 : (interval.high - interval.low) / 2 / std::abs(median);
}

std::optional<std::string> noise_of(std::span<const double> values, const NoiseLimits& limits) {
  if (values.size() < std::max<std::size_t>(limits.min_samples, 3))
    return fmt::format("only {} samples", values.size());
  const double median = *median_of(values);
  const double half = relative_half_width(*median_ci95(values), median);
  if (half > limits.ci)
    return fmt::format("95 % interval of the median is +-{:.2f} %, wanted {:.2f} %", half * 100,
                       limits.ci * 100);
  const double up = (*percentile_of(values, 0.99) - median) / median;
  const double down = (median - *percentile_of(values, 0.01)) / median;
  if (std::max(up, down) > limits.spread)
    return fmt::format("p{} is {:.1f} % {} the median", up > down ? 99 : 1, std::max(up, down) * 100,
                       up > down ? "above" : "below");
  return std::nullopt;
}

void summarise(model::Measurement& m, const NoiseLimits& limits) {
  m.median = median_of(m.samples);
  m.p1 = percentile_of(m.samples, 0.01);
  m.p99 = percentile_of(m.samples, 0.99);
  m.p999 = m.samples.size() >= 1000 ? percentile_of(m.samples, 0.999) : std::nullopt;
  m.ci95 = median_ci95(m.samples);
  m.outliers = outliers_of(m.samples);
  if (m.status != model::MeasureStatus::ok) return;
  if (const auto why = noise_of(m.samples, limits)) {
    m.status = model::MeasureStatus::noisy;
    m.why = *why;
  }
}

}  // namespace topotune::measure
