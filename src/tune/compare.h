#pragma once

#include <functional>
#include <vector>

#include "tune/search.h"

namespace topotune::tune {

// Default and tuned column of one cell, measured in turns.
struct Column {
  Cell cell;
  Ratio ratio;
  std::vector<double> standard,
      tuned;                   // seconds, round by round; means where a side has several communicators
  std::optional<Ratio> equal;  // of two communicators with the default: what equal ones differ by
  bool held_back = false;      // a size that was not used for tuning
  std::string failed;
  double standard_median() const;
  double tuned_median() const;
};

struct CompareOptions {
  std::vector<Cell> cells, held_back;
  std::size_t pairs = 21;
  double budget_seconds = 300;
};

// The communicators of a column, equal ones on each side.
struct Sides {
  std::vector<Candidate> standard, tuned;
};

// Every cell on both sides. The first of the standard and the last of the tuned ones stand outside in a
// round.
std::vector<Column> compare_columns(Measurer& measurer, const CompareOptions& options, const Sides& sides,
                                    const Hooks& hooks);

// What the columns come to.
struct Summary {
  double large_gain = 1;    // geometric mean of the ratios of all-reduce from 4 MiB on
  double least_ratio = 1;   // of all cells
  std::size_t faster = 0;   // cells faster by 5 %
  std::size_t below = 0;    // cells whose ratio is below 0.99
  std::size_t slower = 0;   // of these, cells whose whole 95 % interval is below 0.99
  std::size_t unequal = 0;  // cells at which two default communicators differ by more than 1 %
  std::size_t cells = 0;
};
Summary summary_of(const std::vector<Column>& columns);

}  // namespace topotune::tune
