#pragma once

#include <optional>
#include <span>

namespace topotune::tune {

// How much faster a candidate is than the default: time of the default over time of the candidate.
struct Ratio {
  double median = 1, low = 1, high = 1;  // with the 95 % interval
};

inline constexpr std::size_t kLeastPairs = 5;
// From samples taken in turns: the i-th of each was measured in the same round, so that drift cancels. Pairs
// beyond the shorter list are left out; fewer than kLeastPairs: nothing.
std::optional<Ratio> paired_ratio(std::span<const double> standard, std::span<const double> candidate);

enum class Judged { faster, as_good, slower, unclear };
// faster: the whole interval is above 1 + margin. as_good: it is above 1 - tolerance. slower: it is below
// that.
Judged judge(const Ratio& ratio, double margin, double tolerance);

}  // namespace topotune::tune
