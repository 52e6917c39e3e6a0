#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "parse/nccl_log.h"

// Logs of ranks on hosts of 8: start lines, connections, then collectives, as NCCL 2.28 prints them.
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

std::string call(int rank, int ranks, const char* op, int count) {
  return fmt::format(
      "{}{}: opCount 0 sendbuff 0x7f{:04x}000000 recvbuff 0x7e{:04x}000000 count {} datatype 9 op 0 root 0 "
      "comm "
      "0x55{:04x}0 [nranks={}] stream 0x56{:04x}\n",
      head(rank), op, rank, rank, count, rank, ranks, rank);
}

// All ranks print one call after another.
std::string calls_in_step(int ranks, std::size_t bytes) {
  std::string log;
  start_lines(log, ranks);
  for (int step = 0; log.size() < bytes; ++step)
    for (int r = 0; r < ranks; ++r) log += call(r, ranks, "AllReduce", 512 << (step % 8));
  return log;
}

// Ranks print the same sequence, each at its own pace.
std::string calls_at_own_pace(int ranks, std::size_t bytes) {
  constexpr std::array kOps{"AllGather", "ReduceScatter", "AllReduce"};
  std::string log;
  start_lines(log, ranks);
  std::mt19937 random(1);
  std::vector<int> place(static_cast<std::size_t>(ranks));
  while (log.size() < bytes) {
    const int r = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const int at = place[static_cast<std::size_t>(r)]++;
    log += call(r, ranks, kOps[static_cast<std::size_t>(at) % kOps.size()], 512 << (at % 8));
  }
  return log;
}

std::string starts_only(int ranks, std::size_t) {
  std::string log;
  start_lines(log, ranks);
  return log;
}

void read_log(benchmark::State& state, std::string (*make)(int, std::size_t)) {
  const auto log = make(static_cast<int>(state.range(0)), std::size_t{64} << 20U);
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
BENCHMARK_CAPTURE(read_log, in_step, calls_in_step)->Arg(64)->Arg(4096)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_log, own_pace, calls_at_own_pace)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_log, starts, starts_only)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
