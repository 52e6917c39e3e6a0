// What a decision of the tuner costs, and ten million of them: `bench_tuner`.
#include <benchmark/benchmark.h>

#include "tune/decide.h"

namespace tune = topotune::tune;

namespace {

tune::Table table_of(int regions) {
  tune::Table table;
  for (int i = 0; i < regions; ++i) {
    const auto from = std::uint64_t{1} << 10 << (i / 2), to = (from << 1) - 1;
    tune::Region r;
    r.from = i % 2 == 0 ? from : from + from / 2, r.to = i % 2 == 0 ? from + from / 2 - 1 : to;
    r.ranks = 2, r.nodes = 1;
    r.choice = {1, i % 3, i % 2 == 0 ? 16 : 0};
    table.regions.push_back(r);
  }
  return table;
}

void decide(benchmark::State& state) {
  const tune::Decider decider(table_of(static_cast<int>(state.range(0))), 2, 1);
  std::uint64_t bytes = 1;
  for (auto _ : state) {
    bytes = bytes * 6364136223846793005u + 1442695040888963407u;
    float costs[7][3] = {};
    int channels = 0;
    if (const auto* choice = decider.choice(4, bytes >> 34)) tune::apply(*choice, costs[0], 7, 3, &channels);
    benchmark::DoNotOptimize(channels);
  }
}

}  // namespace

BENCHMARK(decide)->Arg(1)->Arg(12)->Arg(40);
BENCHMARK(decide)->Name("soak")->Arg(40)->Iterations(10'000'000);
BENCHMARK_MAIN();
