// Memory latency by the plainest code, for comparison with `topotune bench numa`: one array of pointers in
// transparent huge pages, linked in random order, followed by one thread with nothing between the loads.
// Usage: reference_latency [MiB] [loads]. Prints nanoseconds a load: median of nine parts.
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

namespace {

struct alignas(64) Line {
  Line* next;
};

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 512) << 20;
  const std::size_t loads = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 300000;
  void* const memory =
      mmap(nullptr, bytes + (2 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  const auto aligned = (reinterpret_cast<std::uintptr_t>(memory) + (2 << 20) - 1) / (2 << 20) * (2 << 20);
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  auto* const lines = reinterpret_cast<Line*>(aligned);
  const std::size_t count = bytes / sizeof(Line);
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937_64 random(12345);
  std::shuffle(order.begin(), order.end(), random);
  for (std::size_t i = 0; i < count; ++i) lines[order[i]].next = &lines[order[(i + 1) % count]];
  // Other data push the chain out of the caches.
  std::vector<char> other(std::size_t{768} << 20, 1);
  volatile char sink = 0;
  for (std::size_t i = 0; i < other.size(); i += 64) sink = static_cast<char>(sink + other[i]);

  std::vector<double> parts;
  const Line* p = &lines[order[0]];
  for (int part = 0; part < 9; ++part) {
    const double start = cpu_seconds();
    for (std::size_t i = 0; i < loads; ++i) p = p->next;
    parts.push_back((cpu_seconds() - start) / static_cast<double>(loads) * 1e9);
  }
  std::sort(parts.begin(), parts.end());
  std::printf("%.2f ns (%p)\n", parts[4], static_cast<const void*>(p));
}
