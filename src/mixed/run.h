#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "coll/lane.h"
#include "mixed/plan.h"
#include "peers/peers.h"

namespace topotune::mixed {

// An operation, in seconds since the phase's start.
struct Done {
  std::size_t bytes = 0;
  double due = 0, start = 0, end = 0;  // on rank 0
  double seconds = 0;                  // on its slowest process
};

// Streams that run together: of each all operations that ended.
using Phase = std::vector<std::vector<Done>>;

struct Watch {
  std::function<bool()> stopped = [] { return false; };
  std::function<std::optional<Error>()> news = [] { return std::optional<Error>(); };  // of other processes
  std::function<void()> alive = [] {};                                                 // called now and then
  double limit_seconds = 30;                                                           // of one operation
};

struct Running {
  StreamPlan plan;
  coll::Lane* lane = nullptr;
};

// Runs the streams beside each other to the end of their plans, from one thread: looks at each lane in turn,
// begins what is due. When the run was stopped it returns what has ended so far. Errors: of a lane, of
// another process, or timed_out with the stream that did not end.
Result<Phase> run_streams(const std::vector<Running>& streams, const Watch& watch);

// The operations of all processes: rank 0's times with the slowest process's seconds. Called by all, after
// each ended all of them.
Result<Phase> slowest_of_all(peers::Peers& peers, const Phase& mine, double limit_seconds);

// Mean seconds of one operation of each of the stream's sizes, after a first one that does not count; the
// slowest process's.
Result<std::vector<double>> seconds_by_size(peers::Peers& peers, coll::Lane& lane,
                                            const parse::MixedStream& stream, const Watch& watch);

}  // namespace topotune::mixed
