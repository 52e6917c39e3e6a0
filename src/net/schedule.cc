#include "net/schedule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "measure/statistics.h"

namespace topotune::net {

// The circle method: one stays, the others move on by one place each round.
std::vector<Round> all_pairs(int n) {
  std::vector<Round> out;
  const int even = n + n % 2;
  for (int r = 0; r < even - 1 && n > 1; ++r) {
    Round round;
    for (int i = 0; i < even / 2; ++i) {
      const int a = i == 0 ? even - 1 : (r + i) % (even - 1);
      const int b = i == 0 ? r : (r + even - 1 - i) % (even - 1);
      if (a < n && b < n) round.emplace_back(std::min(a, b), std::max(a, b));
    }
    std::ranges::sort(round);
    out.push_back(round);
  }
  return out;
}

std::vector<Round> screening(int n) {
  if (n < 2) return {};
  if (n == 2) return {{{0, 1}}};
  std::vector<Round> out(2);
  for (int i = 0; i + 1 < n; ++i) out[static_cast<std::size_t>(i % 2)].emplace_back(i, i + 1);
  // The ring closes: in an odd one the last link meets both ends of others.
  if (n % 2 == 0)
    out[1].emplace_back(n - 1, 0);
  else
    out.push_back({{n - 1, 0}});
  return out;
}

std::vector<Round> one_at_a_time(const std::vector<Round>& rounds, const std::vector<int>& group_of) {
  std::vector<Round> out;
  for (const auto& round : rounds) {
    std::vector<std::pair<Round, std::set<int>>> parts;
    for (const auto& pair : round) {
      const int g = group_of[static_cast<std::size_t>(pair.first)],
                h = group_of[static_cast<std::size_t>(pair.second)];
      auto fits = std::ranges::find_if(
          parts, [&](const auto& p) { return !p.second.contains(g) && !p.second.contains(h); });
      if (fits == parts.end()) {
        parts.emplace_back();
        fits = parts.end() - 1;
      }
      fits->first.push_back(pair);
      fits->second.insert(g);
      fits->second.insert(h);
    }
    for (auto& part : parts) out.push_back(std::move(part.first));
  }
  return out;
}

namespace {

// The member whose best link, of those to members that are not in `slow`, is the worst, and that link's rate.
std::optional<std::pair<int, double>> worst_of(const std::vector<Link>& links, int n,
                                               const std::set<int>& slow) {
  std::map<int, double> best;
  for (const auto& link : links) {
    if (slow.contains(link.a) || slow.contains(link.b)) continue;
    for (const int end : {link.a, link.b}) best[end] = std::max(best[end], link.slower());
  }
  std::optional<std::pair<int, double>> worst;
  for (int m = 0; m < n; ++m) {
    const auto found = best.find(m);
    if (found != best.end() && (!worst || found->second < worst->second)) worst = *found;
  }
  return worst;
}

}  // namespace

Suspects suspects_of(const std::vector<Link>& links, int n, double share) {
  Suspects out;
  std::vector<double> rates;
  for (const auto& link : links) rates.push_back(link.slower());
  // A slow member has two slow links of a ring, and half of all links among four: the upper quartile is of
  // good ones all the same.
  out.usual = measure::percentile_of(rates, 0.75).value_or(0);
  out.limit = out.usual * share;
  std::set<int> slow;
  // The worst first: what a slow member explains is no evidence against its partners.
  while (const auto worst = worst_of(links, n, slow)) {
    if (worst->second >= out.limit) break;
    slow.insert(worst->first);
  }
  out.members.assign(slow.begin(), slow.end());
  for (const auto& link : links)
    if (link.slower() < out.limit && !slow.contains(link.a) && !slow.contains(link.b))
      out.links.emplace_back(link.a, link.b);
  return out;
}

std::vector<int> partners_of(int member, const Suspects& suspects, const std::vector<Link>& links, int n) {
  std::vector<int> good;
  for (int m = 0; m < n; ++m)
    if (m != member && std::ranges::find(suspects.members, m) == suspects.members.end()) good.push_back(m);
  if (good.empty())
    for (int m = 0; m < n; ++m)
      if (m != member) good.push_back(m);
  const auto is_neighbour = [&](int m) {
    return std::ranges::any_of(
        links, [&](const Link& l) { return (l.a == m && l.b == member) || (l.b == m && l.a == member); });
  };
  // From the other side of the list, so that suspects have different partners.
  const auto first =
      (good.size() / 2 + static_cast<std::size_t>(member)) % std::max<std::size_t>(good.size(), 1);
  std::rotate(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(first), good.end());
  std::stable_partition(good.begin(), good.end(), [&](int m) { return !is_neighbour(m); });
  good.resize(std::min<std::size_t>(good.size(), 2));
  return good;
}

std::optional<Pair> reference_for(Pair link, std::optional<int> member, const Suspects& suspects,
                                  const std::vector<Link>& links) {
  const auto is_suspect = [&](int m) {
    return std::ranges::find(suspects.members, m) != suspects.members.end();
  };
  // The nearest to what is usual: neither the luckiest nor one of the shortest way.
  std::optional<Pair> found;
  double least = 0;
  for (const bool strict : {true, false}) {
    for (const auto& l : links) {
      if (Pair{l.a, l.b} == link || Pair{l.b, l.a} == link || l.a == member || l.b == member) continue;
      if (strict && (is_suspect(l.a) || is_suspect(l.b) || l.slower() < suspects.limit)) continue;
      const double far = std::abs(std::log(std::max(l.slower(), 1e-9) / std::max(suspects.usual, 1e-9)));
      if (!found || far < least) found = Pair{l.a, l.b}, least = far;
    }
    if (found) break;
  }
  return found;
}

void Doubt::add_turn(const Link& link, const Link& reference) {
  const auto keep = [](Link& best, const Link& one) {
    best.there = std::max(best.there, one.there), best.back = std::max(best.back, one.back);
  };
  keep(best_, link), keep(other_, reference);
  ++turns_;
}

Doubt::State Doubt::state(double usual) const {
  constexpr double kGood = 0.7, kSlow = 0.5;
  if (turns_ == 0) return State::open;
  if (rate() >= kGood * std::max(reference_rate(), usual)) return State::good;
  if (turns_ >= most_turns_) return rate() < kGood * reference_rate() ? State::slow : State::good;
  return turns_ >= most_turns_ / 2 && rate() < kSlow * reference_rate() ? State::slow : State::open;
}

}  // namespace topotune::net
