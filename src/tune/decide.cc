#include "tune/decide.h"

#include <algorithm>

namespace topotune::tune {

Decider::Decider(const Table& table, std::size_t ranks, std::size_t nodes) {
  for (const auto& r : table.regions) {
    const auto index = static_cast<std::size_t>(r.collective);
    if (r.ranks != ranks || r.nodes != nodes || index >= rows_.size()) continue;
    auto choice = r.choice;
    if (!keeps_to_channels(choice.algorithm, nodes)) choice.channels = 0;
    rows_[index].push_back({r.from, r.to, choice});
  }
  for (auto& rows : rows_) std::ranges::sort(rows, {}, &Row::from);
}

const Choice* Decider::choice(int function, std::uint64_t bytes) const {
  if (function < 0 || function >= kTunedCollectives) return nullptr;
  const auto& rows = rows_[static_cast<std::size_t>(function)];
  const auto after = std::ranges::upper_bound(rows, bytes, {}, &Row::from);
  if (after == rows.begin()) return nullptr;
  const auto& row = *(after - 1);
  return bytes <= row.to ? &row.choice : nullptr;
}

std::size_t Decider::regions() const {
  std::size_t count = 0;
  for (const auto& rows : rows_) count += rows.size();
  return count;
}

bool keeps_to_channels(int algorithm, std::size_t nodes) {
  constexpr int kCollNetDirect = 2, kCollNetChain = 3, kNvls = 4;
  if (algorithm == kCollNetDirect || algorithm == kCollNetChain) return false;
  return nodes == 1 || (algorithm != kNvls && algorithm != kNcclChooses);
}

Applied apply(const Choice& choice, float* costs, int algorithms, int protocols, int* channels) {
  Applied applied = Applied::channels_only;
  if (choice.algorithm != kNcclChooses) {
    if (costs == nullptr || choice.algorithm < 0 || choice.algorithm >= algorithms || choice.protocol < 0 ||
        choice.protocol >= protocols)
      return Applied::unusable;
    float& cost = costs[choice.algorithm * protocols + choice.protocol];
    if (!(cost >= 0)) return Applied::unusable;
    const auto best = cheapest(costs, algorithms, protocols);
    const float least = costs[best.algorithm * protocols + best.protocol];
    if (least > 0 && cost > 256 * least) return Applied::unusable;
    cost = 0;
    applied = Applied::forced;
  }
  if (choice.channels > 0 && channels != nullptr)
    *channels = choice.channels;
  else if (applied == Applied::channels_only)
    applied = Applied::nothing;
  return applied;
}

Choice cheapest(const float* costs, int algorithms, int protocols) {
  Choice best;
  float least = 0;
  for (int a = 0; costs != nullptr && a < algorithms; ++a) {
    for (int p = 0; p < protocols; ++p) {
      const float cost = costs[a * protocols + p];
      if (!(cost >= 0) || (best.algorithm != kNcclChooses && !(cost < least))) continue;
      best.algorithm = a, best.protocol = p, least = cost;
    }
  }
  return best;
}

}  // namespace topotune::tune
