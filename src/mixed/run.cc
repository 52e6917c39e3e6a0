#include "mixed/run.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "coll/share.h"
#include "measure/runner.h"

namespace topotune::mixed {

namespace {

// One stream's way through its plan.
class Walker {
 public:
  Walker(const Running& running, double begin) : plan_(running.plan), lane_(*running.lane), begin_(begin) {
    done_.reserve(plan_.count);
  }

  bool finished() const { return done_.size() == plan_.count; }
  bool under_way() const { return under_way_; }
  double next_due() const { return plan_.due_of(done_.size()); }
  std::vector<Done>& done() { return done_; }

  // Whether anything happened. Errors: of the lane, or timed_out.
  Result<bool> look(double now, double limit) {
    if (finished()) return false;
    if (!under_way_) {
      if (next_due() > now) return false;
      current_ = {plan_.bytes_of(done_.size()), next_due(), now, 0, 0};
      if (auto ok = lane_.start(current_.bytes); !ok) return about(ok.error());
      return under_way_ = true;
    }
    const auto ended = lane_.ended();
    if (!ended) return about(ended.error());
    if (!*ended) {
      if (now - current_.start < limit) return false;
      return fail(Errc::timed_out, "stream {}: {} of {} bytes did not end within {:g} s", plan_.stream.name,
                  plan_.stream.op, current_.bytes, limit);
    }
    current_.end = measure::monotonic_seconds() - begin_;
    current_.seconds = current_.end - current_.start;
    done_.push_back(current_);
    under_way_ = false;
    return true;
  }

 private:
  tl::unexpected<Error> about(Error error) const {
    error.text = fmt::format("stream {}: {}", plan_.stream.name, error.text);
    return tl::unexpected(std::move(error));
  }

  const StreamPlan& plan_;
  coll::Lane& lane_;
  double begin_;
  bool under_way_ = false;
  Done current_;
  std::vector<Done> done_;
};

// Until the next operation is due, where nothing is under way.
void rest(const std::vector<Walker>& walkers, double now) {
  double next = now + 1e-3;
  for (const auto& walker : walkers) {
    if (walker.finished()) continue;
    if (walker.under_way()) {
      std::this_thread::yield();
      return;
    }
    next = std::min(next, walker.next_due());
  }
  if (next - now > 100e-6) std::this_thread::sleep_for(std::chrono::duration<double>(next - now - 60e-6));
}

Phase taken_from(std::vector<Walker>& walkers) {
  Phase phase;
  for (auto& walker : walkers) phase.push_back(std::move(walker.done()));
  return phase;
}

}  // namespace

Result<Phase> run_streams(const std::vector<Running>& streams, const Watch& watch) {
  const double begin = measure::monotonic_seconds();
  std::vector<Walker> walkers;
  for (const auto& stream : streams) walkers.emplace_back(stream, begin);
  double next_look = 0.02;
  while (!std::ranges::all_of(walkers, &Walker::finished)) {
    bool moved = false;
    for (auto& walker : walkers) {
      const auto looked = walker.look(measure::monotonic_seconds() - begin, watch.limit_seconds);
      if (!looked) return tl::unexpected(looked.error());
      moved = moved || *looked;
    }
    const double now = measure::monotonic_seconds() - begin;
    if (now >= next_look) {
      next_look = now + 0.02;
      watch.alive();
      if (watch.stopped()) return taken_from(walkers);
      if (auto news = watch.news()) return tl::unexpected(std::move(*news));
    }
    if (!moved) rest(walkers, now);
  }
  return taken_from(walkers);
}

Result<Phase> slowest_of_all(peers::Peers& peers, const Phase& mine, double limit_seconds) {
  std::vector<double> seconds;
  for (const auto& stream : mine)
    for (const auto& done : stream) seconds.insert(seconds.end(), {done.seconds, done.start, done.end});
  const auto all = coll::share(peers, seconds, "times of the streams", limit_seconds);
  if (!all) return tl::unexpected(all.error());
  auto out = mine;
  std::size_t at = 0;
  for (auto& stream : out) {
    for (auto& done : stream) {
      done.start = all->front()[at + 1], done.end = all->front()[at + 2];
      for (const auto& row : *all) {
        if (row.size() != seconds.size())
          return fail(Errc::malformed, "a process made another number of operations");
        done.seconds = std::max(done.seconds, row[at]);
      }
      at += 3;
    }
  }
  return out;
}

Result<std::vector<double>> seconds_by_size(peers::Peers& peers, coll::Lane& lane,
                                            const parse::MixedStream& stream, const Watch& watch) {
  Running running;
  running.plan.stream = stream;
  running.plan.count = stream.bytes.size() * 3;
  running.lane = &lane;
  const auto phase = run_streams({running}, watch);
  Result<std::vector<double>> mine = std::vector<double>();
  if (phase && phase->front().size() == running.plan.count) {
    for (std::size_t i = 0; i < stream.bytes.size(); ++i) {
      const auto& done = phase->front();
      mine->push_back((done[i + stream.bytes.size()].seconds + done[i + 2 * stream.bytes.size()].seconds) /
                      2);
    }
  } else {
    mine = tl::unexpected(phase ? Error{Errc::io, "interrupted", {}, {}, {}, {}} : phase.error());
  }
  const auto all = coll::share(peers, mine, "times of " + stream.name, watch.limit_seconds);
  if (!all) return tl::unexpected(all.error());
  auto out = all->front();
  for (const auto& row : *all)
    for (std::size_t i = 0; i < out.size() && i < row.size(); ++i) out[i] = std::max(out[i], row[i]);
  return out;
}

}  // namespace topotune::mixed
