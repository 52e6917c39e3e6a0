#include "plugins/ticks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace topotune::plugins {

void Ticks::measure() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0x80000007, &a, &b, &c, &d) == 0 || (d & 1u << 8) == 0) return;
  const std::uint64_t t0 = __rdtsc(), n0 = now_ns(CLOCK_MONOTONIC);
  std::uint64_t t1 = 0, n1 = 0;
  do {
    t1 = __rdtsc(), n1 = now_ns(CLOCK_MONOTONIC);
  } while (n1 - n0 < 3'000'000);
  if (t1 <= t0) return;
  ticks_ = t1, ns_ = n1;
  rate_ = static_cast<std::int64_t>(static_cast<double>(n1 - n0) / static_cast<double>(t1 - t0) * 0x1p32);
#endif
}

}  // namespace topotune::plugins
