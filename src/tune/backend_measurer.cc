#include "tune/backend_measurer.h"

#include <algorithm>
#include <cmath>

namespace topotune::tune {

namespace {

coll::Op op_of(Collective collective) {
  switch (collective) {
    case Collective::broadcast:
      return coll::Op::broadcast;
    case Collective::reduce:
      return coll::Op::reduce;
    case Collective::all_gather:
      return coll::Op::all_gather;
    case Collective::reduce_scatter:
      return coll::Op::reduce_scatter;
    case Collective::all_to_all:
      return coll::Op::all_to_all;
    default:
      return coll::Op::all_reduce;
  }
}

constexpr std::uint64_t kGraphUpTo = 4 << 20;
constexpr int kMostIterations = 40;

}  // namespace

void BackendMeasurer::use(std::vector<Level> levels, std::vector<coll::Backend*> backends,
                          std::vector<std::size_t> table_levels) {
  levels_ = std::move(levels), backends_ = std::move(backends);
  options_.table_levels = std::move(table_levels);
  ready_.clear();
}

bool BackendMeasurer::steerable(Collective collective) const {
  return steering_ != nullptr && static_cast<int>(collective) < kTunedCollectives;
}

coll::Question BackendMeasurer::question_of(const Cell& cell) const {
  coll::Question q;
  q.op = op_of(cell.collective);
  q.type = options_.type;
  q.bytes = cell.bytes;
  return q;
}

coll::Mode BackendMeasurer::mode_of(const Cell& cell) const {
  const bool wanted = options_.mode == LaunchMode::graph ||
                      (options_.mode == LaunchMode::automatic && cell.bytes <= kGraphUpTo);
  if (!wanted) return coll::Mode::back_to_back;
  const bool possible = std::ranges::none_of(backends_, [&](const coll::Backend* b) {
    return b->cannot(question_of(cell), coll::Mode::graph).has_value();
  });
  return possible ? coll::Mode::graph : coll::Mode::back_to_back;
}

void BackendMeasurer::steer(const Candidate& candidate) {
  if (steering_ == nullptr) return;
  if (std::ranges::find(options_.table_levels, candidate.level) != options_.table_levels.end())
    steering_->release();
  else
    steering_->force(candidate.choice);
}

Result<Costs> BackendMeasurer::costs(const Cell& cell, std::size_t level) {
  steer({level, {}});
  steering_->watch(true);
  const auto before = steering_->last().calls;
  auto timed = backends_[level]->run(question_of(cell), 1, coll::Mode::back_to_back);
  steering_->watch(false);
  if (!timed) return tl::unexpected(timed.error());
  auto last = steering_->last();
  if (last.calls == before)
    return fail(Errc::unsupported, "NCCL did not ask the tuner plugin about {} of {} bytes",
                name_of(cell.collective), cell.bytes);
  if (last.function != static_cast<int>(cell.collective))
    return fail(Errc::unsupported, "NCCL asked the tuner plugin about function {}, not about {}",
                last.function, name_of(cell.collective));
  return std::move(last.costs);
}

// Connections are made by a first call outside of any CUDA graph; the number of repetitions is chosen once a
// cell.
Result<int> BackendMeasurer::prepare(const Cell& cell, const Candidate& candidate) {
  auto& iterations = iterations_[{cell.collective, cell.bytes}];
  const auto& c = candidate.choice;
  auto& ready = ready_[{cell.collective, cell.bytes, candidate.level, c.algorithm, c.protocol, c.channels}];
  if (ready && iterations > 0) return iterations;
  auto& backend = *backends_[candidate.level];
  const auto before = steering_ == nullptr ? 0 : steering_->last().unusable;
  auto first = backend.run(question_of(cell), 1, coll::Mode::back_to_back);
  if (first) first = backend.run(question_of(cell), 2, coll::Mode::back_to_back);
  if (!first) return tl::unexpected(first.error());
  if (steering_ != nullptr && steering_->last().unusable != before)
    return fail(Errc::unsupported, "NCCL cannot do {} for {} of {} bytes", text_of(c),
                name_of(cell.collective), cell.bytes);
  if (iterations == 0) {
    const double times = options_.sample_seconds / std::max(first->seconds, 1e-7);
    iterations = static_cast<int>(std::clamp(std::ceil(times), 2.0, double{kMostIterations}));
    if (first->seconds > 2 * options_.sample_seconds) iterations = 1;
    // In a graph several, so that its launch does not count; what takes ten milliseconds hides it alone.
    if (mode_of(cell) == coll::Mode::graph && first->seconds < 10 * options_.sample_seconds)
      iterations = std::max(iterations, 5);
  }
  ready = true;
  return iterations;
}

Result<double> BackendMeasurer::sample(const Cell& cell, const Candidate& candidate) {
  steer(candidate);
  const auto iterations = prepare(cell, candidate);
  if (!iterations) return tl::unexpected(iterations.error());
  const auto timed = backends_[candidate.level]->run(question_of(cell), *iterations, mode_of(cell));
  if (!timed) return tl::unexpected(timed.error());
  return timed->seconds;
}

bool BackendMeasurer::has_other_way(const Cell& cell) const {
  return options_.mode == LaunchMode::automatic && mode_of(cell) == coll::Mode::graph;
}

Result<double> BackendMeasurer::sample_other_way(const Cell& cell, const Candidate& candidate) {
  steer(candidate);
  const auto iterations = prepare(cell, candidate);
  if (!iterations) return tl::unexpected(iterations.error());
  const auto timed =
      backends_[candidate.level]->run(question_of(cell), *iterations, coll::Mode::back_to_back);
  if (!timed) return tl::unexpected(timed.error());
  return timed->seconds;
}

Result<bool> BackendMeasurer::verify(const Cell& cell, const Candidate& candidate) {
  steer(candidate);
  const auto checked = backends_[candidate.level]->verify(question_of(cell), coll::Mode::back_to_back);
  if (!checked) return tl::unexpected(checked.error());
  if (checked->wrong > 0)
    return fail(Errc::io, "{} of {} bytes by {}: wrong data: {}", name_of(cell.collective), cell.bytes,
                text_of(candidate.choice), checked->first);
  return checked->checked > 0;
}

}  // namespace topotune::tune
