#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/accept.h"
#include "tune/rounds.h"
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
  std::vector<std::size_t> standard,
      tuned;          // levels: communicators with the default and with the table's settings
  bool same = false;  // the table sets nothing: NCCL's own choice is the default
  std::size_t rounds = 31;
  double budget_seconds = 50;
  double margin = 0.01;  // in default communicators a choice must be surely faster by this
  double least = 0.99;   // slower: the whole interval of the ratio lies below
  bool borders = true;   // also sizes between those whose choices differ
};

// A choice of a size, measured once more with fresh samples.
struct Measured {
  Choice choice;
  Ratio ratio;                     // by the mean of equal communicators
  std::optional<Ratio> other_way;  // with kernels started the other way
  // Time of NCCL's own choice there over time of this: median and low end; median of the other way.
  double against_nothing = 1, against_nothing_low = 1, against_nothing_other = 1;
  bool slower = false;  // surely: in one way, by the mean and by each pair of communicators
  std::vector<double> standard, tuned;
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

// Measures every answer again, beside NCCL's own choice in the same communicators and beside the default:
// what is not surely better than no entry is dropped; what is slower than the default gives way to NCCL's
// choice for the default communicator with fewer channels, or to no entry; the sizes between two that differ
// are decided likewise. Ascending in collective and size.
std::vector<Proof> prove(Measurer& measurer, const std::vector<Answer>& answers, const ProveOptions& options,
                         const Hooks& hooks);

// The answers that stand.
std::vector<Answer> answers_of(const std::vector<Proof>& proofs);

// Neighbours with one choice are joined; borders lie half way (in the logarithm) between sizes; sizes more
// than eightfold apart do not speak for what lies between them.
// `reach`: how far the first and the last size of a collective speak for smaller and larger ones, as a
// factor.
std::vector<Region> regions_of(std::vector<Answer> answers, int ranks, int nodes, double reach = 1);

}  // namespace topotune::tune
