#pragma once

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

// Memory latency by the plainest code: one array of pointers in transparent huge pages, linked in random
// order, followed by one thread with nothing between the loads. Nothing of this project is in it.
namespace plain {

struct alignas(64) Line {
  Line* next;
};

inline double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The first line of the chain; null without the memory.
inline const Line* make_chain(std::size_t bytes) {
  constexpr std::size_t kHuge = 2u << 20;
  void* const memory =
      mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  const auto aligned = (reinterpret_cast<std::uintptr_t>(memory) + kHuge - 1) / kHuge * kHuge;
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  auto* const lines = reinterpret_cast<Line*>(aligned);
  const std::size_t count = bytes / sizeof(Line);
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937_64 random(12345);
  std::shuffle(order.begin(), order.end(), random);
  for (std::size_t i = 0; i < count; ++i) lines[order[i]].next = &lines[order[(i + 1) % count]];
  return &lines[order[0]];
}

// Nanoseconds a load; p goes on to where it came.
inline double chase(const Line*& p, std::size_t loads) {
  const Line* at = p;
  const double start = cpu_seconds();
  for (std::size_t i = 0; i < loads; ++i) at = at->next;
  asm volatile("" : "+r"(at) : : "memory");  // the loop ends before the clock is read
  const double end = cpu_seconds();
  p = at;
  return (end - start) / static_cast<double>(loads) * 1e9;
}

}  // namespace plain
