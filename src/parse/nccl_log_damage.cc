#include "parse/nccl_log_damage.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace topotune::parse::log {
namespace {

constexpr std::uint64_t kFewer = 4;  // times fewer lines than the real site

struct Candidate {
  int site;
  int pid, dev;
  std::string reversed;  // host names that end alike begin alike
};

bool same_process(const Candidate& a, const Candidate& b) { return a.pid == b.pid && a.dev == b.dev; }

}  // namespace

std::vector<int> true_sites(const State& state) {
  std::vector<int> truth(state.sites.size());
  std::iota(truth.begin(), truth.end(), 0);
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < state.sites.size(); ++i) {
    const auto& site = state.sites[i];
    const auto& host = state.hosts[site.host];
    if (site.pid >= 0 && !host.empty())
      all.push_back({static_cast<int>(i), site.pid, site.dev, {host.rbegin(), host.rend()}});
  }
  std::ranges::sort(all, [](const Candidate& a, const Candidate& b) {
    return std::tie(a.pid, a.dev, a.reversed) < std::tie(b.pid, b.dev, b.reversed);
  });
  const auto lines = [&](const Candidate& c) {
    return state.sites[static_cast<std::size_t>(c.site)].records;
  };
  std::vector<const Candidate*> above;  // whose name each later one ends with
  std::vector<int> matches(state.sites.size());
  for (const auto& one : all) {
    while (!above.empty() &&
           !(same_process(*above.back(), one) && one.reversed.starts_with(above.back()->reversed)))
      above.pop_back();
    if (!above.empty() && lines(one) * kFewer <= lines(*above.back())) {
      truth[static_cast<std::size_t>(one.site)] = above.back()->site;  // something was glued before the name
      continue;
    }
    while (!above.empty() && lines(*above.back()) * kFewer <= lines(one)) {  // the name lost its beginning
      const auto shorter = static_cast<std::size_t>(above.back()->site);
      truth[shorter] = ++matches[shorter] == 1 ? one.site : -1;
      above.pop_back();
    }
    above.push_back(&one);
  }
  for (auto& to : truth)
    for (int steps = 0; steps < 8 && to >= 0 && truth[static_cast<std::size_t>(to)] != to; ++steps)
      to = truth[static_cast<std::size_t>(to)];
  return truth;
}

}  // namespace topotune::parse::log
