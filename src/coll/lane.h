#pragma once

#include <cstddef>
#include <span>

#include "coll/backend.h"

namespace topotune::coll {

// A stream of operations beside others, with a communicator (or a copy) of its own. All processes start the
// same operations of a lane in the same order, one at a time; lanes are independent of each other.
class Lane {
 public:
  virtual ~Lane() = default;
  // Begins an operation; none may be under way. Does not wait for it.
  virtual Result<void> start(std::size_t bytes) = 0;
  // Whether it has ended on this process's ranks; looks without waiting.
  virtual Result<bool> ended() = 0;
  // One operation whose data are compared; waits. unsupported: they cannot be compared here.
  virtual Result<Checked> verify(std::size_t bytes) = 0;
};

// What a checkpoint saves: memory of a device, or what stands for it.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Brings the next `bytes` (at most kPiece) to host memory, where they stay until the next call.
  virtual Result<std::span<const std::byte>> next(std::size_t bytes) = 0;
  static constexpr std::size_t kPiece = std::size_t{64} << 20;
};

}  // namespace topotune::coll
