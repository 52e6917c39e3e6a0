#include "cuda/latency.h"

#include <algorithm>
#include <numeric>

#include "measure/statistics.h"

namespace topotune::cuda {

Result<Chain> Chain::make(const Machine& machine, const Gpu& owner, std::size_t bytes, std::size_t stride) {
  Chain chain;
  chain.machine_ = &machine;
  chain.stride_ = stride;
  auto memory = Buffer::make(machine, owner, bytes);
  if (!memory) return tl::unexpected(memory.error());
  chain.memory_ = std::move(*memory);
  auto end = Buffer::make(machine, owner, 256);
  if (!end) return tl::unexpected(end.error());
  chain.end_ = std::move(*end);

  chain.order_.resize(bytes / stride);
  std::iota(chain.order_.begin(), chain.order_.end(), 0u);
  measure::Random random(42);
  for (std::size_t i = chain.order_.size(); i > 1; --i) std::swap(chain.order_[i - 1], chain.order_[random.below(i)]);
  std::vector<std::uint64_t> image(bytes / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < chain.order_.size(); ++i) {
    const auto next = chain.order_[(i + 1) % chain.order_.size()];
    image[chain.order_[i] * stride / sizeof(std::uint64_t)] = chain.memory_.get() + next * stride;
  }
  auto ok = machine.use(owner);
  if (ok) ok = machine.driver.check(machine.driver.f.copy_to_device(chain.memory_.get(), image.data(), bytes), owner.id);
  if (!ok) return tl::unexpected(ok.error());
  return chain;
}

Result<double> Chain::chase(const Lane& lane, std::uint64_t loads) const {
  std::uint64_t start = memory_.get() + order_[0] * stride_;
  std::uint64_t count = loads;
  api::DevicePtr out = end_.get();
  void* parameters[] = {&start, &count, &out};
  auto ok = lane.start();
  if (ok) ok = launch(*machine_, lane.gpu(), "tt_chase", 1, 1, 0, lane.stream(), parameters);
  if (ok) ok = lane.stop();
  if (!ok) return tl::unexpected(ok.error());
  const auto seconds = lane.seconds();
  if (!seconds) return seconds;
  std::uint64_t reached = 0;
  ok = machine_->driver.check(machine_->driver.f.copy_to_host(&reached, end_.get(), sizeof reached), "chase");
  if (!ok) return tl::unexpected(ok.error());
  if (reached != memory_.get() + order_[loads % order_.size()] * stride_)
    return fail(Errc::io, "verification failed: the chain of pointers ended at another place");
  return *seconds / static_cast<double>(loads);
}

namespace {

// One side's memory: the flag at 0, the inbox at 4096, results behind it.
constexpr std::size_t kInbox = 4096, kMaxPayload = 65536, kTiming = kInbox + kMaxPayload, kOutcome = kTiming + 16,
                      kCycles = kTiming + 64;

struct Player {
  const Gpu* gpu;
  Buffer memory;
  Lane lane;
};

Result<Player> player_of(const Machine& machine, const Gpu& gpu, std::uint32_t rounds) {
  auto memory = Buffer::make(machine, gpu, kCycles + std::size_t{rounds} * 4);
  if (!memory) return tl::unexpected(memory.error());
  auto lane = Lane::make(machine, gpu);
  if (!lane) return tl::unexpected(lane.error());
  const auto& driver = machine.driver;
  auto ok = driver.check(driver.f.set_d32_async(memory->get(), 0, memory->size() / 4, lane->stream()), gpu.id);
  if (ok) ok = driver.check(driver.f.stream_synchronize(lane->stream()), gpu.id);
  if (!ok) return tl::unexpected(ok.error());
  return Player{&gpu, std::move(*memory), std::move(*lane)};
}

Result<void> play(const Machine& machine, const Player& me, const Player& other, std::size_t bytes,
                  std::uint32_t rounds, std::uint32_t first) {
  api::DevicePtr my_flag = me.memory.get(), peer_flag = other.memory.get();
  api::DevicePtr inbox = my_flag + kInbox, peer_inbox = peer_flag + kInbox;
  auto pieces = static_cast<std::uint32_t>(bytes / 16);
  std::int64_t patience = 4'000'000'000;  // cycles: two seconds
  api::DevicePtr cycles = my_flag + kCycles, timing = my_flag + kTiming, outcome = my_flag + kOutcome;
  void* parameters[] = {&my_flag, &peer_flag, &inbox,    &peer_inbox, &pieces, &rounds,
                        &first,   &patience,  &cycles, &timing,     &outcome};
  return launch(machine, *me.gpu, "tt_pingpong", 1, 32, 0, me.lane.stream(), parameters);
}

struct Outcome {
  std::uint64_t nanoseconds, cycles;
  std::uint32_t rounds, wrong;
};

Result<Outcome> outcome_of(const Machine& machine, const Player& player) {
  Outcome outcome{};
  const auto& driver = machine.driver;
  auto ok = machine.use(*player.gpu);
  if (ok) ok = driver.check(driver.f.stream_synchronize(player.lane.stream()), player.gpu->id + ": ping-pong");
  if (ok) ok = driver.check(driver.f.copy_to_host(&outcome, player.memory.get() + kTiming, sizeof outcome), "ping-pong");
  if (!ok) return tl::unexpected(ok.error());
  return outcome;
}

}  // namespace

Result<PingPong> ping_pong(const Machine& machine, const Gpu& first, const Gpu& second, std::size_t bytes,
                           std::uint32_t rounds, std::uint32_t warmup) {
  bytes = std::min(bytes, kMaxPayload);
  auto a = player_of(machine, first, rounds);
  if (!a) return tl::unexpected(a.error());
  auto b = player_of(machine, second, rounds);
  if (!b) return tl::unexpected(b.error());
  auto ok = play(machine, *b, *a, bytes, rounds, 0);
  if (ok) ok = play(machine, *a, *b, bytes, rounds, 1);
  if (!ok) return tl::unexpected(ok.error());
  const auto mine = outcome_of(machine, *a), theirs = outcome_of(machine, *b);
  if (!mine) return tl::unexpected(mine.error());
  if (!theirs) return tl::unexpected(theirs.error());
  if (mine->rounds < rounds)
    return fail(Errc::timed_out, "the flag did not come back from {} within two seconds (round {})", second.id,
                mine->rounds + 1);
  std::vector<std::uint32_t> cycles(rounds);
  ok = machine.use(first);
  if (ok)
    ok = machine.driver.check(
        machine.driver.f.copy_to_host(cycles.data(), a->memory.get() + kCycles, cycles.size() * 4), "ping-pong");
  if (!ok) return tl::unexpected(ok.error());
  const double second_per_cycle =
      static_cast<double>(mine->nanoseconds) * 1e-9 / static_cast<double>(std::max<std::uint64_t>(mine->cycles, 1));
  PingPong out;
  out.wrong = mine->wrong + theirs->wrong;
  for (std::uint32_t i = std::min(warmup, rounds); i < rounds; ++i) out.seconds.push_back(cycles[i] * second_per_cycle);
  return out;
}

}  // namespace topotune::cuda
