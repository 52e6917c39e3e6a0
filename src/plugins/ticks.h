#pragma once

#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace topotune::plugins {

inline std::uint64_t now_ns(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

// CLOCK_MONOTONIC by the processor's time stamp counter, where that runs evenly: a third of the price.
class Ticks {
 public:
  // Measures the counter's rate for 3 ms (1 part in 10^5). Before that, and where the counter is no clock,
  // the system's clock is read.
  void measure();
  std::uint64_t now() const {
#if defined(__x86_64__)
    if (rate_ != 0) [[likely]]
      return ns_ + static_cast<std::uint64_t>(
                       static_cast<Wide>(static_cast<std::int64_t>(__rdtsc() - ticks_)) * rate_ >> 32);
#endif
    return now_ns(CLOCK_MONOTONIC);
  }

 private:
  __extension__ using Wide = __int128;
  std::int64_t rate_ = 0;  // ns a tick, times 2^32; 0: not measured
  std::uint64_t ticks_ = 0, ns_ = 0;
};

}  // namespace topotune::plugins
