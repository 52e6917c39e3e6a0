#include "tune/prove.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace topotune::tune {

namespace {

// The samples of one cell in one way: standard communicators, then per choice the tuned ones.
struct Samples {
  std::vector<std::vector<double>> standard;
  std::vector<std::vector<std::vector<double>>> tuned;  // [choice][communicator]
};

class Prover {
 public:
  Prover(Measurer& measurer, const ProveOptions& options, const Hooks& hooks)
      : m_(measurer), o_(options), hooks_(hooks), start_(hooks.now()) {}

  std::vector<Proof> run(std::vector<Answer> answers) {
    std::ranges::sort(answers, {},
                      [](const Answer& a) { return std::tuple(a.cell.collective, a.cell.bytes); });
    std::vector<Proof> out;
    std::size_t open = answers.size() + answers.size() / 4;  // some borders will be measured, too
    for (const auto& answer : answers) {
      share_end_ = spent() + 3 * (o_.budget_seconds - spent()) / static_cast<double>(open--);
      out.push_back(cell(answer));
    }
    share_end_ = o_.budget_seconds;
    return o_.borders ? with_borders(std::move(out), answers) : out;
  }

 private:
  double spent() const { return hooks_.now() - start_; }
  bool over() const { return hooks_.stop() || spent() > o_.budget_seconds; }
  bool share_over() const { return over() || spent() > share_end_; }

  Proof cell(const Answer& answer) {
    Proof p;
    p.cell = answer.cell, p.before = answer.choice;
    p.after.choice = answer.choice;
    if (over()) return p;
    hooks_.progress("proving " + std::string(name_of(p.cell.collective)) + " " +
                    std::to_string(p.cell.bytes));
    decide(p, {answer.choice});
    if (p.proved && p.after.slower) decide(p, fallbacks(answer));
    return p;
  }

  // NCCL's choice for the default communicator, with as many channels as that one has, or fewer.
  std::vector<Choice> fallbacks(const Answer& answer) const {
    std::vector<Choice> out{answer.choice};
    if (!o_.same && answer.default_choice.algorithm != kNcclChooses)
      for (const int channels : {24, 16, 8})
        out.push_back({answer.default_choice.algorithm, answer.default_choice.protocol, channels});
    return out;
  }

  // The best of `choices` and of nothing, from samples of one time.
  void decide(Proof& p, std::vector<Choice> choices) {
    std::erase(choices, Choice{});
    choices.insert(choices.begin(), Choice{});
    auto measured = measure(p, choices);
    if (measured.empty()) return;
    const Measured* best = &measured[0];
    for (const auto& m : measured)
      if (&m != best && better(m, *best)) best = &m;
    p.after = *best;
    p.proved = true;
  }

  // Whether an entry is worth it, `than` being nothing or the best entry so far.
  bool better(const Measured& entry, const Measured& than) const {
    if (entry.slower != than.slower) return than.slower;
    if (entry.slower) return entry.worst() > than.worst();
    if (than.choice != Choice{}) return entry.worst() > than.worst() + 0.003;
    if (o_.same)
      return entry.ratio.low >= 1 + o_.margin && (!entry.other_way || entry.other_way->low >= o_.least);
    const bool gains = entry.against_nothing >= 1.005 && entry.against_nothing_low >= 1.001 &&
                       entry.against_nothing_other >= o_.least;
    return gains || (than.worst() < 0.995 && entry.worst() > than.worst() + 0.005);
  }

  std::vector<Measured> measure(Proof& p, const std::vector<Choice>& choices) {
    const auto usual = samples(p, choices, Way::usual);
    if (!usual) return {};
    std::optional<Samples> other;
    if (m_.has_other_way(p.cell)) {
      other = samples(p, choices, Way::other);
      if (!other) return {};
    }
    std::vector<Measured> out;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      Measured m;
      m.choice = choices[i];
      if (!rate(m, *usual, i, Way::usual) || (other && !rate(m, *other, i, Way::other))) {
        p.failed = "too few samples";
        return {};
      }
      out.push_back(std::move(m));
    }
    return out;
  }

  std::optional<Samples> samples(Proof& p, const std::vector<Choice>& choices, Way way) {
    std::vector<Candidate> all{{o_.standard.front(), {}}};
    for (const auto& choice : choices)
      for (const auto level : o_.tuned) all.push_back({level, choice});
    for (std::size_t i = 1; i < o_.standard.size(); ++i) all.push_back({o_.standard[i], {}});
    auto got = rounds(m_, p.cell, all, o_.rounds, way, [this] { return share_over(); });
    if (!got) {
      p.failed = got.error().text;
      return std::nullopt;
    }
    Samples out;
    auto next = got->begin();
    out.standard.push_back(std::move(*next++));
    for (std::size_t i = 0; i < choices.size(); ++i) {
      out.tuned.emplace_back();
      for (std::size_t k = 0; k < o_.tuned.size(); ++k) out.tuned.back().push_back(std::move(*next++));
    }
    for (; next != got->end(); ++next) out.standard.push_back(std::move(*next));
    return out;
  }

  bool rate(Measured& m, const Samples& s, std::size_t choice, Way way) const {
    const auto& mine = s.tuned[choice];
    auto standard = mean_of(s.standard, 0, s.standard.size()), tuned = mean_of(mine, 0, mine.size());
    const auto nothing = mean_of(s.tuned[0], 0, s.tuned[0].size());
    const auto ratio = paired_ratio(standard, tuned), against = paired_ratio(nothing, tuned);
    if (!ratio || !against) return false;
    bool slower = ratio->high < o_.least;
    for (const auto& a : s.standard)
      for (const auto& b : mine)
        if (const auto one = paired_ratio(a, b)) slower = slower && one->high < o_.least;
    // NCCL's own choice in default communicators is the default.
    m.slower = m.slower || (slower && !(o_.same && m.choice == Choice{}));
    if (way == Way::other) {
      m.other_way = ratio;
      m.against_nothing_other = against->median;
      return true;
    }
    m.ratio = *ratio;
    m.against_nothing = against->median, m.against_nothing_low = against->low;
    m.standard = std::move(standard), m.tuned = std::move(tuned);
    return true;
  }

  // A size in the middle of two whose choices differ takes the one that is better there.
  std::vector<Proof> with_borders(std::vector<Proof> proofs, const std::vector<Answer>& answers) {
    std::vector<Proof> out;
    for (std::size_t i = 0; i < proofs.size(); ++i) {
      out.push_back(proofs[i]);
      if (i + 1 == proofs.size() || over()) continue;
      const auto &a = proofs[i], &b = proofs[i + 1];
      if (a.cell.collective != b.cell.collective || a.after.choice == b.after.choice || !a.proved ||
          !b.proved)
        continue;
      const auto middle = std::sqrt(static_cast<double>(a.cell.bytes) * static_cast<double>(b.cell.bytes));
      Proof p;
      p.cell = {a.cell.collective, static_cast<std::uint64_t>(middle) / 64 * 64};
      if (p.cell.bytes <= a.cell.bytes || p.cell.bytes >= b.cell.bytes) continue;
      p.border = true;
      hooks_.progress("border " + std::string(name_of(p.cell.collective)) + " " +
                      std::to_string(p.cell.bytes));
      decide(p, {a.after.choice, b.after.choice});
      if (p.proved && p.after.slower) decide(p, fallbacks(answers[i]));
      if (p.proved) out.push_back(std::move(p));
    }
    return out;
  }

  Measurer& m_;
  const ProveOptions& o_;
  const Hooks& hooks_;
  double start_, share_end_ = 0;
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

std::vector<Proof> prove(Measurer& measurer, const std::vector<Answer>& answers, const ProveOptions& options,
                         const Hooks& hooks) {
  return Prover(measurer, options, hooks).run(answers);
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

std::vector<Region> regions_of(std::vector<Answer> answers, int ranks, int nodes, double reach) {
  std::ranges::sort(answers, {}, [](const Answer& a) { return std::tuple(a.cell.collective, a.cell.bytes); });
  std::vector<Region> out;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& a = answers[i];
    if (a.choice == Choice{} || static_cast<int>(a.cell.collective) >= kTunedCollectives) continue;
    const bool first = i == 0 || answers[i - 1].cell.collective != a.cell.collective;
    const bool last = i + 1 == answers.size() || answers[i + 1].cell.collective != a.cell.collective;
    Region r;
    r.collective = a.cell.collective;
    const auto bytes = static_cast<double>(a.cell.bytes);
    r.from = first ? static_cast<std::uint64_t>(bytes / reach)
                   : lower_end(answers[i - 1].cell.bytes, a.cell.bytes);
    r.to =
        last ? static_cast<std::uint64_t>(bytes * reach) : upper_end(a.cell.bytes, answers[i + 1].cell.bytes);
    r.ranks = static_cast<std::uint32_t>(ranks), r.nodes = static_cast<std::uint32_t>(nodes);
    r.choice = a.choice;
    r.ratio = a.ratio.median, r.low = a.ratio.low, r.high = a.ratio.high;
    join_into(out, r);
  }
  return out;
}

}  // namespace topotune::tune
