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

// One moment on both clocks: the counter was read before and after the clock, `width` ticks apart.
struct TickPair {
  std::uint64_t ticks = 0, ns = 0, width = ~std::uint64_t{0};
};

// The tightest of 16: a thread that loses its processor between two readings has others.
template <class Counter, class Clock>
TickPair tightest_pair(Counter counter, Clock clock) {
  TickPair best;
  for (int i = 0; i < 16; ++i) {
    const std::uint64_t before = counter(), ns = clock(), width = counter() - before;
    if (width < best.width) best = {before + width / 2, ns, width};
  }
  return best;
}

// ns a tick, times 2^32; 0 where the pairs leave more than 1 part in 10^4 open.
inline std::int64_t tick_rate(const TickPair& first, const TickPair& last) {
  const std::uint64_t ticks = last.ticks - first.ticks;
  if (last.ticks <= first.ticks || last.ns <= first.ns || (first.width + last.width) / 2 > ticks / 10'000)
    return 0;
  return static_cast<std::int64_t>(static_cast<double>(last.ns - first.ns) / static_cast<double>(ticks) *
                                   0x1p32);
}

// CLOCK_MONOTONIC by the processor's time stamp counter, where that runs evenly: a third of the price.
class Ticks {
 public:
  // Measures the counter's rate for 3 ms. Before that, and where the counter is no clock or its rate stays
  // unknown, the system's clock is read.
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
