#include "cuda/transfer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace topotune::cuda {

Result<TransferSet> TransferSet::make(const Machine& machine, std::vector<Transfer> transfers) {
  TransferSet set;
  set.machine_ = &machine;
  set.transfers_ = std::move(transfers);
  for (const auto& transfer : set.transfers_) {
    auto lane = Lane::make(machine, *transfer.executor);
    if (!lane) return tl::unexpected(lane.error());
    set.lanes_.push_back(std::move(*lane));
  }
  auto gate = Gate::make(machine);
  if (!gate) return tl::unexpected(gate.error());
  set.gate_ = std::move(*gate);
  return set;
}

Result<void> TransferSet::enqueue(const Transfer& t, const Lane& lane, int times) {
  if (auto ok = machine_->use(*t.executor); !ok) return ok;
  if (t.by_kernel && t.one_launch)
    return launch_copy(*machine_, lane, t.kernel, t.dst, t.src, t.bytes, times);
  for (int i = 0; i < times; ++i) {
    auto ok = t.by_kernel ? launch_copy(*machine_, lane, t.kernel, t.dst, t.src, t.bytes)
                          : machine_->driver.check(
                                machine_->driver.f.copy_async(t.dst, t.src, t.bytes, lane.stream()),
                                t.executor->id + ": copy");
    if (!ok) return ok;
  }
  return {};
}

Result<void> TransferSet::enqueue_all(int times) {
  if (warm_) {
    gate_.close();
    for (const auto& lane : lanes_) {
      if (auto ok = gate_.hold(lane); !ok) return ok;
    }
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    auto ok = lanes_[i].start();
    if (ok) ok = enqueue(transfers_[i], lanes_[i], times);
    if (ok) ok = lanes_[i].stop();
    if (!ok) return ok;
  }
  return {};
}

namespace {

// Opens a gate when its time is up before disarm() is called. A stream holds a limited number of entries
// (1024 in today's drivers, several of them for one small copy from another GPU), and the driver waits for
// room in it: with the gate closed, forever.
class Release {
 public:
  explicit Release(const Gate& gate) : thread_([this, &gate] { wait(gate); }) {}
  ~Release() {
    disarm();
    thread_.join();
  }
  // Whether the gate was still closed.
  bool disarm() {
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
    return !opened_;
  }

 private:
  void wait(const Gate& gate) {
    constexpr std::chrono::milliseconds kPatience(20);
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kPatience, [this] { return done_; })) return;
    opened_ = true;
    gate.open();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false, opened_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace

Result<bool> TransferSet::enqueue_behind_gate(int times) {
  constexpr int kSurelyFit = 4;
  std::optional<Release> release;
  if (warm_ && gate_.is_real() && times > kSurelyFit) release.emplace(gate_);
  const auto ok = enqueue_all(times);
  const bool held = !release || release->disarm();
  gate_.open();
  if (!ok) return tl::unexpected(ok.error());
  return held;
}

Result<std::vector<double>> TransferSet::run(int times) {
  while (true) {
    const int now = std::min(times, deepest_);
    const auto held = enqueue_behind_gate(now);
    if (!held) return tl::unexpected(held.error());
    std::vector<double> out;
    for (const auto& lane : lanes_) {
      const auto seconds = lane.seconds();
      if (!seconds) return tl::unexpected(seconds.error());
      out.push_back(*seconds / now);
    }
    copies_ += static_cast<std::uint64_t>(now);
    warm_ = true;
    if (*held) return out;
    // A part ran while the rest was enqueued: not a sample. Half as many fit for sure.
    deepest_ = std::max(1, now / 2);
  }
}

int copies_for(std::size_t bytes, double gbytes_per_s, double seconds) {
  const double one = std::max(static_cast<double>(bytes) / (gbytes_per_s * 1e9), 2.5e-6);
  return static_cast<int>(std::clamp(std::ceil(seconds / one), 1.0, 400.0));
}

}  // namespace topotune::cuda
