#include "net/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
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

// Robust standard deviation of the logarithms. One slow member has two links: of fewer than six these would
// be too large a part, and only the better half counts.
double spread_of(std::vector<double> rates) {
  if (rates.size() < 6) {
    std::ranges::sort(rates, std::greater<>());
    rates.resize((rates.size() + 1) / 2);
  }
  std::vector<double> logs;
  for (const double rate : rates) logs.push_back(std::log(std::max(rate, 1e-9)));
  const double middle = measure::median_of(logs).value_or(0);
  for (double& value : logs) value = std::abs(value - middle);
  return 1.4826 * measure::median_of(logs).value_or(0);
}

// The member whose best link, of those to members that are not in `slow`, is the worst, and that link's rate.
std::optional<std::pair<int, double>> worst_of(const std::vector<Link>& links, int n,
                                               const std::set<int>& slow) {
  std::map<int, double> best;
  for (const auto& link : links) {
    if (slow.contains(link.a) || slow.contains(link.b)) continue;
    for (const int end : {link.a, link.b}) best[end] = std::max(best[end], link.gbytes_per_s);
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
  for (const auto& link : links) rates.push_back(link.gbytes_per_s);
  // A slow member has two slow links: the upper quartile is of good ones as long as fewer than a third are
  // slow.
  out.usual = measure::percentile_of(rates, 0.75).value_or(0);
  out.limit = out.usual * std::min(share, std::exp(-2 * spread_of(rates)));
  const double limit = out.limit;
  std::set<int> slow;
  // The worst first: what a slow member explains is no evidence against its partners.
  while (const auto worst = worst_of(links, n, slow)) {
    if (worst->second >= limit) break;
    slow.insert(worst->first);
  }
  out.members.assign(slow.begin(), slow.end());
  for (const auto& link : links)
    if (link.gbytes_per_s < limit && !slow.contains(link.a) && !slow.contains(link.b))
      out.links.emplace_back(link.a, link.b);
  return out;
}

std::vector<Round> confirmation(const Suspects& suspects, int n) {
  std::vector<int> good;
  for (int m = 0; m < n; ++m)
    if (std::ranges::find(suspects.members, m) == suspects.members.end()) good.push_back(m);
  std::vector<Round> out;
  for (const int m : suspects.members) {
    // Not the neighbours: other members than before, where there are enough.
    for (std::size_t k = 0; k < std::min<std::size_t>(good.size(), 2); ++k) {
      const int far = good[(good.size() / 2 + static_cast<std::size_t>(m) + k) % good.size()];
      out.push_back({{std::min(m, far), std::max(m, far)}});
    }
  }
  for (const auto& link : suspects.links) out.push_back({link});
  return out;
}

}  // namespace topotune::net
