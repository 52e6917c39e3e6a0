#include "parse/numbering.h"

#include <unordered_set>

namespace topotune::parse {

Numbering number_devices(const std::vector<std::optional<int>>& wanted) {
  constexpr int kMost = 1'000'000;
  Numbering out;
  std::unordered_set<int> taken;
  std::vector<std::optional<int>> kept(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i] || *wanted[i] < 0 || *wanted[i] > kMost) continue;
    if (taken.insert(*wanted[i]).second)
      kept[i] = wanted[i];
    else
      out.repeated = true;
  }
  int next = 0;
  for (const auto& number : kept) {
    while (!number && taken.contains(next)) ++next;
    out.numbers.push_back(number ? *number : next++);
  }
  return out;
}

}  // namespace topotune::parse
