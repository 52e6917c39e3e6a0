#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace topotune::launch {

// The value of an environment variable; nothing: not set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment process_environment();

// Which of the node's ranks this process is, as its launcher tells.
struct Rank {
  int local = 0;
  std::optional<int> local_size, global, size;
  std::string launcher;  // "Open MPI", "MPICH", "Slurm", "torchrun", ...
};

// Looks for the innermost launcher: torchrun, MPI, then the scheduler. Nothing: no launcher. A value that is
// no number, or a rank outside its size, is an error.
Result<std::optional<Rank>> detect_rank(const Environment& environment);

// Which of the machine's GPUs, counted by PCI address, the process may use, in CUDA's order for it.
struct Visible {
  std::vector<std::size_t> gpus;  // places in the list of all GPUs
  std::string from;               // the variable that says so; "" all are visible
};
struct KnownGpu {
  std::string bdf;
  std::string uuid;  // "" unknown
};
// CUDA_VISIBLE_DEVICES (numbers or UUIDs; ends at the first entry that is none), under Slurm with confined
// devices together with SLURM_STEP_GPUS; HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES. Errors name the entry.
Result<Visible> visible_gpus(const Environment& environment, const std::vector<KnownGpu>& all);

// The GPU of a rank: its place in the list of all GPUs. More ranks than GPUs is an error, unless each rank
// sees one.
Result<std::size_t> gpu_of_rank(const Rank& rank, const Visible& visible);

}  // namespace topotune::launch
