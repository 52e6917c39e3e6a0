#include "tune/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "measure/statistics.h"
#include "tune/decide.h"
#include "tune/rounds.h"

namespace topotune::tune {

namespace {

double median(const std::vector<double>& values) { return measure::median_of(values).value_or(HUGE_VAL); }

struct Runner {
  Candidate candidate;
  std::vector<double> samples;
};

// Key of what was seen of a candidate at other sizes.
using Key = std::tuple<Collective, std::size_t, int, int, int>;
Key key_of(Collective collective, const Candidate& c) {
  return {collective, c.level, c.choice.algorithm, c.choice.protocol, c.choice.channels};
}

class Search {
 public:
  Search(Measurer& measurer, const SearchOptions& options, const Hooks& hooks)
      : m_(measurer), o_(options), hooks_(hooks), start_(hooks.now()) {}

  SearchResult run() {
    // Large sizes have the most to gain or lose, and take the least time.
    std::stable_partition(o_.cells.begin(), o_.cells.end(), [](const Cell& c) { return c.bytes >= kLarge; });
    for (const auto& next : o_.cells) {
      const double left = o_.budget_seconds - spent();
      if (hooks_.stop() || left <= 0) {
        out_.left.push_back(next);
        continue;
      }
      // Of the last ones half is kept for what decides.
      const auto cells = static_cast<double>(o_.cells.size() - out_.cells.size());
      share_end_ = spent() + std::min(3 / cells, 0.5) * left;
      hooks_.progress(std::string(name_of(next.collective)) + " " + std::to_string(next.bytes));
      if (!out_.cells.empty() && next.bytes < out_.cells.back().cell.bytes) seen_.clear();
      auto done = cell(next);
      if (cut_ && done.failed.empty() && done.levels.empty())
        out_.left.push_back(next);
      else
        out_.cells.push_back(std::move(done));
    }
    out_.interrupted = hooks_.stop();
    out_.out_of_time = !out_.interrupted && !out_.left.empty();
    for (auto& cell : out_.cells) {
      if (hooks_.stop() || spent() > 0.9 * o_.budget_seconds) break;
      if (doubtful(cell)) again(cell);
    }
    std::ranges::stable_sort(out_.cells, {}, [](const CellResult& r) { return r.cell.bytes; });
    std::ranges::stable_sort(out_.left, {}, &Cell::bytes);
    out_.seconds = spent();
    return std::move(out_);
  }

 private:
  // A level at which the size would be slower, or where that is not clear.
  bool doubtful(const CellResult& r) const {
    return r.failed.empty() && m_.steerable(r.cell.collective) &&
           std::ranges::any_of(r.levels, [&](const auto& c) {
             return c.candidate.level > 0 && judge(c, o_) > Judged::as_good;
           });
  }

  // The time that is left goes to those: everything once more, with more samples. What was forgotten of other
  // sizes rules nothing out this time; the better answer of a level stays.
  void again(CellResult& r) {
    hooks_.progress(std::string(name_of(r.cell.collective)) + " " + std::to_string(r.cell.bytes) + " again");
    const auto was = o_;
    o_.screen *= 2, o_.decide *= 2;
    seen_.clear();
    share_end_ = o_.budget_seconds;
    auto next = cell(r.cell);
    o_ = was;
    if (!next.failed.empty()) return;
    r.measured += next.measured;
    for (auto& c : next.levels) {
      const auto at = std::ranges::find_if(
          r.levels, [&](const auto& x) { return x.candidate.level == c.candidate.level; });
      if (at == r.levels.end())
        r.levels.push_back(std::move(c));
      else if (judge(c, o_) < judge(*at, o_) ||
               (judge(c, o_) == judge(*at, o_) && c.ratio.median > at->ratio.median))
        *at = std::move(c);
    }
  }

  double spent() const { return hooks_.now() - start_; }
  bool over() const { return hooks_.stop() || spent() > std::min(share_end_, o_.budget_seconds * 1.02); }

  // Nothing waits for this, not even the samples that a decision needs.
  bool cut() { return cut_ = cut_ || hooks_.stop() || spent() > o_.budget_seconds * 1.1; }

  // Nothing: the cell is to be given up.
  std::optional<double> sample(CellResult& r, const Candidate& c, Way way = Way::usual) {
    if (cut()) return std::nullopt;
    const auto got = way == Way::usual ? m_.sample(r.cell, c) : m_.sample_other_way(r.cell, c);
    if (!got) return r.failed = got.error().text, std::nullopt;
    return *got;
  }

  // One sample of each, in turns; false when the cell is to be given up.
  bool rounds(CellResult& r, std::vector<Runner>& runners, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      for (auto& runner : runners) {
        const auto got = sample(r, runner.candidate);
        if (!got) return false;
        runner.samples.push_back(*got);
      }
      if (over()) break;
    }
    return true;
  }

  bool warm(CellResult& r, const Candidate& c) { return sample(r, c).has_value(); }

  // Combinations that are possible, and that the model does not rule out.
  std::vector<Runner> first_field(CellResult& r) {
    std::vector<Runner> out;
    double best = HUGE_VAL;
    std::vector<std::pair<Candidate, std::optional<double>>> all;
    for (std::size_t level = 0; level < m_.levels().size(); ++level) {
      all.push_back({{level, {}}, std::nullopt});
      if (!m_.steerable(r.cell.collective)) continue;
      if (cut()) return out;
      const auto costs = m_.costs(r.cell, level);
      if (!costs) return r.failed = costs.error().text, out;
      if (level == 0) r.default_choice = costs->chosen;
      std::size_t at = 0;
      for (int a = 0; a < costs->algorithms; ++a) {
        for (int p = 0; p < costs->protocols; ++p) {
          if (costs->microseconds[at++] < 0) continue;
          const Candidate c{level, {a, p, 0}};
          const auto& seen = seen_[key_of(r.cell.collective, c)];
          const auto bytes = static_cast<double>(r.cell.bytes);
          all.push_back({c, at_least(seen, bytes)});
          if (const auto line = extrapolated(seen, bytes)) best = std::min(best, *line);
        }
      }
    }
    for (const auto& [candidate, expected] : all) {
      if (expected && *expected > kHopeless * best)
        ++r.left_out;
      else
        out.push_back({candidate, {}});
    }
    return out;
  }

  void note(const CellResult& r, const std::vector<Runner>& runners) {
    for (const auto& runner : runners)
      seen_[key_of(r.cell.collective, runner.candidate)].push_back(
          {static_cast<double>(r.cell.bytes), median(runner.samples)});
  }

  bool measure_field(CellResult& r, std::vector<Runner>& field) {
    for (std::size_t i = 0; i < field.size(); ++i) {
      if (!warm(r, field[i].candidate)) return false;
      if (i >= 1 && over()) field.resize(i + 1);  // no time for the others
    }
    r.measured += field.size();
    if (!rounds(r, field, o_.screen)) return false;
    note(r, field);
    while (field.size() > 2 && !over()) {
      std::vector<double> medians;
      for (const auto& runner : field) medians.push_back(median(runner.samples));
      const auto keep = better_half(medians, 0.01);
      if (keep.size() == field.size()) break;
      std::vector<Runner> next;
      for (const auto i : keep) next.push_back(std::move(field[i]));
      field = std::move(next);
      if (!rounds(r, field, o_.screen)) return false;
    }
    std::ranges::sort(field, {}, [](const Runner& x) { return median(x.samples); });
    return true;
  }

  // The best combinations of a level with other channel counts; the fewest channels that are as good win.
  std::optional<Candidate> best_of_level(CellResult& r, const std::vector<Runner>& field, std::size_t level) {
    std::vector<Runner> mine;
    for (const auto& runner : field)
      if (runner.candidate.level == level) mine.push_back(runner);
    std::ranges::sort(mine, {}, [](const Runner& x) { return median(x.samples); });
    if (mine.empty()) return std::nullopt;
    // NCCL's own choice says the same as the combination that it stands for.
    if (mine.size() > 1 && mine[0].candidate.choice.algorithm == kNcclChooses &&
        mine[1].candidate.choice.algorithm == r.default_choice.algorithm)
      std::swap(mine[0], mine[1]);
    if (!m_.steerable(r.cell.collective) || over()) return mine[0].candidate;
    std::vector<Runner> variants;
    for (std::size_t i = 0; i < std::min<std::size_t>(2, mine.size()); ++i) {
      const auto choice = mine[i].candidate.choice;
      if (choice.algorithm == kNcclChooses || median(mine[i].samples) > 1.1 * median(mine[0].samples))
        continue;
      // What is best so far comes first, then the most channels: those remain when the time is over.
      variants.push_back({mine[i].candidate, {}});
      if (!keeps_to_channels(choice.algorithm, o_.nodes)) continue;
      for (const int channels : {64, 48, 32, 24, 16, 8, 4, 2, 1}) {
        if (channels > m_.levels()[level].ctas.value_or(24)) continue;
        Candidate c{level, {choice.algorithm, choice.protocol, channels}};
        const auto expected =
            at_least(seen_[key_of(r.cell.collective, c)], static_cast<double>(r.cell.bytes));
        if (expected && *expected > kHopeless * median(mine[0].samples)) continue;
        variants.push_back({c, {}});
      }
    }
    if (variants.empty()) return mine[0].candidate;
    if (!measure_field(r, variants)) return std::nullopt;
    const double best = median(variants[0].samples);
    const Runner* chosen = &variants[0];
    for (const auto& v : variants) {
      if (median(v.samples) > 1.004 * best) continue;
      const int a = v.candidate.choice.channels, b = chosen->candidate.choice.channels;
      if (a > 0 && (b == 0 || a < b)) chosen = &v;
    }
    return chosen->candidate;
  }

  bool compare(CellResult& r, const Candidate& c) {
    std::vector<Runner> pair{{{0, {}}, {}}, {c, {}}};
    if (!warm(r, pair[0].candidate) || !warm(r, c)) return false;
    std::optional<Ratio> ratio;
    for (int part = 0; part < 3; ++part) {
      if (part > 0 && (hooks_.stop() || spent() > o_.budget_seconds)) break;
      for (std::size_t i = 0; i < o_.decide && (i < kLeastPairs || !over()); ++i) {
        // A B, B A, A B: neither one always comes first.
        std::swap(pair[0], pair[1]);
        if (!rounds(r, pair, 1)) break;
      }
      if (!r.failed.empty()) return false;
      if (pair[0].candidate == c) std::swap(pair[0], pair[1]);
      if (cut_ && std::min(pair[0].samples.size(), pair[1].samples.size()) < kLeastPairs) return false;
      ratio = paired_ratio(pair[0].samples, pair[1].samples);
      if (!ratio) return r.failed = "too few samples", false;
      if (judge(*ratio, o_.margin, o_.tolerance) != Judged::unclear) break;
    }
    std::optional<Ratio> other;
    if (m_.has_other_way(r.cell) && !(other = other_way(r, c))) return false;
    r.levels.push_back({c, *ratio, std::move(pair[0].samples), std::move(pair[1].samples), other});
    return true;
  }

  std::optional<Ratio> other_way(CellResult& r, const Candidate& c) {
    std::vector<double> standard, tuned;
    for (std::size_t i = 0; i <= o_.decide && (i <= kLeastPairs || !over()); ++i) {
      const auto a = sample(r, {0, {}}, Way::other);
      const auto b = a ? sample(r, c, Way::other) : std::nullopt;
      if (!b) break;
      if (i > 0) standard.push_back(*a), tuned.push_back(*b);  // the first pair warms up
    }
    if (!r.failed.empty() || (cut_ && tuned.size() < kLeastPairs)) return std::nullopt;
    return paired_ratio(standard, tuned);
  }

  CellResult cell(const Cell& cell) {
    CellResult r;
    r.cell = cell;
    auto field = first_field(r);
    if (!r.failed.empty() || !measure_all(r, field)) return r;
    return r;
  }

  bool measure_all(CellResult& r, std::vector<Runner>& field) {
    // Halved within each level, so that each one has its best.
    for (std::size_t level = 0; level < m_.levels().size(); ++level) {
      std::vector<Runner> mine;
      for (const auto& runner : field)
        if (runner.candidate.level == level) mine.push_back(runner);
      if (mine.empty()) continue;
      if (!measure_field(r, mine)) return false;
      const auto best = best_of_level(r, mine, level);
      if (!r.failed.empty()) return false;
      if (!best || is_default(r, *best)) continue;
      if (!compare(r, *best)) return false;
      if (!more_of_level(r, level, *best)) return false;
    }
    return true;
  }

  // NCCL's own choice in the default communicator: there is nothing to compare.
  static bool is_default(const CellResult& r, const Candidate& c) {
    if (c.level != 0 || c.choice.channels != 0) return false;
    return c.choice.algorithm == kNcclChooses || (c.choice.algorithm == r.default_choice.algorithm &&
                                                  c.choice.protocol == r.default_choice.protocol);
  }

  // Where the best of a level may be slower than the default, the same with fewer channels is tried, and
  // NCCL's choice for the default communicator with about as many channels as that one has. The first that is
  // good stays, else the best.
  bool more_of_level(CellResult& r, std::size_t level, const Candidate& best) {
    if (!m_.steerable(r.cell.collective)) return true;
    std::vector<Candidate> others;
    const int most = m_.levels()[level].ctas.value_or(25);
    for (const auto& choice : {best.choice, r.default_choice})
      for (const int channels : {24, 16, 12, 8})
        if (choice.algorithm != kNcclChooses && keeps_to_channels(choice.algorithm, o_.nodes) &&
            channels < most &&
            (best.choice.channels == 0 || channels < best.choice.channels || choice != best.choice))
          others.push_back({level, {choice.algorithm, choice.protocol, channels}});
    if (level > 0 && r.default_choice.algorithm != kNcclChooses)
      others.push_back({level, {r.default_choice.algorithm, r.default_choice.protocol, 0}});
    for (const auto& c : others) {
      const auto judged = judge(r.levels.back(), o_);
      if (judged == Judged::faster || judged == Judged::as_good || over()) return true;
      if (c == best) continue;
      auto before = std::move(r.levels.back());
      r.levels.pop_back();
      if (!compare(r, c)) return r.levels.push_back(std::move(before)), false;
      if (judge(r.levels.back(), o_) > Judged::as_good && before.ratio.median > r.levels.back().ratio.median)
        r.levels.back() = std::move(before);
    }
    return true;
  }

  static constexpr double kHopeless = 1.4;
  static constexpr std::size_t kLeastPairs = 7;  // that anything is decided by
  static constexpr std::uint64_t kLarge = 128 << 10;
  Measurer& m_;
  SearchOptions o_;
  const Hooks& hooks_;
  double start_, share_end_ = 0;
  bool cut_ = false;
  std::map<Key, std::vector<Seen>> seen_;
  SearchResult out_;
};

const Compared* of_level(const CellResult& cell, std::size_t level) {
  const auto at =
      std::ranges::find_if(cell.levels, [&](const auto& c) { return c.candidate.level == level; });
  return at == cell.levels.end() ? nullptr : &*at;
}

// What a cell gains at a level. At level 0 nothing is written where nothing is surely faster, so the gain
// is 1.
double gain_at(const CellResult& cell, std::size_t level, const SearchOptions& o) {
  const auto* c = of_level(cell, level);
  if (c == nullptr) return 1;
  if (judge(*c, o) == Judged::faster) return c->ratio.median;
  return level == 0 ? 1 : std::min(1.0, c->ratio.median);
}

}  // namespace

Judged judge(const Compared& compared, const SearchOptions& o) {
  const auto judged = judge(compared.ratio, o.margin, o.tolerance);
  const auto& other = compared.other_way;
  if (other && other->median < 1 - o.tolerance && other->high < 1) return Judged::slower;
  return judged;
}

std::vector<std::size_t> better_half(const std::vector<double>& medians, double close) {
  std::vector<std::size_t> order(medians.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return medians[i]; });
  if (order.size() < 2) return order;
  std::size_t keep = (order.size() + 1) / 2;
  while (keep < order.size() && medians[order[keep]] <= medians[order[0]] * (1 + close)) ++keep;
  order.resize(keep);
  return order;
}

std::optional<double> at_least(const std::vector<Seen>& seen, double bytes) {
  if (seen.size() < 2) return std::nullopt;
  const auto &a = seen[seen.size() - 2], &b = seen.back();
  const bool bandwidth = b.bytes > a.bytes && b.seconds / a.seconds > 0.7 * b.bytes / a.bytes;
  return bandwidth ? extrapolated(seen, bytes) : std::optional(b.seconds);
}

std::optional<double> extrapolated(const std::vector<Seen>& seen, double bytes) {
  if (seen.size() < 2) return std::nullopt;
  const auto &a = seen[seen.size() - 2], &b = seen.back();
  if (!(b.bytes > a.bytes)) return std::nullopt;
  const double slope = std::max(0.0, (b.seconds - a.seconds) / (b.bytes - a.bytes));
  return b.seconds + slope * (bytes - b.bytes);
}

std::vector<Cell> cells_of(const std::vector<Collective>& collectives,
                           const std::vector<std::uint64_t>& sizes) {
  std::vector<Cell> out;
  for (const auto bytes : sizes)
    for (const auto collective : collectives) out.push_back({collective, bytes});
  return out;
}

SearchResult search(Measurer& measurer, const SearchOptions& options, const Hooks& hooks) {
  return Search(measurer, options, hooks).run();
}

std::vector<LevelScore> score_levels(const SearchResult& result, const std::vector<Level>& levels,
                                     const SearchOptions& options) {
  std::vector<LevelScore> out;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    LevelScore score;
    score.level = level;
    double sum = 0;
    for (const auto& cell : result.cells) {
      if (!cell.failed.empty() || (level > 0 && of_level(cell, level) == nullptr)) continue;
      const double gain = gain_at(cell, level, options);
      sum += std::log(gain);
      ++score.cells;
      score.faster += gain >= 1 + options.margin;
      const auto* c = of_level(cell, level);
      score.slower += level > 0 && c != nullptr && judge(*c, options) == Judged::slower;
    }
    if (score.cells > 0) score.gain = std::exp(sum / static_cast<double>(score.cells));
    out.push_back(score);
  }
  return out;
}

std::size_t best_level(const std::vector<LevelScore>& scores) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < scores.size(); ++i) {
    if (scores[i].cells == 0 || scores[i].slower * 10 > scores[i].cells) continue;
    if (scores[i].gain > scores[best].gain + 0.005) best = i;
  }
  return best;
}

}  // namespace topotune::tune
