#include "cuda/latency.h"

#include <algorithm>
#include <numeric>

#include "measure/statistics.h"

namespace topotune::cuda {

Result<Chain> Chain::make(const Machine& machine, const Gpu& owner, std::size_t bytes, std::size_t stride,
                          bool shuffled) {
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
  for (std::size_t i = chain.order_.size(); shuffled && i > 1; --i)
    std::swap(chain.order_[i - 1], chain.order_[random.below(i)]);
  std::vector<std::uint64_t> image(bytes / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < chain.order_.size(); ++i) {
    const auto next = chain.order_[(i + 1) % chain.order_.size()];
    image[chain.order_[i] * stride / sizeof(std::uint64_t)] = chain.memory_.get() + next * stride;
  }
  auto ok = machine.use(owner);
  if (ok)
    ok = machine.driver.check(machine.driver.f.copy_to_device(chain.memory_.get(), image.data(), bytes),
                              owner.id);
  if (!ok) return tl::unexpected(ok.error());
  return chain;
}

Result<double> Chain::chase(const Lane& lane, std::uint64_t loads, int which, ChaseLoad load) const {
  std::uint64_t start = memory_.get() + order_[0] * stride_;
  std::uint64_t count = loads;
  api::DevicePtr out = end_.get();
  auto block = static_cast<std::uint32_t>(which), kind = static_cast<std::uint32_t>(load);
  void* parameters[] = {&start, &count, &out, &block, &kind};
  auto ok = lane.start();
  if (ok)
    ok = launch(*machine_, lane.gpu(), "tt_chase", std::max(lane.gpu().multiprocessors, which + 1), 1, 0,
                lane.stream(), parameters);
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

// Places differ by a fifth (fastest to slowest), and with the pages that a run gets: many of them, far apart,
// make the middle of one run that of the next.
constexpr std::uint32_t kWarmup = 50, kRounds = 150;
// One side's memory: the flags of the places at 0, the inbox behind them, then the results. The distance of
// flags is no power of two, so that they lie in different slices of the cache.
constexpr std::size_t kFlagDistance = 256 * 1024 + 4096 + 384, kInbox = kMostPlaces * kFlagDistance,
                      kMaxPayload = 65536, kTiming = kInbox + kMaxPayload, kOutcome = kTiming + 16,
                      kCycles = kTiming + 64;
static_assert(kInbox % 16 == 0);

struct Player {
  const Gpu* gpu;
  Buffer memory;
  Lane lane;
};

Result<Player> player_of(const Machine& machine, const Gpu& gpu) {
  auto memory = Buffer::make(machine, gpu, kCycles + std::size_t{kRounds} * 4);
  if (!memory) return tl::unexpected(memory.error());
  auto lane = Lane::make(machine, gpu);
  if (!lane) return tl::unexpected(lane.error());
  const auto& driver = machine.driver;
  auto ok =
      driver.check(driver.f.set_d32_async(memory->get(), 0, memory->size() / 4, lane->stream()), gpu.id);
  if (ok) ok = driver.check(driver.f.stream_synchronize(lane->stream()), gpu.id);
  if (!ok) return tl::unexpected(ok.error());
  return Player{&gpu, std::move(*memory), std::move(*lane)};
}

Result<void> play(const Machine& machine, const Player& me, const Player& other, std::size_t bytes,
                  std::uint32_t place, std::uint32_t first) {
  const std::size_t flag = place * kFlagDistance;
  api::DevicePtr my_flag = me.memory.get() + flag, peer_flag = other.memory.get() + flag;
  api::DevicePtr inbox = me.memory.get() + kInbox, peer_inbox = other.memory.get() + kInbox;
  auto pieces = static_cast<std::uint32_t>(bytes / 16);
  std::uint32_t rounds = kRounds;
  std::int64_t patience = 4'000'000'000;  // cycles: two seconds
  api::DevicePtr cycles = me.memory.get() + kCycles, timing = me.memory.get() + kTiming,
                 outcome = me.memory.get() + kOutcome;
  const int blocks = std::max(me.gpu->multiprocessors, 1);
  auto which = static_cast<std::uint32_t>(place * 29 % static_cast<std::uint32_t>(blocks));
  void* parameters[] = {&my_flag, &peer_flag, &inbox,  &peer_inbox, &pieces,  &rounds,
                        &first,   &patience,  &cycles, &timing,     &outcome, &which};
  return launch(machine, *me.gpu, "tt_pingpong", blocks, 32, 0, me.lane.stream(), parameters);
}

struct Outcome {
  std::uint64_t nanoseconds, cycles;
  std::uint32_t rounds, wrong;
};

Result<Outcome> outcome_of(const Machine& machine, const Player& player) {
  Outcome outcome{};
  const auto& driver = machine.driver;
  auto ok = machine.use(*player.gpu);
  if (ok)
    ok = driver.check(driver.f.stream_synchronize(player.lane.stream()), player.gpu->id + ": ping-pong");
  if (ok)
    ok = driver.check(driver.f.copy_to_host(&outcome, player.memory.get() + kTiming, sizeof outcome),
                      "ping-pong");
  if (!ok) return tl::unexpected(ok.error());
  return outcome;
}

// One place; its round trips, warm-up left out. Adds wrong pieces to `wrong`.
Result<std::vector<double>> play_at(const Machine& machine, const Player& a, const Player& b,
                                    std::size_t bytes, std::uint32_t place, std::uint32_t& wrong) {
  auto ok = play(machine, b, a, bytes, place, 0);
  if (ok) ok = play(machine, a, b, bytes, place, 1);
  if (!ok) return tl::unexpected(ok.error());
  const auto mine = outcome_of(machine, a), theirs = outcome_of(machine, b);
  if (!mine) return tl::unexpected(mine.error());
  if (!theirs) return tl::unexpected(theirs.error());
  if (mine->rounds < kRounds)
    return fail(Errc::timed_out, "the flag did not come back from {} within two seconds (round {})",
                b.gpu->id, mine->rounds + 1);
  wrong += mine->wrong + theirs->wrong;
  std::vector<std::uint32_t> cycles(kRounds);
  const auto& driver = machine.driver;
  ok = machine.use(*a.gpu);
  if (ok)
    ok = driver.check(driver.f.copy_to_host(cycles.data(), a.memory.get() + kCycles, cycles.size() * 4),
                      "ping-pong");
  if (!ok) return tl::unexpected(ok.error());
  const double cycle = static_cast<double>(mine->nanoseconds) * 1e-9 /
                       static_cast<double>(std::max<std::uint64_t>(mine->cycles, 1));
  std::vector<double> out;
  for (std::size_t i = kWarmup; i < cycles.size(); ++i) out.push_back(cycles[i] * cycle);
  return out;
}

}  // namespace

std::vector<double> PingPong::seconds() const {
  std::vector<double> out;
  for (const auto& place : places) out.insert(out.end(), place.begin(), place.end());
  return out;
}

Result<PingPong> ping_pong(const Machine& machine, const Gpu& first, const Gpu& second, std::size_t bytes,
                           std::uint32_t places) {
  bytes = std::min(bytes, kMaxPayload);
  auto a = player_of(machine, first);
  if (!a) return tl::unexpected(a.error());
  auto b = player_of(machine, second);
  if (!b) return tl::unexpected(b.error());
  PingPong out;
  for (std::uint32_t place = 0; place < std::min(places, kMostPlaces); ++place) {
    auto seconds = play_at(machine, *a, *b, bytes, place, out.wrong);
    if (!seconds) return tl::unexpected(seconds.error());
    out.places.push_back(std::move(*seconds));
  }
  return out;
}

}  // namespace topotune::cuda
