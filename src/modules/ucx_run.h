#pragma once

#include <memory>
#include <vector>

#include "modules/ucx_side.h"

namespace topotune::ucx {

enum Op { kTag = 0, kActive = 1, kPut = 2, kGet = 3 };

// Two processes that measure; `me` and `peer` are their numbers, one of them is the initiator.
struct Pair {
  int peer = 0, me = 0;
  bool initiator = false;
};

struct PingPlan {
  int op = 0;
  std::size_t bytes = 0;
  int rounds = 0;
  double seconds = 0;  // enough, even when the rounds are not all made
};
// At the initiator: how many of the rounds were made. `mean`: seconds of one way without clocks in the loop;
// `samples`: of single ones, room for all rounds.
int ping(Side& side, Pair pair, const PingPlan& plan, double& mean, double* samples);

struct StreamPlan {
  int op = kTag;
  std::size_t bytes = 0;
  double seconds = 0;
  int window = 1;
  bool both = false;
};
// Each side in its own thread.
TopotuneNetStream stream(const std::vector<std::unique_ptr<Side>>& sides, Pair pair, const StreamPlan& plan);

// Bytes that were wrong, at the receiver; 0 at the other.
std::uint64_t verify(Side& side, Pair pair, int op, std::size_t bytes, std::uint32_t seed);

}  // namespace topotune::ucx
