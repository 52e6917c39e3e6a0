#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::parse {

// One training step on one rank. What the script did not measure is unknown.
struct TrainingStep {
  int step = 0;
  double seconds = 0;                                // the whole step
  std::optional<double> compute, dataloader;         // seconds
  std::optional<double> communication;               // seconds of the collectives alone, not overlapped
  std::optional<double> exposed;                     // seconds of communication that nothing hides
  std::optional<double> communication_bytes, calls;  // handed to the collectives in the step
};

// `topotune.step/1`, JSON lines (docs/formats/step.md): what a training script says of its steps.
struct StepLog {
  std::string kind;       // "ddp", "moe"
  std::string op;         // "all_reduce", "alltoall"
  std::string framework;  // "torch 2.9"
  std::string backend;    // "nccl", "gloo"
  int rank = 0, ranks = 1;
  std::vector<TrainingStep> steps;
};

// Errors: malformed with the line.
Result<StepLog> parse_step_log(std::string_view text);

}  // namespace topotune::parse
