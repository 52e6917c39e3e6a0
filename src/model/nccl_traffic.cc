#include "model/nccl_traffic.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace topotune::model {
namespace {

constexpr int kMaxPairRanks = 1024;  // all pairs of more ranks are not written out

class Traffic {
 public:
  explicit Traffic(NcclLog& log) : log_(log) {}

  void add(const LogCollective& c);
  void add(const PeerBytes& p) { put(p.src, p.dst, static_cast<double>(p.bytes)); }
  void finish();

 private:
  // Which algorithm moved it, over which channels.
  struct Choice {
    std::string_view algorithm = "Ring";
    int first = 0, last = -1;  // last < first: all channels
  };
  Choice choice_of(const LogCollective& c) const;
  int rank(const LogCollective& c, int own) const;
  void put(int src, int dst, double bytes) {
    if (src != dst && src >= 0 && dst >= 0 && bytes > 0) bytes_[{src, dst}] += bytes;
  }
  bool over_rings(const LogCollective& c, const Choice& choice, double per_rank);
  bool over_trees(const LogCollective& c, const Choice& choice, double bytes);
  void all_pairs(const LogCollective& c, int n, double each);

  NcclLog& log_;
  std::map<std::pair<int, int>, double> bytes_;
};

Traffic::Choice Traffic::choice_of(const LogCollective& c) const {
  Choice best;
  std::uint64_t most = 0;
  const auto element = datatype_bytes(c.datatype).value_or(0);
  for (const auto& t : log_.tuning) {
    if (t.op && *t.op != c.op) continue;
    if (t.bytes != c.count * element && (!c.bytes || t.bytes != *c.bytes)) continue;
    if (t.count <= most) continue;
    most = t.count;
    best.algorithm = t.algorithm;
    best.first = t.first_channel.value_or(0);
    best.last = t.last_channel.value_or(-1);
  }
  return best;
}

// The rank's number in the main communicator.
int Traffic::rank(const LogCollective& c, int own) const {
  const auto at = static_cast<std::size_t>(c.communicator);
  if (at >= log_.communicators.size()) return own;
  const auto& map = log_.communicators[at].in_main;
  if (map.empty()) return c.communicator == 0 || !log_.communicators[at].parent ? own : -1;
  return static_cast<std::size_t>(own) < map.size() ? map[static_cast<std::size_t>(own)] : -1;
}

// Every rank of a ring sends `per_rank` to the next, spread over the channels.
bool Traffic::over_rings(const LogCollective& c, const Choice& choice, double per_rank) {
  const auto used = [&](int channel) {
    return choice.last < choice.first || (channel >= choice.first && channel <= choice.last);
  };
  double channels = 0;
  for (const auto& ring : log_.rings)
    if (ring.communicator == c.communicator)
      channels += static_cast<double>(std::ranges::count_if(ring.channels, used));
  if (channels == 0) return false;
  for (const auto& ring : log_.rings) {
    if (ring.communicator != c.communicator) continue;
    const auto share = per_rank * static_cast<double>(std::ranges::count_if(ring.channels, used)) / channels;
    for (std::size_t i = 0; i < ring.ranks.size(); ++i)
      put(rank(c, ring.ranks[i]), rank(c, ring.ranks[(i + 1) % ring.ranks.size()]), share);
  }
  return true;
}

// Every edge of a tree carries the channel's share up and down.
bool Traffic::over_trees(const LogCollective& c, const Choice& choice, double bytes) {
  std::map<int, std::vector<const LogTree*>> channels;
  for (const auto& tree : log_.trees)
    if (tree.communicator == c.communicator &&
        (choice.last < choice.first || (tree.channel >= choice.first && tree.channel <= choice.last)))
      channels[tree.channel].push_back(&tree);
  for (const auto& [channel, trees] : channels)
    for (const auto* tree : trees) {
      const double share = bytes / static_cast<double>(channels.size());
      if (tree->up) put(rank(c, tree->rank), rank(c, *tree->up), share);
      for (const int child : tree->down) put(rank(c, tree->rank), rank(c, child), share);
    }
  return !channels.empty();
}

void Traffic::all_pairs(const LogCollective& c, int n, double each) {
  if (n > kMaxPairRanks) return;
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b)
      if (a != b) put(rank(c, a), rank(c, b), each);
}

void Traffic::add(const LogCollective& c) {
  if (!c.bytes || static_cast<std::size_t>(c.communicator) >= log_.communicators.size()) return;
  const int n = log_.communicators[static_cast<std::size_t>(c.communicator)].nranks.value_or(0);
  if (n < 2 || c.op == "Send" || c.op == "Recv") return;
  const double total = static_cast<double>(*c.bytes) * static_cast<double>(c.calls);
  const auto choice = choice_of(c);
  const bool reduces = c.op == "AllReduce";
  if (c.op == "AlltoAll" || c.op == "AllToAll") return all_pairs(c, n, total / n);
  if (c.op == "Gather" || c.op == "Scatter") return;  // the root is not kept
  if (reduces && choice.algorithm == "NVLS") return all_pairs(c, n, 2 * total / n);
  if (choice.algorithm == "NVLS") return all_pairs(c, n, total / n);
  if ((choice.algorithm == "Tree" || choice.algorithm == "NVLSTree") && over_trees(c, choice, total)) return;
  const double steps = static_cast<double>(n - 1) / n;
  if (reduces)
    over_rings(c, choice, 2 * steps * total);
  else if (c.op == "AllGather" || c.op == "ReduceScatter")
    over_rings(c, choice, steps * total);
  else if (c.op == "Broadcast" || c.op == "Reduce")
    over_rings(c, choice, steps * total);  // on average over the ring's links
}

void Traffic::finish() {
  for (const auto& [pair, bytes] : bytes_)
    if (const auto whole = static_cast<std::uint64_t>(bytes + 0.5); whole > 0)
      log_.traffic.push_back({pair, whole});
  if (!log_.traffic.empty()) log_.traffic_basis = "modelled";
}

}  // namespace

void model_traffic(NcclLog& log, const std::vector<PeerBytes>& peers) {
  Traffic traffic(log);
  for (const auto& c : log.collectives) traffic.add(c);
  for (const auto& p : peers) traffic.add(p);
  traffic.finish();
}

}  // namespace topotune::model
