#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/rank.h"

namespace topotune::cli {

// On how many nodes the ranks of a job will be, as far as this process can know.
struct JobNodes {
  std::optional<bool> several;  // nothing: not known
  std::string forgets;          // the launcher that the command is, where it gives other nodes no variables
};
// From the launcher of this rank; without a rank from the command, where that is a launcher which stays on
// one node: torchrun with --nnodes 1 (or none), srun -N1, mpirun without a list of hosts outside of a
// scheduler; or Python with a script, where no scheduler has several nodes.
JobNodes nodes_of(const std::optional<launch::Rank>& rank, const std::vector<std::string>& command,
                  const launch::Environment& environment);

}  // namespace topotune::cli
