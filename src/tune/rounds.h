#pragma once

#include <functional>
#include <vector>

#include "tune/accept.h"
#include "tune/measurer.h"

namespace topotune::tune {

enum class Way { usual, other };  // how kernels are started: sample() or sample_other_way()

// Seconds of each candidate, in rounds: every candidate once a round, forwards and backwards in turns, so
// that drift and the place in a round cancel. The first, which sets things up, is thrown away. Fewer rounds
// where `over` says so after at least seven.
Result<std::vector<std::vector<double>>> rounds(Measurer& measurer, const Cell& cell,
                                                const std::vector<Candidate>& candidates, std::size_t count,
                                                Way way, const std::function<bool()>& over);

// Round by round the mean of equal communicators: samples[first .. first + count).
std::vector<double> mean_of(const std::vector<std::vector<double>>& samples, std::size_t first,
                            std::size_t count);

}  // namespace topotune::tune
