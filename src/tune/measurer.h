#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tune/table.h"

namespace topotune::tune {

// One question: a collective of one size.
struct Cell {
  Collective collective = Collective::all_reduce;
  std::uint64_t bytes = 0;  // of the larger buffer, as NCCL counts
  bool operator==(const Cell&) const = default;
};

// Every collective at every size, ascending in size.
std::vector<Cell> cells_of(const std::vector<Collective>& collectives,
                           const std::vector<std::uint64_t>& sizes);

// One way to answer it: in which communicator, and what is asked of NCCL there.
struct Candidate {
  std::size_t level = 0;
  Choice choice;  // default: NCCL decides
  bool operator==(const Candidate&) const = default;
};

// A communicator over all ranks, made with its own number of thread blocks.
struct Level {
  std::optional<int> ctas;  // nothing: as NCCL makes it
  bool operator==(const Level&) const = default;
};

// What NCCL's own model says about a cell: microseconds, negative where the combination is not possible.
struct Costs {
  int algorithms = 0, protocols = 0;
  std::vector<float> microseconds;  // [algorithm][protocol]
  Choice chosen;                    // by NCCL
};

// What carries out the measurements: NCCL on GPUs, or a model in tests.
class Measurer {
 public:
  virtual ~Measurer() = default;
  virtual int ranks() const = 0;
  virtual const std::vector<Level>& levels() const = 0;  // the first one is the default
  // Whether NCCL asks its tuner about the collective; otherwise only the levels differ.
  virtual bool steerable(Collective collective) const = 0;
  virtual Result<Costs> costs(const Cell& cell, std::size_t level) = 0;
  // Seconds of one operation, measured now. The first call for a cell and candidate sets things up and is
  // thrown away.
  virtual Result<double> sample(const Cell& cell, const Candidate& candidate) = 0;
  // The same in the other way to start kernels (streams where sample() uses CUDA graphs); nothing where there
  // is none.
  virtual bool has_other_way(const Cell&) const { return false; }
  virtual Result<double> sample_other_way(const Cell& cell, const Candidate& candidate) {
    return sample(cell, candidate);
  }
  // Compares every element of one operation with what it must be; an error says which one is wrong.
  virtual Result<bool> verify(const Cell& cell, const Candidate& candidate) = 0;
};

}  // namespace topotune::tune
