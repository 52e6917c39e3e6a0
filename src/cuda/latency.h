#pragma once

#include <cstdint>
#include <vector>

#include "cuda/device.h"

namespace topotune::cuda {

// A closed chain of pointers in random order over `bytes` of memory, one in every `stride` bytes.
class Chain {
 public:
  static Result<Chain> make(const Machine& machine, const Gpu& owner, std::size_t bytes, std::size_t stride);
  // Follows `loads` pointers from the GPU of `lane`. Seconds a load; an error when the end is not where the chain says.
  Result<double> chase(const Lane& lane, std::uint64_t loads) const;

 private:
  const Machine* machine_ = nullptr;
  Buffer memory_;
  Buffer end_;
  std::vector<std::uint32_t> order_;  // order_[i]: the place of the i-th pointer
  std::size_t stride_ = 0;
};

struct PingPong {
  std::vector<double> seconds;  // a round trip each, warm-up left out
  std::uint32_t wrong = 0;      // pieces of data that did not arrive as sent
};
// Puts `bytes` (a multiple of 16, at most 64 KiB; 0: the flag alone) and a flag into the other GPU's memory, by one warp
// on each GPU, `rounds` times there and back. Errors: the flag did not come within two seconds; CUDA's own.
Result<PingPong> ping_pong(const Machine& machine, const Gpu& first, const Gpu& second, std::size_t bytes,
                           std::uint32_t rounds, std::uint32_t warmup);

}  // namespace topotune::cuda
