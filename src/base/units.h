#pragma once

#include <compare>
#include <cstdint>

namespace topotune {

// Numbers wear their unit. Bandwidths are of one direction.
struct Bytes {
  std::uint64_t value = 0;
  auto operator<=>(const Bytes&) const = default;
};

struct Seconds {
  double value = 0;
  auto operator<=>(const Seconds&) const = default;
};

struct GbitsPerSec {
  double value = 0;
  auto operator<=>(const GbitsPerSec&) const = default;
};

// 1e9 bytes per second.
struct GBytesPerSec {
  double value = 0;
  auto operator<=>(const GBytesPerSec&) const = default;
};

constexpr GBytesPerSec to_gbytes(GbitsPerSec rate) { return {rate.value / 8}; }
constexpr GbitsPerSec to_gbits(GBytesPerSec rate) { return {rate.value * 8}; }

}  // namespace topotune
