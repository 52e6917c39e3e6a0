#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/instances.h"

namespace topotune::tune {

// Default and tuned column of one cell, measured in turns.
struct Column {
  Cell cell;
  Ratio ratio;
  std::vector<double> standard, tuned;  // seconds: one value a communicator, or round by round
  std::optional<Ratio> control;         // the same of two defaults: what this way to measure makes of nothing
  bool held_back = false;               // a size that was not used for tuning
  std::string failed;                   // why there is no ratio
  double standard_median() const;
  double tuned_median() const;
};

struct CompareOptions {
  std::vector<Cell> cells, held_back;
  std::size_t pairs = 24;  // of communicators at most; or of samples
  double budget_seconds = 300;
  double least = kLeast;
};

// Every cell in fresh communicators of three kinds: the default, the default again as control, and the
// table's. First twelve pairs of each; more for those that are neither surely slower nor surely not.
Result<std::vector<Column>> compare_instances(Generations& generations, const CompareOptions& options,
                                              const Hooks& hooks);

// Every cell in two candidates of one set of communicators: what differs is switched, nothing made anew.
std::vector<Column> compare_switched(Measurer& measurer, const CompareOptions& options,
                                     const Candidate& standard, const Candidate& other, const Hooks& hooks);

// How many cells came to what.
struct Verdicts {
  std::size_t not_slower = 0, slower = 0, undecided = 0;
  std::size_t faster = 0;  // the whole interval above 1.01
  double least = 1;        // median
};

// What the columns come to.
struct Summary {
  std::optional<double> large_gain;  // geometric mean of the ratios of all-reduce from 4 MiB on
  std::size_t faster = 0;            // cells faster by 5 %
  std::size_t below = 0;             // cells whose median is below `least`
  Verdicts tuned;
  std::optional<Verdicts> control;  // of the control, as if it were the tuned column
  std::size_t cells = 0;
};
Summary summary_of(const std::vector<Column>& columns, double least = kLeast);

}  // namespace topotune::tune
