#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tune/accept.h"
#include "tune/instances.h"
#include "tune/search.h"

namespace topotune::tune {

// What a table says about one size of one collective; Choice{}: nothing, NCCL decides.
struct Answer {
  Cell cell;
  Choice choice;
  Ratio ratio;            // time of the default over time of this, as a job would have it
  Choice default_choice;  // what NCCL takes by itself in the default communicator; unknown: Choice{}
};
// What a search found best at a level, as it would be written.
std::vector<Answer> answers_of(const SearchResult& result, std::size_t level, const SearchOptions& options);

struct ProveOptions {
  bool same = false;                           // the table sets nothing: NCCL's own choice is the default
  std::size_t nodes = 1;                       // of the communicators
  std::size_t first = 4, step = 2, most = 12;  // generations of communicators, see TrialOptions
  std::size_t rounds = 3;
  double budget_seconds = 50;
  double margin = 0.01;      // an entry must be surely faster than the default by this
  double small_gain = 0.03;  // and up to `small_bytes` by this in the median: less is not worth a line there
  std::uint64_t small_bytes = 64 << 10;
  double least = kLeast;  // slower: the whole interval of the ratio lies below
  bool borders = true;    // also sizes between those whose choices differ
};

// A choice of a size, measured in fresh communicators. Ratios are over pairs of communicators.
struct Measured {
  Choice choice;
  Ratio ratio;                     // of the default
  std::optional<Ratio> other_way;  // with kernels started the other way
  // Time of NCCL's own choice over time of this one in the same communicators.
  Ratio against_nothing;
  std::optional<Ratio> against_nothing_other;
  Verdict verdict = Verdict::undecided;  // by both ways
  bool surely_slower = false;            // in one of them, by nearly all pairs
  std::vector<double> standard, tuned;   // seconds, one value a communicator
  double worst() const { return other_way ? std::min(ratio.median, other_way->median) : ratio.median; }
};

// What became of an answer.
struct Proof {
  Cell cell;
  Choice before;
  Measured after;
  bool border = false;  // a size in between
  bool proved = false;  // otherwise the time was over, or `failed` says why: nothing is written for it
  std::string failed;
};

struct Proved {
  std::vector<Proof> proofs;  // ascending in collective and size
  // What the table's settings do by themselves to the small sizes that it has no entry for, all of them
  // together (pooled_ratio), in either way to start kernels.
  std::optional<Ratio> left_out, left_out_other;
  std::size_t left_out_cells = 0;
};

// Measures every answer again, beside NCCL's own choice in the same communicators and beside the default, in
// communicators that are made anew: what is not surely better than the default and than no entry is dropped;
// what is slower than the default gives way to NCCL's choice for the default communicator with fewer
// channels, or to no entry; the sizes between two that differ are decided likewise.
Result<Proved> prove(Generations& generations, const std::vector<Answer>& answers,
                     const ProveOptions& options, const Hooks& hooks);

// Sizes that are surely slower than the default although nothing better was found for them.
std::vector<const Proof*> still_slower(const Proved& proved);
// Why a level's settings cost more than they are worth; empty: they do not. More than one size in fifty stays
// slower, one does by more than 5 %, or the small sizes without an entry do together.
std::string refusal(const Proved& proved);

// The answers that stand.
std::vector<Answer> answers_of(const std::vector<Proof>& proofs);

// What the sizes of answers speak for: from..to bytes of a collective each, in the order of `answers`, which
// are ascending in collective and size.
struct Span {
  Collective collective = Collective::all_reduce;
  std::uint64_t from = 0, to = 0;
};
std::vector<Span> spans_of(const std::vector<Answer>& answers, double reach);

// Neighbours with one choice are joined; borders lie half way (in the logarithm) between sizes; sizes more
// than eightfold apart do not speak for what lies between them.
// `reach`: how far the first and the last size of a collective speak for smaller and larger ones, as a
// factor.
std::vector<Region> regions_of(std::vector<Answer> answers, std::uint32_t ranks, std::uint32_t nodes,
                               double reach = 1);

// Makes room for what was proved for `ranks` and `nodes`: regions and samples of the proved sizes' spans are
// taken out, and regions that reach beyond them are cut. Returns those that gave way, as they were.
std::vector<Region> make_room(Table& table, const std::vector<Proof>& proofs, std::uint32_t ranks,
                              std::uint32_t nodes, double reach);

}  // namespace topotune::tune
