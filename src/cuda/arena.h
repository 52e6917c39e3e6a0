#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "cuda/transfer.h"

namespace topotune::cuda {

// Two buffers a GPU: what it gives (holds its pattern) and what it takes.
struct Arena {
  const Gpu* gpu = nullptr;
  Buffer give, take;
  Lane lane;               // for filling and checking
  std::uint32_t seed = 0;  // of `give`
  std::size_t bytes() const { return give.size(); }
};

// Of at most `bytes` a buffer, halved until it fits (down to 16 MiB). The give buffer is filled when kernels
// are there.
Result<std::unique_ptr<Arena>> make_arena(const Machine& machine, const Gpu& gpu, std::size_t bytes);

// src's GPU writes, or dst's GPU reads, the first `bytes` of src.give into dst.take + offset.
Transfer transfer_between(const Arena& src, const Arena& dst, bool read, std::size_t bytes,
                          std::size_t offset = 0);

struct Verdict {
  bool verified = false;
  std::string how;  // "pattern read back by GPU1", or why it was not verified
  bool wrong = false;
};
// Where transfers[i] lands: from src[i] in dst[i] at offset[i].
struct Landing {
  const Arena* src;
  const Arena* dst;
  std::size_t offset = 0;
};
// Before the first copy: the destinations hold other data.
Result<void> clear_all(const Machine& machine, const std::vector<Transfer>& transfers,
                       const std::vector<Landing>& landings);
// After the last copy: each owner compares all that arrived.
Result<Verdict> verify(const Machine& machine, const std::vector<Transfer>& transfers,
                       const std::vector<Landing>& landings);

}  // namespace topotune::cuda
