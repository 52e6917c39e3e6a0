#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/scratch_folder.h"

// Starting a job with NCCL_DEBUG on, for `topotune log --run`.
namespace topotune::cli {

struct Variable {
  std::string name, value;
};

struct RunJob {
  std::vector<std::string> command;
  std::vector<Variable> set;
  std::vector<std::string> unset;
  bool to_stderr = false;  // the job's standard output: our own is the document's
};

struct RunResult {
  int status = 0;  // as a shell tells it: 128 + signal
  double seconds = 0;
};

// Runs the job to its end with NCCL_DEBUG=INFO into files of `folder`. What the job prints is passed on and
// kept in the folder too: its result rows belong to the answer. On a terminal the job sees one.
Result<RunResult> run_job(const RunJob& job, const ScratchFolder& folder);

// The job once more without these variables. One that stands in the command (`env NAME=1 CMD`, `mpirun -x
// NAME=1`) loses its word; a switch that comes from elsewhere (nccl.conf) is turned the other way by the
// environment, which wins.
RunJob without(const RunJob& job, const std::vector<std::string>& names);

}  // namespace topotune::cli
