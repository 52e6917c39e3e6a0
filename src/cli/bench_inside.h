#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/bench_run.h"

namespace topotune::cli {

// Suites that `bench all` runs as processes of their own: what goes wrong in a library there is one failed
// result, and its output cannot mix with the document. None takes longer than its limits allow; on an
// interrupt what was measured comes back.

// `bench net` between two processes of this machine.
Result<model::MeasurementRun> net_inside(const BenchOptions& options);

// `bench coll` over NCCL, all ranks in one process: few sizes of the collectives that training uses, ended
// by a time budget. gpus: CUDA's numbers, two or more.
Result<model::MeasurementRun> coll_inside(const BenchOptions& options, const std::vector<int>& gpus);

// The words of that command, without the program.
std::vector<std::string> coll_words(const BenchOptions& options, const std::vector<int>& gpus);

}  // namespace topotune::cli
