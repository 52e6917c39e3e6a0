// The memory latency of `topotune bench numa` and that of plain code, in turns of some milliseconds within one
// process: what changes on the machine meanwhile changes both.
// Usage: latency_turns [MiB] [turns] [loads of a turn]. Prints the medians of both, of all turns, and the
// median of the ratios of neighbouring turns with its quartiles.
#include <cstdio>
#include <cstdlib>

#include "measure/node_memory.h"
#include "measure/statistics.h"
#include "plain_chain.h"

namespace {

using topotune::measure::median_of;
using topotune::measure::percentile_of;

unsigned long number(int argc, char** argv, int index, unsigned long otherwise) {
  return argc > index ? std::strtoul(argv[index], nullptr, 10) : otherwise;
}

// Reads other data until the caches hold nothing of the chains.
void push_out(std::size_t bytes) {
  const std::vector<char> other(bytes, 1);
  volatile char sink = 0;
  for (std::size_t i = 0; i < other.size(); i += 64) sink = static_cast<char>(sink + other[i]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t bytes = number(argc, argv, 1, 512) << 20;
  const auto turns = number(argc, argv, 2, 120), loads = number(argc, argv, 3, 1u << 15);
  topotune::CpuSet first;
  first.add(topotune::measure::allowed_cpus().to_vector().front());
  const topotune::measure::Pinned pinned(first);
  auto block = topotune::measure::NodeMemory::make(bytes, std::nullopt);
  const auto* p = plain::make_chain(bytes);
  if (!block || p == nullptr) return 1;
  topotune::measure::CpuChain chain(*block, 1);
  push_out(std::size_t{768} << 20);
  std::vector<double> own, other, ratios;
  for (unsigned long i = 0; i < turns; ++i) {
    // Who begins changes, so that neither always comes after the other.
    if (i % 2 == 0) own.push_back(chain.chase(loads) * 1e9);
    other.push_back(plain::chase(p, loads));
    if (i % 2 != 0) own.push_back(chain.chase(loads) * 1e9);
    ratios.push_back(own.back() / other.back());
  }
  std::printf("%zu MiB, %s, %lu turns of %lu loads: topotune %.2f ns, plain %.2f ns, ratio %.4f (%.4f to %.4f)\n",
              bytes >> 20, block->pages().c_str(), turns, loads, *median_of(own), *median_of(other),
              *median_of(ratios), *percentile_of(ratios, 0.25), *percentile_of(ratios, 0.75));
}
