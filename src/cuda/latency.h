#pragma once

#include <cstdint>
#include <vector>

#include "cuda/device.h"

namespace topotune::cuda {

enum class ChaseLoad : std::uint32_t { relaxed = 0, cg = 1, plain = 2 };

// A closed chain of pointers, in random order unless told, over `bytes` of memory, one in every `stride`
// bytes.
class Chain {
 public:
  static Result<Chain> make(const Machine& machine, const Gpu& owner, std::size_t bytes, std::size_t stride,
                            bool shuffled = true);
  // Follows `loads` pointers from multiprocessor `which` of the GPU of `lane` (blocks are dealt to them in
  // turn). Seconds a load; an error when the end is not where the chain says.
  Result<double> chase(const Lane& lane, std::uint64_t loads, int which, ChaseLoad load) const;

 private:
  const Machine* machine_ = nullptr;
  Buffer memory_;
  Buffer end_;
  std::vector<std::uint32_t> order_;  // order_[i]: the place of the i-th pointer
  std::size_t stride_ = 0;
};

// Where a flag lies in the second-level cache and which multiprocessor waits for it move the round trip by a
// tenth and more: it is played at many places, and the median is that of all.
struct PingPong {
  std::vector<std::vector<double>> places;  // at each the round trips, warm-up left out
  std::uint32_t wrong = 0;                  // pieces of data that did not arrive as sent
  std::vector<double> seconds() const;      // of all places
};
inline constexpr std::uint32_t kMostPlaces = 512;
// Puts `bytes` (a multiple of 16, at most 64 KiB; 0: the flag alone) and a flag into the other GPU's memory,
// by one warp on each GPU, there and back. Errors: the flag did not come within two seconds; CUDA's own.
Result<PingPong> ping_pong(const Machine& machine, const Gpu& first, const Gpu& second, std::size_t bytes,
                           std::uint32_t places);

}  // namespace topotune::cuda
