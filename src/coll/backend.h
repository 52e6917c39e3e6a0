#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "coll/collective.h"

namespace topotune::coll {

// How iterations are started and what is timed.
enum class Mode {
  back_to_back,  // enqueued one after the other; the host's clock from before the first to after the last
  events,        // the same, and each iteration's own time on each rank
  blocking,      // each iteration is waited for before the next one starts
  graph          // all iterations in one CUDA graph; the host's clock from its launch to its end
};
const char* name_of(Mode mode);

struct Timed {
  double seconds = 0;         // of one iteration: the whole time over their number
  double launch_seconds = 0;  // of one iteration, until all were enqueued
  // Mode::events and Mode::blocking: [local rank][iteration], seconds.
  std::vector<std::vector<double>> each;
};

struct Checked {
  std::uint64_t wrong = 0;    // elements of all local ranks
  std::uint64_t checked = 0;  // elements that were compared
  std::string first;          // "rank 1: element 17 of 1024 is 3, not 5"; "" when all are right
};

// A rank that this process holds.
struct LocalRank {
  int rank = 0;
  std::string device;  // "GPU0", "host memory"
  std::string detail;  // "NVIDIA H200 0000:00:06.0"; "" none
};

// What carries out collectives: NCCL on GPUs, MPI on host memory. All processes of the group make the same
// calls in the same order. Nothing in here waits for other processes but the collectives themselves.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual int ranks() const = 0;
  virtual const std::vector<LocalRank>& local() const = 0;
  virtual std::string name() const = 0;  // "NCCL 2.28.9", "Open MPI 4.1.4"
  // The reason why it cannot do this; nothing: it can.
  virtual std::optional<std::string> cannot(const Question& question, Mode mode) const = 0;
  // Iterations use different places of the buffers, as nccl-tests does, so that no cache keeps the data.
  // `launches`: of the CUDA graph, one behind the other, from the first one on, which also uploads it, as
  // nccl-tests' -G counts them; 0: one launch of a graph that has been uploaded.
  virtual Result<Timed> run(const Question& question, int iterations, Mode mode, int launches = 0) = 0;
  // Fills, runs once, and compares every element that arrived with what it must be.
  virtual Result<Checked> verify(const Question& question, Mode mode) = 0;
};

}  // namespace topotune::coll
