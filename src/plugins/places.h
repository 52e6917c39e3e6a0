#pragma once

#include <cstdint>
#include <optional>

namespace topotune::plugins {

// Which places are free, for communicators that come and go. Those never used come first; then the one that
// was given back longest ago, a second ago or 64 others before: threads of NCCL may still hold its events.
template <unsigned kMost>
class Places {
 public:
  static constexpr unsigned kFresh = 64;
  // Nothing: all are in use.
  std::optional<unsigned> take(std::uint64_t now_ns) {
    if (used_ < kMost) return used_++;
    if (count_ <= kFresh && (count_ == 0 || now_ns - free_[first_].since_ns < 1'000'000'000))
      return std::nullopt;
    const unsigned place = free_[first_].place;
    first_ = (first_ + 1) % kMost, --count_;
    return place;
  }
  // The place, if any, whose events nobody holds any more from now on.
  std::optional<unsigned> give_back(unsigned place, std::uint64_t now_ns) {
    free_[(first_ + count_++) % kMost] = {now_ns, place};
    if (count_ <= kFresh) return std::nullopt;
    return free_[(first_ + count_ - 1 - kFresh) % kMost].place;
  }

 private:
  struct Free {
    std::uint64_t since_ns = 0;
    unsigned place = 0;
  };
  Free free_[kMost];
  unsigned first_ = 0, count_ = 0, used_ = 0;
};

}  // namespace topotune::plugins
