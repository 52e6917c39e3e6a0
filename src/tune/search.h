#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tune/accept.h"
#include "tune/measurer.h"

namespace topotune::tune {

struct SearchOptions {
  std::vector<Cell> cells;  // ascending in size, so that all collectives get their share of the time
  std::size_t nodes = 1;    // of the communicators
  double budget_seconds = 120;
  double margin = 0.01;     // a choice is taken when it is surely faster by more than this
  double tolerance = 0.01;  // and kept out when it may be slower than the default by more than this
  std::size_t screen = 3;   // samples of a candidate in the first round
  std::size_t decide = 21;  // pairs of the last comparison, twice as many while it is unclear
};

struct Hooks {
  std::function<double()> now;  // seconds, monotonic
  std::function<bool()> stop = [] { return false; };
  std::function<void(const std::string& what)> progress = [](const std::string&) {};
};

// A candidate against the default, measured in turns.
struct Compared {
  Candidate candidate;
  Ratio ratio;
  std::vector<double> standard, tuned;  // seconds, pair by pair
  std::optional<Ratio> other_way;       // of the other way to start kernels, where there is one
};

// By both ways: faster in one and slower in the other is slower.
Judged judge(const Compared& compared, const SearchOptions& options);

struct CellResult {
  Cell cell;
  Choice default_choice;  // what NCCL takes by itself
  std::vector<Compared>
      levels;                // the best of each level that was compared; level 0's may be the default itself
  std::size_t measured = 0;  // candidates
  std::size_t left_out = 0;  // that the model ruled out
  std::string failed;        // why there is no result
};

struct SearchResult {
  std::vector<CellResult> cells;
  std::vector<Cell> left;  // that there was no time for
  bool interrupted = false, out_of_time = false;
  double seconds = 0;
};

// The next round's candidates of a successive halving: the better half by median time, and whatever is within
// `close` of the best; never more than there were. Returns indices into `medians`, best first.
std::vector<std::size_t> better_half(const std::vector<double>& medians, double close);

// What was measured of a candidate at earlier sizes, ascending.
struct Seen {
  double bytes = 0, seconds = 0;
};
// What a candidate will take at least. Time grows with the size; how fast is known only once bandwidth
// decides: when the last two sizes show it (time grew by 0.7 of the size), it goes on like that, otherwise it
// is only not less. Nothing with fewer than two.
std::optional<double> at_least(const std::vector<Seen>& seen, double bytes);
// The line through the last two. Nothing with fewer than two.
std::optional<double> extrapolated(const std::vector<Seen>& seen, double bytes);

// Measures all cells within the time, from 128 KiB on first. An error of one cell is kept with it. A cell
// that cannot be decided before a tenth more than the time is over, or before a stop, is left.
SearchResult search(Measurer& measurer, const SearchOptions& options, const Hooks& hooks);

// The communicator setting with the best mean gain over all cells, where cells that would be slower count
// against it; one in ten that is surely slower rules a level out. A level that costs more thread blocks must
// be better by at least half a percent.
struct LevelScore {
  std::size_t level = 0;
  double gain = 1;  // geometric mean of the ratios
  std::size_t faster = 0, slower = 0, cells = 0;
};
std::vector<LevelScore> score_levels(const SearchResult& result, const std::vector<Level>& levels,
                                     const SearchOptions& options);
std::size_t best_level(const std::vector<LevelScore>& scores);

}  // namespace topotune::tune
