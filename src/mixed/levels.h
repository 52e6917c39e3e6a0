#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/measurement.h"
#include "parse/step_log.h"

namespace topotune::mixed {

// A training step by the median of its steps, the first two left out; of the slowest rank.
struct StepSummary {
  std::string kind, op, framework, backend;
  int ranks = 0;
  std::vector<double> seconds;  // of each step on its slowest rank
  double median = 0;
  std::optional<double> compute, dataloader, communication, exposed;  // seconds a step
  std::optional<double> bytes, calls;                                 // of its collectives
  std::optional<double> call_bytes() const;
};
// Of the logs of all ranks. Nothing without a step after the first two.
std::optional<StepSummary> summarise_steps(const std::vector<parse::StepLog>& logs);

// The collective alone at the size of one of the step's calls.
struct CollectiveAlone {
  double seconds = 0, busbw_gbytes_per_s = 0;
  double largest_busbw_gbytes_per_s = 0;  // of the largest size
};

// The four levels, as far as they were measured; the text says why one was not.
struct Levels {
  std::optional<CollectiveAlone> collective;
  std::optional<StepSummary> step;
  std::optional<double> expected_busbw_gbytes_per_s;      // of the largest size, as the user says
  std::optional<std::map<std::string, double>> counters;  // what they rose by
  std::string no_collective, no_step, no_counters;
};

struct LevelVerdict {
  std::string level;  // "ports", "collective", "step", "profile", "none", "unknown"
  std::string text;   // with its evidence
  std::vector<std::string> unknown;
};
// The level that loses most of a step, at least a twentieth of it. Counters of loss come first: they explain
// the others. "none" only when all that is needed to say so was measured.
LevelVerdict verdict_of(const Levels& levels);

// levels.* as results of the common document.
std::vector<model::Measurement> measurements_of(const Levels& levels);
std::string levels_text(const Levels& levels);

}  // namespace topotune::mixed
