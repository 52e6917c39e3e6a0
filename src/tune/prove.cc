#include "tune/prove.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "tune/decide.h"

namespace topotune::tune {

namespace {

constexpr int kLl = 0, kLl128 = 1;  // NCCL_PROTO_LL, NCCL_PROTO_LL128

class Prover {
 public:
  Prover(Generations& generations, const ProveOptions& options, const Hooks& hooks)
      : generations_(generations), o_(options), hooks_(hooks), start_(hooks.now()) {}

  Result<Proved> run(std::vector<Answer> answers) {
    std::ranges::sort(answers, {},
                      [](const Answer& a) { return std::tuple(a.cell.collective, a.cell.bytes); });
    for (const auto& answer : answers) ask(answer.cell, answer.choice, {answer.choice});
    if (auto ok = measure(0.7 * o_.budget_seconds); !ok) return tl::unexpected(ok.error());
    const auto first = items_.size();
    for (std::size_t i = 0; i < first; ++i) {
      if (unsatisfied(items_[i].proof)) ask_again(items_[i], answers[i]);
      if (o_.borders && i + 1 < first) ask_border(items_[i].proof, items_[i + 1].proof);
    }
    // What fails now leaves the first answers as they are.
    if (auto ok = measure(o_.budget_seconds - spent()); !ok) hooks_.progress(ok.error().text);
    return result();
  }

 private:
  struct Item {
    Proof proof;
    Trial trial;                // what it was decided by
    std::optional<Trial> next;  // to be measured
  };

  double spent() const { return hooks_.now() - start_; }

  void ask(const Cell& cell, const Choice& before, std::vector<Choice> choices) {
    std::erase(choices, Choice{});
    choices.insert(choices.begin(), Choice{});
    Item item;
    item.next.emplace().cell = cell;
    item.next->choices = std::move(choices);
    item.proof.cell = cell, item.proof.before = item.proof.after.choice = before;
    items_.push_back(std::move(item));
  }

  bool unsatisfied(const Proof& p) const {
    return p.proved && !o_.same && p.after.verdict != Verdict::not_slower &&
           (p.after.worst() < o_.least || risky(p.after));
  }

  // Faster the usual way, and perhaps slower the other: the kernel that gains by more thread blocks is the
  // one that takes longer to start.
  bool risky(const Measured& m) const {
    return m.ratio.median >= 1.01 && m.other_way && m.other_way->low < o_.least;
  }

  // Once more in other communicators, so that "slower" is confirmed before it counts, with NCCL's choice for
  // the default communicator with as many channels as that one has, or fewer. Where that is LL, LL128 with as
  // many can have the gain without the price.
  void ask_again(Item& item, const Answer& answer) {
    std::vector<Choice> choices{Choice{}};
    if (answer.choice != Choice{}) choices.push_back(answer.choice);
    const auto& d = answer.default_choice;
    std::vector<Choice> others;
    for (const int channels : {24, 16, 8}) others.push_back({d.algorithm, d.protocol, channels});
    if (answer.cell.bytes > o_.small_bytes && d.protocol == kLl) others.back() = {d.algorithm, kLl128, 24};
    for (const auto& c : others)
      if (d.algorithm != kNcclChooses && keeps_to_channels(d.algorithm, o_.nodes) && c != answer.choice)
        choices.push_back(c);
    item.next.emplace().cell = answer.cell;
    item.next->choices = std::move(choices);
  }

  // A size in the middle of two whose choices differ takes the one that is better there.
  void ask_border(const Proof& a, const Proof& b) {
    if (a.cell.collective != b.cell.collective || a.after.choice == b.after.choice || !a.proved || !b.proved)
      return;
    const auto middle = std::sqrt(static_cast<double>(a.cell.bytes) * static_cast<double>(b.cell.bytes));
    const Cell cell{a.cell.collective, static_cast<std::uint64_t>(middle) / 64 * 64};
    if (cell.bytes <= a.cell.bytes || cell.bytes >= b.cell.bytes) return;
    const auto first = a.after.choice, second = b.after.choice;
    ask(cell, {}, {first, second});
    items_.back().proof.border = true;
  }

  Result<void> measure(double seconds) {
    std::vector<Trial> trials;
    for (const auto& item : items_)
      if (item.next) trials.push_back(*item.next);
    if (trials.empty() || seconds <= 0) return {};
    TrialOptions o;
    if (o_.same) o.kinds = {Kind::tuned};
    o.first = o_.first, o.step = o_.step, o.most = o_.most, o.rounds = o_.rounds;
    o.budget_seconds = seconds;
    o.settled = [this](const Trial& t) { return settled(t); };
    auto ok = run_trials(generations_, trials, o, hooks_);
    auto next = trials.begin();
    for (auto& item : items_)
      if (std::exchange(item.next, std::nullopt)) decide(item, *next++);
    return ok;
  }

  // Nothing that more pairs would change: what is taken is surely not slower, what is not is surely no gain;
  // or it is surely slower.
  bool settled(const Trial& t) const {
    const auto all = rated(t);
    if (all.empty()) return false;
    const auto& best = all[best_of(all, t.cell)];
    if (best.verdict == Verdict::slower) return true;  // and looked at again
    if (best.verdict == Verdict::undecided) return false;
    return std::ranges::all_of(all, [&](const Measured& m) {
      return m.choice == best.choice || m.ratio.high < 1 + wanted(t.cell) || m.against_nothing.high < 1.005 ||
             best.choice != Choice{};
    });
  }

  void decide(Item& item, Trial& trial) {
    auto& p = item.proof;
    if (!trial.failed.empty()) {
      if (!p.proved) p.failed = trial.failed;
      return;
    }
    auto all = rated(trial);
    if (all.empty()) return;  // no time
    p.after = std::move(all[best_of(all, p.cell)]);
    p.proved = true;
    item.trial = std::move(trial);
  }

  std::vector<Measured> rated(const Trial& t) const {
    std::vector<Measured> out;
    for (std::size_t i = 0; i < t.choices.size(); ++i) {
      Measured m;
      m.choice = t.choices[i];
      const auto ratio = ratio_of(t.usual, i), against = paired_ratio(t.usual.tuned[0], t.usual.tuned[i]);
      if (!ratio || !against) return {};
      m.ratio = *ratio, m.against_nothing = *against;
      m.verdict = verdict_of(m.ratio, o_.least);
      m.surely_slower = surely_slower(t.usual, i);
      if (!t.other.tuned[0].empty()) {
        m.other_way = ratio_of(t.other, i);
        m.against_nothing_other = paired_ratio(t.other.tuned[0], t.other.tuned[i]);
        if (!m.other_way || !m.against_nothing_other) return {};
        m.verdict = both(m.verdict, verdict_of(*m.other_way, o_.least));
        m.surely_slower |= surely_slower(t.other, i);
      }
      m.standard = o_.same ? t.usual.tuned[0] : t.usual.standard;
      m.tuned = t.usual.tuned[i];
      out.push_back(std::move(m));
    }
    return out;
  }

  // In default communicators NCCL's own choice is the default.
  std::optional<Ratio> ratio_of(const InstanceValues& v, std::size_t choice) const {
    return paired_ratio(o_.same ? v.tuned[0] : v.standard, v.tuned[choice]);
  }

  bool surely_slower(const InstanceValues& v, std::size_t choice) const {
    return !o_.same && nearly_all_slower(v.standard, v.tuned[choice], o_.least);
  }

  double wanted(const Cell& cell) const { return cell.bytes <= o_.small_bytes ? o_.small_gain : o_.margin; }

  // Index; `all` begins with no entry.
  std::size_t best_of(const std::vector<Measured>& all, const Cell& cell) const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < all.size(); ++i)
      if ((gains(all[i], cell) || saves(all[i], all[0])) && (best == 0 || better(all[i], all[best], cell)))
        best = i;
    return best;
  }

  // Of two that gain nothing the one with more channels, which is the default's own (but for small sizes,
  // which do not use them): that fewer are as good at this size does not say so of those beside it.
  bool better(const Measured& a, const Measured& b, const Cell& cell) const {
    const bool gain = gains(a, cell) || gains(b, cell);
    if (!gain && risky(a) != risky(b)) return risky(b);
    if (gain || a.choice.channels == b.choice.channels || cell.bytes <= o_.small_bytes)
      return a.worst() > b.worst() + 0.003;
    const double more = a.choice.channels > b.choice.channels ? -0.03 : 0.03;
    return a.worst() > b.worst() + more;
  }

  bool not_worse_than_nothing(const Measured& m) const {
    return m.against_nothing.median >= o_.least &&
           (!m.against_nothing_other || m.against_nothing_other->median >= o_.least);
  }

  // Surely faster than the default and than no entry, and surely not slower the other way.
  bool gains(const Measured& m, const Cell& cell) const {
    return m.ratio.low >= 1 + o_.margin && m.ratio.median >= 1 + wanted(cell) &&
           m.against_nothing.median >= 1.005 && m.against_nothing.low >= 1.001 &&
           (!m.other_way || m.other_way->low >= o_.least) && not_worse_than_nothing(m);
  }

  // No entry costs something, and this surely costs less; or by the medians it costs much, and this little.
  // Where no entry is risky, this costs nothing.
  bool saves(const Measured& m, const Measured& nothing) const {
    if (o_.same || nothing.verdict == Verdict::not_slower) return false;
    if (risky(nothing) && !risky(m) && m.verdict != Verdict::slower &&
        (m.worst() >= o_.least || m.worst() > nothing.worst() + 0.01))
      return true;
    if (nothing.worst() >= 0.995) return false;
    const bool surely =
        m.against_nothing.low >= 1.001 || (m.against_nothing_other && m.against_nothing_other->low >= 1.001);
    if (surely && not_worse_than_nothing(m) && m.worst() > nothing.worst() + 0.005) return true;
    return nothing.worst() < 0.975 && m.worst() > nothing.worst() + 0.015;
  }

  Proved result() {
    Proved out;
    std::vector<const InstanceValues*> usual, other;
    for (const auto& item : items_) {
      if (!o_.same && item.proof.proved && item.proof.after.choice == Choice{} &&
          item.proof.cell.bytes <= o_.small_bytes) {
        usual.push_back(&item.trial.usual);
        if (!item.trial.other.standard.empty()) other.push_back(&item.trial.other);
      }
    }
    out.left_out = pooled_ratio(usual), out.left_out_other = pooled_ratio(other);
    out.left_out_cells = usual.size();
    for (auto& item : items_)
      if (item.proof.proved || !item.proof.border) out.proofs.push_back(std::move(item.proof));
    std::ranges::sort(out.proofs, {},
                      [](const Proof& p) { return std::tuple(p.cell.collective, p.cell.bytes); });
    drop_holes(out.proofs);
    return out;
  }

  // A size between two whose choices came to be the same, and that gained nothing by having none, has theirs.
  static void drop_holes(std::vector<Proof>& proofs) {
    for (std::size_t i = 1; i + 1 < proofs.size(); ++i) {
      const auto &a = proofs[i - 1], &hole = proofs[i], &b = proofs[i + 1];
      if (!hole.border || hole.after.choice != Choice{} || hole.after.verdict == Verdict::not_slower ||
          a.cell.collective != b.cell.collective || a.after.choice == Choice{} ||
          a.after.choice != b.after.choice)
        continue;
      proofs.erase(proofs.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  Generations& generations_;
  const ProveOptions& o_;
  const Hooks& hooks_;
  std::vector<Item> items_;
  double start_;
};

std::uint64_t half_way(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(std::sqrt(static_cast<double>(a) * static_cast<double>(b)));
}

constexpr std::uint64_t kFarApart = 8;
// Up to where a size speaks, towards its neighbour.
std::uint64_t upper_end(std::uint64_t bytes, std::uint64_t next) {
  return next / kFarApart > bytes ? 2 * bytes : half_way(bytes, next);
}
std::uint64_t lower_end(std::uint64_t before, std::uint64_t bytes) {
  return bytes / kFarApart > before ? (bytes + 1) / 2 : half_way(before, bytes) + 1;
}

void join_into(std::vector<Region>& out, const Region& r) {
  if (!out.empty() && out.back().collective == r.collective && out.back().choice == r.choice &&
      out.back().to + 1 == r.from) {
    auto& last = out.back();
    last.to = r.to;
    last.ratio = std::min(last.ratio, r.ratio);
    last.low = std::min(last.low, r.low);
    last.high = std::max(last.high, r.high);
  } else {
    out.push_back(r);
  }
}

}  // namespace

Result<Proved> prove(Generations& generations, const std::vector<Answer>& answers,
                     const ProveOptions& options, const Hooks& hooks) {
  return Prover(generations, options, hooks).run(answers);
}

std::vector<const Proof*> still_slower(const Proved& proved) {
  std::vector<const Proof*> out;
  for (const auto& p : proved.proofs)
    if (p.proved && p.after.verdict == Verdict::slower && p.after.surely_slower) out.push_back(&p);
  return out;
}

std::string refusal(const Proved& proved) {
  const auto slow = still_slower(proved);
  if (slow.size() * 50 > proved.proofs.size()) return std::to_string(slow.size()) + " sizes stay slower";
  if (std::ranges::any_of(slow, [](const Proof* p) { return p->after.worst() < 0.95; }))
    return "a size stays more than 5 % slower";
  const auto dear = [](const std::optional<Ratio>& r) { return r && r->high < kLeast; };
  return dear(proved.left_out) || dear(proved.left_out_other)
             ? "the small sizes without an entry are slower together"
             : "";
}

std::vector<Answer> answers_of(const SearchResult& result, std::size_t level, const SearchOptions& options) {
  std::vector<Answer> out;
  for (const auto& cell : result.cells) {
    if (!cell.failed.empty()) continue;
    Answer a;
    a.cell = cell.cell, a.default_choice = cell.default_choice;
    const auto c =
        std::ranges::find_if(cell.levels, [&](const auto& x) { return x.candidate.level == level; });
    if (c != cell.levels.end() && (level > 0 || judge(*c, options) == Judged::faster))
      a.choice = c->candidate.choice, a.ratio = c->ratio;
    out.push_back(a);
  }
  return out;
}

std::vector<Answer> answers_of(const std::vector<Proof>& proofs) {
  std::vector<Answer> out;
  for (const auto& p : proofs) {
    Answer a;
    a.cell = p.cell;
    if (p.proved) a.choice = p.after.choice, a.ratio = p.after.ratio;
    out.push_back(a);
  }
  return out;
}

std::vector<Span> spans_of(const std::vector<Answer>& answers, double reach) {
  std::vector<Span> out;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& cell = answers[i].cell;
    const bool first = i == 0 || answers[i - 1].cell.collective != cell.collective;
    const bool last = i + 1 == answers.size() || answers[i + 1].cell.collective != cell.collective;
    const auto bytes = static_cast<double>(cell.bytes);
    out.push_back(
        {cell.collective,
         first ? static_cast<std::uint64_t>(bytes / reach) : lower_end(answers[i - 1].cell.bytes, cell.bytes),
         last ? static_cast<std::uint64_t>(bytes * reach)
              : upper_end(cell.bytes, answers[i + 1].cell.bytes)});
  }
  return out;
}

std::vector<Region> make_room(Table& table, const std::vector<Proof>& proofs, std::uint32_t ranks,
                              std::uint32_t nodes, double reach) {
  const auto all = spans_of(answers_of(proofs), reach);
  std::vector<Span> spans;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (proofs[i].proved) spans.push_back(all[i]);
  std::vector<Region> kept, gone;
  for (const auto& region : table.regions) {
    std::vector<Region> rest{region};
    for (const auto& span : spans) {
      if (region.ranks != ranks || region.nodes != nodes || region.collective != span.collective) continue;
      std::vector<Region> next;
      for (const auto& r : rest) {
        if (r.to < span.from || r.from > span.to) {
          next.push_back(r);
          continue;
        }
        if (r.from < span.from) next.push_back(r), next.back().to = span.from - 1;
        if (r.to > span.to) next.push_back(r), next.back().from = span.to + 1;
      }
      rest = std::move(next);
    }
    if (rest.size() != 1 || rest[0].from != region.from || rest[0].to != region.to) gone.push_back(region);
    kept.insert(kept.end(), rest.begin(), rest.end());
  }
  table.regions = std::move(kept);
  std::erase_if(table.raw, [&](const Raw& raw) {
    return raw.ranks == ranks && raw.nodes == nodes && std::ranges::any_of(spans, [&](const Span& s) {
             return s.collective == raw.collective && s.from <= raw.bytes && raw.bytes <= s.to;
           });
  });
  return gone;
}

std::vector<Region> regions_of(std::vector<Answer> answers, std::uint32_t ranks, std::uint32_t nodes,
                               double reach) {
  std::ranges::sort(answers, {}, [](const Answer& a) { return std::tuple(a.cell.collective, a.cell.bytes); });
  const auto spans = spans_of(answers, reach);
  std::vector<Region> out;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& a = answers[i];
    if (a.choice == Choice{} || static_cast<int>(a.cell.collective) >= kTunedCollectives) continue;
    Region r;
    r.collective = a.cell.collective;
    r.from = spans[i].from, r.to = spans[i].to;
    r.ranks = ranks, r.nodes = nodes;
    r.choice = a.choice;
    r.ratio = a.ratio.median, r.low = a.ratio.low, r.high = a.ratio.high;
    join_into(out, r);
  }
  return out;
}

}  // namespace topotune::tune
