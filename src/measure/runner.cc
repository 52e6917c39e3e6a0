#include "measure/runner.h"

#include <algorithm>
#include <chrono>

namespace topotune::measure {

namespace {

bool is_stable(const std::vector<double>& samples, double tolerance) {
  if (samples.size() < 3) return false;
  const std::vector<double> last(samples.end() - 3, samples.end());
  const auto [low, high] = std::ranges::minmax(last);
  return high - low <= tolerance * high;
}

bool is_enough(const std::vector<double>& samples, const Policy& policy) {
  if (samples.size() < policy.min_samples) return false;
  if (samples.size() >= policy.max_samples) return true;
  // The bootstrap costs more than a sample: asked at every fourth.
  if (samples.size() > policy.min_samples && samples.size() % 4 != 0) return false;
  const auto ci = median_ci95(samples);
  return ci && relative_half_width(*ci, *median_of(samples)) <= policy.ci_target;
}

}  // namespace

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<Sampled> sample_until(const Policy& policy, const Sampler& sampler, const Now& now, const Stop& stop) {
  Sampled out;
  std::vector<double> warm;
  double start = now();
  while (warm.size() < policy.max_warmup && !is_stable(warm, policy.warmup_tolerance)) {
    if (stop()) return out.interrupted = true, out;
    auto value = sampler();
    if (!value) return tl::unexpected(value.error());
    warm.push_back(*value);
    if (warm.size() >= 2 && now() - start > policy.max_seconds) break;
  }
  if (is_stable(warm, policy.warmup_tolerance)) {
    out.samples.assign(warm.end() - 2, warm.end());
    warm.resize(warm.size() - 2);
  }
  out.warmup = warm.size();
  start = now();
  while (!is_enough(out.samples, policy)) {
    if (stop()) return out.interrupted = true, out;
    const double spent = now() - start;
    const bool few = out.samples.size() < policy.min_samples;
    if (spent > policy.max_seconds * (few ? 20 : 1)) break;
    auto value = sampler();
    if (!value) return tl::unexpected(value.error());
    out.samples.push_back(*value);
  }
  return out;
}

}  // namespace topotune::measure
