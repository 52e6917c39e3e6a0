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
      hooks_.progress("new communicators");
      const auto order = making_order(o_.kinds, g);
      const auto made = generations.make(order);
      if (!made) {
        if (g >= kLeastGenerations) break;
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

  void generation(Measurer& m, const std::vector<Kind>& order, std::size_t g) {
    open_ = 0;
    for (auto& t : trials_) {
      if (t.settled || !t.failed.empty() || (g > 0 && t.usual.tuned[0].empty())) continue;
      if (over() || (g == 0 && spent() > o_.budget_seconds / kLeastGenerations)) return;
      hooks_.progress(std::string(name_of(t.cell.collective)) + " " + std::to_string(t.cell.bytes));
      trial(m, t, order);
      ++open_;
    }
  }

  void trial(Measurer& m, Trial& t, const std::vector<Kind>& order) {
    InstanceValues usual = t.usual, other = t.other;
    auto ok = add(m, t, order, Way::usual, usual);
    if (ok && m.has_other_way(t.cell)) ok = add(m, t, order, Way::other, other);
    if (!ok) {
      t.failed = ok.error().text;
      return;
    }
    t.usual = std::move(usual), t.other = std::move(other);
  }

  Result<void> add(Measurer& m, const Trial& t, const std::vector<Kind>& order, Way way, InstanceValues& to) {
    std::vector<Candidate> all;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i] != Kind::tuned)
        all.push_back({i, {}});
      else
        for (const auto& choice : t.choices) all.push_back({i, choice});
    }
    const auto got = rounds(m, t.cell, all, o_.rounds, way, [this] { return over(); });
    if (!got) return tl::unexpected(got.error());
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
