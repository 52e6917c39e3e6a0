#pragma once

#include <functional>
#include <vector>

#include "tune/accept.h"
#include "tune/measurer.h"

namespace topotune::tune {

enum class Way { usual, other };  // how kernels are started: sample() or sample_other_way()

// Seconds of each candidate, in rounds: every candidate once a round, in an order that is drawn anew for each
// one and never measures a candidate twice in a row (it would find its own caches warm), so that drift, the
// place in a round and the one before cancel; two go A B B A. The first, which sets things up, is thrown
// away. `over` is asked before every sample; the rounds that are whole by then stay.
Result<std::vector<std::vector<double>>> rounds(Measurer& measurer, const Cell& cell,
                                                const std::vector<Candidate>& candidates, std::size_t count,
                                                Way way, const std::function<bool()>& over);

}  // namespace topotune::tune
