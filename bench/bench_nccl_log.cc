#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>

#include "parse/nccl_log.h"

// A log of 64 ranks on 8 hosts: start lines, connections, then collectives, as NCCL 2.28 prints them.
namespace {

std::string head(int rank) {
  return fmt::format("node{:03}:{}:{} [{}] NCCL INFO ", rank / 8, 4000 + rank, 4000 + rank, rank % 8);
}

void start_lines(std::string& log, int ranks) {
  for (int r = 0; r < ranks; ++r) {
    log += head(r) + "NCCL version 2.28.9+cuda13.0\n";
    log += fmt::format(
        "{}ncclCommInitRankConfig comm 0x55{:04x}0 rank {} nranks {} cudaDev {} nvmlDev {} busId {:x}000 "
        "commId 0xabc - Init START\n",
        head(r), r, r, ranks, r % 8, r % 8, 16 + r % 8);
    for (int c = 0; c < 16; ++c)
      log += fmt::format("{}Channel {:02}/0 : {}[{}] -> {}[{}] via P2P/CUMEM\n", head(r), c, r, r % 8,
                         (r + 1) % ranks, (r + 1) % 8);
  }
}

std::string make_log(std::size_t bytes) {
  constexpr int kRanks = 64;
  std::string log;
  start_lines(log, kRanks);
  for (int step = 0; log.size() < bytes; ++step)
    for (int r = 0; r < kRanks; ++r)
      log += fmt::format(
          "{}AllReduce: opCount 0 sendbuff 0x7f{:04x}00000 recvbuff 0x7e{:04x}00000 count {} datatype 9 op 0 "
          "root 0 comm 0x55{:04x}0 [nranks={}] stream 0x56{:04x}\n",
          head(r), r, r, 512 << (step % 8), r, kRanks, r);
  return log;
}

void read_log(benchmark::State& state) {
  const auto log = make_log(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    topotune::parse::NcclLogParser parser;
    constexpr std::size_t kPiece = std::size_t{1} << 18U;
    for (std::size_t at = 0; at < log.size(); at += kPiece)
      parser.feed(std::string_view(log).substr(at, kPiece));
    benchmark::DoNotOptimize(parser.finish());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(log.size()));
}
BENCHMARK(read_log)->Arg(64 << 20)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
