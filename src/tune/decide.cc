#include "tune/decide.h"

#include <algorithm>
#include <cfloat>

namespace topotune::tune {

namespace {

// What NCCL itself would take (topoGetAlgoInfo): nothing negative, no number at all, or as large as none.
bool is_possible(float cost) { return cost >= 0 && cost < FLT_MAX; }

}  // namespace

Decider::Decider(const Table& table, std::size_t ranks, std::size_t nodes) {
  for (const auto& r : table.regions) {
    const auto index = static_cast<std::size_t>(r.collective);
    if (r.ranks != ranks || r.nodes != nodes || index >= rows_.size()) continue;
    auto choice = r.choice;
    if (!keeps_to_channels(choice.algorithm, nodes)) choice.channels = 0;
    rows_[index].rows.push_back({r.from, r.to, choice});
  }
  for (auto& [from, rows] : rows_) {
    std::ranges::sort(rows, {}, &Row::from);
    for (const auto& row : rows) from.push_back(row.from);
  }
}

const Choice* Decider::choice(int function, std::uint64_t bytes) const {
  if (function < 0 || function >= kTunedCollectives) return nullptr;
  const auto& [from, rows] = rows_[static_cast<std::size_t>(function)];
  if (rows.empty() || bytes < from[0]) return nullptr;
  std::size_t at =
      0;  // the last one that begins at `bytes` or before; without branches that cannot be foreseen
  for (auto left = rows.size(); left > 1;) {
    const auto half = left / 2;
    at += half * static_cast<std::size_t>(from[at + half] <= bytes);
    left -= half;
  }
  return bytes <= rows[at].to ? &rows[at].choice : nullptr;
}

std::size_t Decider::regions() const {
  std::size_t count = 0;
  for (const auto& rows : rows_) count += rows.rows.size();
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
    if (!is_possible(cost)) return Applied::unusable;
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
      if (!is_possible(cost) || (best.algorithm != kNcclChooses && !(cost < least))) continue;
      best.algorithm = a, best.protocol = p, least = cost;
    }
  }
  return best;
}

}  // namespace topotune::tune
