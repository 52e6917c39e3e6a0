#pragma once

#include <vector>

#include "tune/search.h"

namespace topotune::tune {

// Default and tuned column of one cell, measured in turns.
struct Column {
  Cell cell;
  Ratio ratio;
  std::vector<double> standard, tuned;  // seconds, pair by pair
  bool held_back = false;               // a size that was not used for tuning
  std::string failed;
  double standard_median() const;
  double tuned_median() const;
};

struct CompareOptions {
  std::vector<Collective> collectives;
  std::vector<std::uint64_t> sizes, held_back;
  std::size_t pairs = 21;
  double budget_seconds = 300;
};

// Every cell at the default and at `tuned(cell)`.
std::vector<Column> compare_columns(Measurer& measurer, const CompareOptions& options,
                                    const std::function<Candidate(const Cell&)>& tuned, const Hooks& hooks);

// What the columns come to.
struct Summary {
  double large_gain = 1;   // geometric mean of the ratios of all-reduce from 4 MiB on
  double least_ratio = 1;  // of all cells
  std::size_t faster = 0;  // cells faster by 5 %
  std::size_t slower = 0;  // cells whose ratio is below 0.99
  std::size_t cells = 0;
};
Summary summary_of(const std::vector<Column>& columns);

}  // namespace topotune::tune
