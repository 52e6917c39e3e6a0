// Memory latency by the plainest code, for comparison with `topotune bench numa`.
// Usage: reference_latency [MiB] [loads]. Prints nanoseconds a load: median of nine parts.
#include <cstdio>
#include <cstdlib>

#include "plain_chain.h"

int main(int argc, char** argv) {
  const std::size_t bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 512) << 20;
  const std::size_t loads = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 300000;
  const auto* p = plain::make_chain(bytes);
  if (p == nullptr) return 1;
  // Other data push the chain out of the caches.
  std::vector<char> other(std::size_t{768} << 20, 1);
  volatile char sink = 0;
  for (std::size_t i = 0; i < other.size(); i += 64) sink = static_cast<char>(sink + other[i]);
  std::vector<double> parts;
  for (int part = 0; part < 9; ++part) parts.push_back(plain::chase(p, loads));
  std::sort(parts.begin(), parts.end());
  std::printf("%.2f ns (%p)\n", parts[4], static_cast<const void*>(p));
}
