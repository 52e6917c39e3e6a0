#include "cuda/transfer.h"

#include <algorithm>
#include <cmath>

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

Result<void> TransferSet::enqueue(const Transfer& t, const Lane& lane, int times) const {
  if (auto ok = machine_->use(*t.executor); !ok) return ok;
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

Result<std::vector<double>> TransferSet::run(int times) {
  // A stream holds a limited number of entries: what waits behind a closed gate must fit (1024 in today's drivers).
  auto ok = enqueue_all(std::min(times, 400));
  gate_.open();
  if (!ok) return tl::unexpected(ok.error());
  warm_ = true;
  std::vector<double> out;
  for (const auto& lane : lanes_) {
    const auto seconds = lane.seconds();
    if (!seconds) return tl::unexpected(seconds.error());
    out.push_back(*seconds);
  }
  return out;
}

int copies_for(std::size_t bytes, double gbytes_per_s, double seconds) {
  const double one = std::max(static_cast<double>(bytes) / (gbytes_per_s * 1e9), 2.5e-6);
  return static_cast<int>(std::clamp(std::ceil(seconds / one), 1.0, 400.0));
}

}  // namespace topotune::cuda
