#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coll/backend.h"
#include "measure/session.h"
#include "peers/peers.h"

namespace topotune::coll {

struct SuiteOptions {
  std::vector<Op> ops{Op::all_reduce};
  std::vector<std::size_t> sizes;  // bytes
  Type type = Type::float32;
  Reduction reduction = Reduction::sum;
  int root = 0;
  bool out_of_place = true, in_place = true;
  bool check = true;
  std::vector<Mode> modes{Mode::back_to_back, Mode::events, Mode::blocking, Mode::graph};
  int iterations = 20;                   // of one loop; a loop is one sample
  int graph_launches = 0;                // more than 0: a loop is a CUDA graph, launched so many times
  int warmup = 5;                        // iterations before
  double cell_seconds = 0.2;             // of loops: at least 5 of them, at most 50
  double limit_seconds = 60;             // for one exchange with the other processes
  std::optional<double> budget_seconds;  // of the whole sweep: no cell starts after it
};

// The algorithm that ran, as the library told.
struct Choice {
  std::string algorithm, protocol;
  std::optional<int> channels;
};

// One collective, size and placement, measured; equal in all processes.
struct Cell {
  Question question;
  int ranks = 0;
  std::string why_not;               // "" measured; else why it was not
  std::string error;                 // "" none; of the process that failed
  std::vector<double> loops;         // seconds of an iteration, the mean of all processes, one a loop
  bool graph_loops = false;          // they were CUDA graphs
  double launch_seconds = 0;         // until an iteration was enqueued
  double first_seconds = 0;          // of the very first call, which may set up connections
  std::vector<double> iterations;    // each one's time on its slowest rank
  std::vector<double> rank_medians;  // by rank: time in the collective
  std::vector<double> blocking;      // each waited for before the next starts
  std::optional<double> graph_seconds;
  std::string no_graph;            // why there is none
  std::optional<Checked> checked;  // of all ranks; nothing: not checked
  std::optional<Choice> choice;

  double seconds() const;  // the median loop
  double algbw() const;    // GB/s
  double busbw() const;
};

// Sizes as nccl-tests walks them: begin, then times `factor` or plus `step`, up to end. A factor below 2 and
// no step: begin alone.
std::vector<std::size_t> sizes_from(std::size_t begin, std::size_t end, std::size_t factor, std::size_t step);

// All cells of the options, in the order of ops, sizes, out of place before in place.
std::vector<Question> questions_of(const SuiteOptions& options);

using OnCell = std::function<void(const Cell&)>;
// Measures all cells; each process calls it with the same options. An error: another process is lost, or its
// backend failed for good; cells so far were handed over. Stops early when the session was stopped on any
// process. Cells for which the budget leaves no time are handed over with that reason. Each cell is a part of
// the session's share.
Result<void> run_suite(Backend& backend, peers::Peers& peers, const SuiteOptions& options,
                       measure::Session& session, const OnCell& on_cell);

// The result of a cell in the common document.
model::Measurement measurement_of(const Cell& cell);
// time = alpha + bytes / bandwidth of each collective and placement.
std::vector<model::SizeModel> models_of(const std::vector<Cell>& cells);
// Ranks that the others wait for: their own time in a collective is shorter than the others' by more than a
// fifth and 20 us in most cells. `place_of` names a rank: "rank 3 on h2".
std::vector<model::Judgement> judge_stragglers(const std::vector<Cell>& cells,
                                               const std::function<std::string(int)>& place_of);

}  // namespace topotune::coll
