#include "tune/instances.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "measure/statistics.h"
#include "tune/rounds.h"

namespace topotune::tune {

namespace {

constexpr std::size_t kLeastGenerations = 3;

class Trials {
 public:
  Trials(std::vector<Trial>& trials, const TrialOptions& options, const Hooks& hooks)
      : trials_(trials), o_(options), hooks_(hooks), start_(hooks.now()), open_(trials.size()) {
    for (auto& t : trials_) t.usual.tuned.resize(t.choices.size()), t.other.tuned.resize(t.choices.size());
  }

  Result<void> run(Generations& generations) {
    for (std::size_t g = 0; g < o_.most && open_ > 0 && !hooks_.stop(); ++g) {
      const double before = spent();
      if (g >= kLeastGenerations && before + last_ > o_.budget_seconds) break;
      if (g > 0 && over()) break;
      hooks_.progress("new communicators");
      const auto order = making_order(o_.kinds, g);
      const auto made = generations.make(order);
      if (!made) {
        if (g >= kLeastGenerations || hooks_.stop()) break;
        return tl::unexpected(made.error());
      }
      generation(**made, order, g);
      last_ = spent() - before;
      if (g + 1 >= o_.first && (g + 1 - o_.first) % std::max<std::size_t>(o_.step, 1) == 0) look();
    }
    return {};
  }

 private:
  double spent() const { return hooks_.now() - start_; }
  bool over() const { return hooks_.stop() || spent() > o_.budget_seconds; }
  // What was begun in time may end, but not at any price.
  bool late() const { return hooks_.stop() || spent() > 1.1 * o_.budget_seconds; }

  // The other way first, for all trials: NCCL's launches in streams cost more from the first CUDA graph of a
  // communicator on (it orders them behind graphs, ncclStrongStream's everCaptured), and that would hide what
  // they differ by.
  void generation(Measurer& m, const std::vector<Kind>& order, std::size_t g) {
    std::vector<Trial*> begun;
    const double share = g == 0 ? o_.budget_seconds / kLeastGenerations : o_.budget_seconds;
    for (auto& t : trials_) {
      if (t.settled || !t.failed.empty() || (g > 0 && t.usual.tuned[0].empty())) continue;
      const bool two = m.has_other_way(t.cell);
      if (over() || (g == 0 && spent() > (two ? 0.5 : 1) * share)) break;
      if (two) add_to(t.other, m, t, order, Way::other);
      begun.push_back(&t);
    }
    open_ = 0;
    for (auto* t : begun) {
      if (over() || spent() > share) return;
      if (t->failed.empty()) add_to(t->usual, m, *t, order, Way::usual);
      ++open_;
    }
  }

  // All values of a communicator or none.
  void add_to(InstanceValues& values, Measurer& m, Trial& t, const std::vector<Kind>& order, Way way) {
    hooks_.progress(std::string(name_of(t.cell.collective)) + " " + std::to_string(t.cell.bytes));
    InstanceValues next = values;
    if (const auto ok = add(m, t, order, way, next); ok)
      values = std::move(next);
    else
      t.failed = ok.error().text;
  }

  Result<void> add(Measurer& m, const Trial& t, const std::vector<Kind>& order, Way way, InstanceValues& to) {
    std::vector<Candidate> all;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i] != Kind::tuned)
        all.push_back({i, {}});
      else
        for (const auto& choice : t.choices) all.push_back({i, choice});
    }
    const auto got = rounds(m, t.cell, all, o_.rounds, way, [this] { return late(); });
    if (!got) return tl::unexpected(got.error());
    if (got->front().size() < o_.rounds) return {};  // no time
    auto next = got->begin();
    const auto value = [&] { return measure::median_of(*next++).value_or(0); };
    for (const auto kind : order) {
      if (kind == Kind::standard) to.standard.push_back(value());
      if (kind == Kind::control) to.control.push_back(value());
      if (kind == Kind::tuned)
        for (auto& values : to.tuned) values.push_back(value());
    }
    return {};
  }

  void look() {
    for (auto& t : trials_)
      if (t.failed.empty() && !t.usual.tuned[0].empty()) t.settled = t.settled || o_.settled(t);
  }

  std::vector<Trial>& trials_;
  const TrialOptions& o_;
  const Hooks& hooks_;
  double start_, last_ = 0;
  std::size_t open_;
};

}  // namespace

std::vector<Kind> making_order(const std::vector<Kind>& kinds, std::size_t generation) {
  auto out = kinds;
  if (kinds.size() == 2) {
    constexpr std::array<bool, 4> kTurned{false, true, true, false};
    if (kTurned[generation % 4]) std::swap(out[0], out[1]);
  } else if (kinds.size() > 2) {
    // Even and odd generations each see every kind in every place.
    std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(generation / 2 % kinds.size()),
                out.end());
    if (generation % 2 == 1) std::reverse(out.begin(), out.end());
  }
  for (std::size_t i = out.size(); i > 0; --i) {
    const auto kind = out[i - 1];
    out.push_back(kind);
  }
  return out;
}

Result<void> run_trials(Generations& generations, std::vector<Trial>& trials, const TrialOptions& options,
                        const Hooks& hooks) {
  return Trials(trials, options, hooks).run(generations);
}

Verdict verdict_of(const Ratio& ratio, double least) {
  if (ratio.low >= least) return Verdict::not_slower;
  return ratio.high < least ? Verdict::slower : Verdict::undecided;
}

Verdict both(Verdict a, Verdict b) {
  if (a == Verdict::slower || b == Verdict::slower) return Verdict::slower;
  return a == Verdict::undecided ? a : b;
}

bool nearly_all_slower(const std::vector<double>& standard, const std::vector<double>& tuned, double least) {
  const auto pairs = std::min(standard.size(), tuned.size());
  std::size_t slower = 0;
  for (std::size_t i = 0; i < pairs; ++i) slower += standard[i] < least * tuned[i];
  return pairs >= 8 && slower >= pairs - pairs / 8;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::not_slower:
      return "not slower";
    case Verdict::slower:
      return "slower";
    default:
      return "undecided";
  }
}

std::optional<Ratio> pooled_ratio(const std::vector<const InstanceValues*>& trials) {
  std::size_t pairs = trials.empty() ? 0 : SIZE_MAX;
  for (const auto* t : trials) pairs = std::min({pairs, t->standard.size(), t->tuned[0].size()});
  std::vector<double> ones(pairs, 1.0), means;
  for (std::size_t i = 0; i < pairs; ++i) {
    double sum = 0;
    for (const auto* t : trials) sum += std::log(t->tuned[0][i] / t->standard[i]);
    means.push_back(std::exp(sum / static_cast<double>(trials.size())));
  }
  return paired_ratio(ones, means);
}

}  // namespace topotune::tune
