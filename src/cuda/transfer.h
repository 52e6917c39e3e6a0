#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/device.h"

namespace topotune::cuda {

// One copy between two places. `executor` is the GPU whose copy engine or kernels move the data: the source's
// GPU writes, the destination's reads. Host addresses (pinned) are addresses like others.
struct Transfer {
  const Gpu* executor = nullptr;
  api::DevicePtr dst = 0, src = 0;
  std::size_t bytes = 0;
  bool by_kernel = false;  // else by the copy engine
  KernelCopy kernel;
  bool one_launch = false;  // of kernels: all copies of a sample by one launch, as a program's own loop would
};

// Transfers that run at the same time, each on a stream of its own.
class TransferSet {
 public:
  static Result<TransferSet> make(const Machine& machine, std::vector<Transfer> transfers);

  // Starts all together, each about `times` copies one after the other. Seconds of one copy, the mean from
  // the first one's start to the last one's end, of each transfer. The first call is made without the gate:
  // the driver may still have to set things up. Where so many copies do not fit into a stream behind the
  // gate, fewer are made from then on.
  Result<std::vector<double>> run(int times);
  // Copies of each transfer so far, those of samples that were thrown away too.
  std::uint64_t copies() const { return copies_; }
  const std::vector<Transfer>& transfers() const { return transfers_; }

 private:
  TransferSet() = default;
  Result<void> enqueue(const Transfer& transfer, const Lane& lane, int times);
  // Whether all was enqueued while the gate was still closed.
  Result<bool> enqueue_behind_gate(int times);
  Result<void> enqueue_all(int times);
  const Machine* machine_ = nullptr;
  std::vector<Transfer> transfers_;
  std::vector<Lane> lanes_;
  Gate gate_;
  bool warm_ = false;
  int deepest_ = 128;  // copies of one stream that are let wait behind the gate
  std::uint64_t copies_ = 0;
};

// How many copies make one sample: long enough that the clock of events (0.5 us) and the start do not count.
int copies_for(std::size_t bytes, double gbytes_per_s, double seconds);

}  // namespace topotune::cuda
