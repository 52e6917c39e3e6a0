#include "model/nccl_traffic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace topotune::model {
namespace {

constexpr int kMaxPairRanks = 1024;  // all pairs of more ranks are not written out

// Which algorithm moves a collective, over which channels.
struct Choice {
  std::string algorithm = "Ring";
  int first = 0, last = -1;  // last < first: all channels
  std::uint64_t seen = 0;
};

// What goes over the rings, trees or pairs of one communicator: bytes of every rank, summed before they are
// spread.
struct Load {
  int communicator = 0, first = 0, last = -1;
  auto operator<=>(const Load&) const = default;
  bool uses(int channel) const { return last < first || (channel >= first && channel <= last); }
};

class Traffic {
 public:
  explicit Traffic(NcclLog& log);

  void add(const LogCollective& c);
  void add(const PeerBytes& p) { put(p.src, p.dst, static_cast<double>(p.bytes)); }
  void finish();

 private:
  Choice choice_of(const LogCollective& c) const;
  int rank(int communicator, int own) const;
  void put(int src, int dst, double bytes) {
    if (src != dst && src >= 0 && dst >= 0 && bytes > 0) bytes_[{src, dst}] += bytes;
  }
  void spread_over_rings(const Load& load, double per_rank);
  void spread_over_trees(const Load& load, double bytes);
  void spread_over_pairs(const Load& load, double each);
  void spread_over_heads(int communicator, double up, double down);
  void spread_over_powers(int communicator, bool forward, double block);
  bool one_rank_a_node(int communicator) const;
  bool knows_heads(int communicator) const;
  bool add_special(const LogCollective& c, const std::string& algorithm, double total);

  NcclLog& log_;
  std::map<std::pair<std::string, std::uint64_t>, Choice> choices_;  // by operation ("" unnamed) and size
  std::map<int, std::vector<const LogRing*>> rings_;                 // by communicator
  std::map<int, std::vector<const LogTree*>> trees_;
  std::map<Load, double> over_rings_, over_trees_, over_pairs_;
  std::map<int, std::pair<double, double>> over_heads_;  // by communicator: bytes to and from all heads
  std::map<std::pair<int, bool>, double> over_powers_;   // bytes of one rank's block; true: to higher ranks
  std::map<std::pair<int, int>, double> bytes_;
};

Traffic::Traffic(NcclLog& log) : log_(log) {
  for (const auto& ring : log.rings) rings_[ring.communicator].push_back(&ring);
  for (const auto& tree : log.trees) trees_[tree.communicator].push_back(&tree);
  for (const auto& t : log.tuning) {
    auto& choice = choices_[{t.op.value_or(""), t.bytes}];
    if (t.count <= choice.seen) continue;
    choice = {t.algorithm, t.first_channel.value_or(0), t.last_channel.value_or(-1), t.count};
  }
}

// TUNING lines print count x element, also where the operation's whole size is larger.
Choice Traffic::choice_of(const LogCollective& c) const {
  const auto element = datatype_bytes(c.datatype).value_or(0);
  for (const auto& op : {c.op, std::string{}})
    for (const auto bytes : {c.count * element, c.bytes.value_or(0)})
      if (const auto found = choices_.find({op, bytes}); found != choices_.end()) return found->second;
  return {};
}

// The rank's number in the main communicator; -1 when it is not known.
int Traffic::rank(int communicator, int own) const {
  const auto at = static_cast<std::size_t>(communicator);
  if (at >= log_.communicators.size()) return own;
  const auto& map = log_.communicators[at].in_main;
  if (map.empty()) return communicator == 0 || !log_.communicators[at].parent ? own : -1;
  return static_cast<std::size_t>(own) < map.size() ? map[static_cast<std::size_t>(own)] : -1;
}

// Every rank of a ring sends to the next; the channels share.
void Traffic::spread_over_rings(const Load& load, double per_rank) {
  const auto found = rings_.find(load.communicator);
  if (found == rings_.end()) return;
  const auto used = [&](const LogRing& ring) {
    return static_cast<double>(std::ranges::count_if(ring.channels, [&](int c) { return load.uses(c); }));
  };
  double channels = 0;
  for (const auto* ring : found->second) channels += used(*ring);
  if (channels <= 0) return;
  for (const auto* ring : found->second) {
    const auto share = per_rank * used(*ring) / channels;
    const auto& ranks = ring->ranks;
    for (std::size_t i = 0; i < ranks.size(); ++i)
      put(rank(load.communicator, ranks[i]), rank(load.communicator, ranks[(i + 1) % ranks.size()]), share);
  }
}

// Every edge of a tree carries the channel's share up and down.
void Traffic::spread_over_trees(const Load& load, double bytes) {
  std::map<int, int> channels;
  for (const auto* tree : trees_[load.communicator])
    if (load.uses(tree->channel)) ++channels[tree->channel];
  for (const auto* tree : trees_[load.communicator]) {
    if (!load.uses(tree->channel)) continue;
    const double share = bytes / static_cast<double>(channels.size());
    const int me = rank(load.communicator, tree->rank);
    if (tree->up) put(me, rank(load.communicator, *tree->up), share);
    for (const int child : tree->down) put(me, rank(load.communicator, child), share);
  }
}

void Traffic::spread_over_pairs(const Load& load, double each) {
  const int n = log_.communicators[static_cast<std::size_t>(load.communicator)].nranks.value_or(0);
  if (n > kMaxPairRanks) return;
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b) put(rank(load.communicator, a), rank(load.communicator, b), each);
}

// Binomial trees as NCCL connects them (ncclTransportPatConnect): with distance 1, 2, 4, ... a rank sends to
// rank + distance in an all-gather, to rank - distance in a reduce-scatter. The far steps come first with one
// block each: the block that ends `j` ranks away makes its last hop over the lowest bit of j.
void Traffic::spread_over_powers(int communicator, bool forward, double block) {
  const int n = log_.communicators[static_cast<std::size_t>(communicator)].nranks.value_or(0);
  for (int distance = 1; distance < n; distance *= 2) {
    const int blocks = ((n - 1) / distance + 1) / 2;
    for (int r = 0; r < n; ++r)
      put(rank(communicator, r), rank(communicator, (r + (forward ? distance : n - distance)) % n),
          block * blocks);
  }
}

// CollNet direct: every rank gives each head of its node that head's share and gets the result back. What the
// heads send to the switch goes to no rank.
void Traffic::spread_over_heads(int communicator, double up, double down) {
  std::map<std::string, std::pair<std::vector<int>, std::vector<int>>> nodes;  // ranks, heads by host
  for (const auto& r : log_.ranks) {
    if (r.communicator != communicator || !r.host) continue;
    auto& [ranks, heads] = nodes[*r.host];
    ranks.push_back(r.rank);
    if (log_.collnet_heads.contains({communicator, r.rank})) heads.push_back(r.rank);
  }
  for (const auto& [host, node] : nodes) {
    const auto& [ranks, heads] = node;
    const auto shares = static_cast<double>(heads.size());
    for (const int head : heads)
      for (const int r : ranks) {
        put(rank(communicator, r), rank(communicator, head), up / shares);
        put(rank(communicator, head), rank(communicator, r), down / shares);
      }
  }
}

bool Traffic::one_rank_a_node(int communicator) const {
  const auto& c = log_.communicators[static_cast<std::size_t>(communicator)];
  return c.nranks && c.nnodes && *c.nranks == *c.nnodes;
}

// Every rank's host is known, and every host has a head.
bool Traffic::knows_heads(int communicator) const {
  const auto& c = log_.communicators[static_cast<std::size_t>(communicator)];
  std::set<std::string> hosts, with_head;
  int known = 0;
  for (const auto& r : log_.ranks) {
    if (r.communicator != communicator || !r.host) continue;
    ++known;
    hosts.insert(*r.host);
    if (log_.collnet_heads.contains({communicator, r.rank})) with_head.insert(*r.host);
  }
  return c.nranks && known == *c.nranks && !hosts.empty() && hosts.size() == with_head.size();
}

// PAT and CollNet. False: another algorithm.
bool Traffic::add_special(const LogCollective& c, const std::string& algorithm, double total) {
  const bool gathers = c.op == "AllGather", scatters = c.op == "ReduceScatter";
  if (algorithm != "PAT" && !algorithm.starts_with("CollNet")) return false;
  if (algorithm == "PAT" && (gathers || scatters) && one_rank_a_node(c.communicator)) {
    const int n = *log_.communicators[static_cast<std::size_t>(c.communicator)].nranks;
    over_powers_[{c.communicator, gathers}] += total / n;
  } else if (algorithm == "CollNetDirect" && (c.op == "AllReduce" || gathers || scatters) &&
             knows_heads(c.communicator)) {
    auto& [up, down] = over_heads_[c.communicator];
    if (!gathers) up += total;
    if (!scatters) down += total;
  } else {
    log_.traffic_without.insert(algorithm);
  }
  return true;
}

void Traffic::add(const LogCollective& c) {
  if (!c.bytes || static_cast<std::size_t>(c.communicator) >= log_.communicators.size()) return;
  const int n = log_.communicators[static_cast<std::size_t>(c.communicator)].nranks.value_or(0);
  if (n < 2 || c.op == "Send" || c.op == "Recv") return;
  const double total = static_cast<double>(*c.bytes) * static_cast<double>(c.calls);
  const auto choice = choice_of(c);
  const Load all{c.communicator, 0, -1};
  const Load load{c.communicator, choice.first, choice.last};
  const bool reduces = c.op == "AllReduce";
  const bool tree = choice.algorithm == "Tree" || choice.algorithm == "NVLSTree";
  const double steps = static_cast<double>(n - 1) / n;
  if (add_special(c, choice.algorithm, total)) return;
  if (c.op == "AlltoAll" || c.op == "AllToAll") {
    over_pairs_[all] += total / n;
  } else if (choice.algorithm == "NVLS") {
    over_pairs_[all] += (reduces ? 2 : 1) * total / n;
  } else if (reduces && tree && trees_.contains(c.communicator)) {
    over_trees_[load] += total;
  } else if (reduces) {
    over_rings_[load] += 2 * steps * total;
  } else if (c.op == "AllGather" || c.op == "ReduceScatter" || c.op == "Broadcast" || c.op == "Reduce") {
    over_rings_[load] += steps * total;  // broadcast and reduce: on average over the ring's links
  }
}

void Traffic::finish() {
  for (const auto& [load, bytes] : over_rings_) spread_over_rings(load, bytes);
  for (const auto& [load, bytes] : over_trees_) spread_over_trees(load, bytes);
  for (const auto& [load, bytes] : over_pairs_) spread_over_pairs(load, bytes);
  for (const auto& [communicator, bytes] : over_heads_)
    spread_over_heads(communicator, bytes.first, bytes.second);
  for (const auto& [key, block] : over_powers_) spread_over_powers(key.first, key.second, block);
  for (const auto& [pair, bytes] : bytes_)
    if (bytes < 1.8e19)
      if (const auto whole = static_cast<std::uint64_t>(std::round(bytes)); whole > 0)
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
