#include "plugins/ticks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace topotune::plugins {

void Ticks::measure() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0x80000007, &a, &b, &c, &d) == 0 || (d & 1u << 8) == 0) return;
  const auto pair = [] {
    return tightest_pair([] { return __rdtsc(); }, [] { return now_ns(CLOCK_MONOTONIC); });
  };
  const TickPair first = pair();
  while (now_ns(CLOCK_MONOTONIC) - first.ns < 3'000'000) {
  }
  const TickPair last = pair();
  ticks_ = last.ticks, ns_ = last.ns, rate_ = tick_rate(first, last);
#endif
}

}  // namespace topotune::plugins
