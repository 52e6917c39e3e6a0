#include "tune/accept.h"

#include <algorithm>
#include <vector>

#include "measure/statistics.h"

namespace topotune::tune {

std::optional<Ratio> paired_ratio(std::span<const double> standard, std::span<const double> candidate) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(standard.size(), candidate.size()); ++i)
    if (standard[i] > 0 && candidate[i] > 0) ratios.push_back(standard[i] / candidate[i]);
  if (ratios.size() < kLeastPairs) return std::nullopt;
  const auto interval = measure::median_ci95(ratios);
  const auto median = measure::median_of(ratios);
  if (!interval || !median) return std::nullopt;
  return Ratio{*median, std::min(interval->low, *median), std::max(interval->high, *median)};
}

Judged judge(const Ratio& ratio, double margin, double tolerance) {
  if (ratio.low >= 1 + margin) return Judged::faster;
  if (ratio.low >= 1 - tolerance) return Judged::as_good;
  if (ratio.high < 1 - tolerance) return Judged::slower;
  return Judged::unclear;
}

}  // namespace topotune::tune
