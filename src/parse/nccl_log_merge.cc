#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "model/nccl_traffic.h"
#include "parse/nccl_log_damage.h"
#include "parse/nccl_log_lines.h"
#include "parse/nccl_log_scan.h"
#include "parse/nccl_log_state.h"

// Joins what the ranks said: communicators from their handles, edges from both ends of a connection, whole
// rings.
namespace topotune::parse::log {
namespace {

using model::NcclLog;

struct Group {
  std::optional<std::uint64_t> comm_id;
  int nranks = -1;
  std::vector<int> instances, scopes;
  std::map<int, int> site_of_rank;  // by rank; the first that claims it
  std::vector<int> in_main;         // main communicator's rank by own rank; empty: not translated
  bool separate = false;  // numbers mean other ranks than the main communicator's, and cannot be translated
  bool top = true;        // no larger communicator holds its processes
  int output = -1;        // index into NcclLog::communicators; -1: not listed
};

struct OutKey {
  int group, src, dst, transport, device, peer;
  auto operator<=>(const OutKey&) const = default;
};
struct OutEdge {
  ChannelSet channels;
  int gdr_send = -1, gdr_receive = -1, peer = -1, proxy = -1;
  model::LogLine at;
};

// -1 is unknown; one "no" makes a "no".
void join_gdr(int& to, int more) {
  if (more < 0) return;
  to = to < 0 ? more : std::min(to, more);
}

std::optional<bool> tri(int value) { return value < 0 ? std::nullopt : std::optional<bool>(value == 1); }
std::optional<int> known(int value) { return value < 0 ? std::nullopt : std::optional<int>(value); }

class Merger {
 public:
  explicit Merger(const State& state) : s_(state), out_(state.log), true_site_(true_sites(state)) {}

  NcclLog run() {
    make_groups();
    bind_scopes();
    size_implicit();
    choose_main();
    list_communicators();
    list_ranks();
    list_edges();
    list_rings();
    list_trees();
    list_collectives();
    list_timeline();
    list_versions();
    list_network();
    list_tuner();
    for (const auto& [key, tuning] : s_.tuning) out_.tuning.push_back(tuning);
    for (const auto& host : hosts_in_order()) out_.hosts.push_back(host);
    for (const auto& [key, work] : s_.timed_out) out_.timed_out.push_back(work);
    fix_mismatches();
    judge_problems();
    judge_names();
    model::model_traffic(out_, peer_bytes());
    return std::move(out_);
  }

 private:
  const Instance& instance(int i) const { return s_.instances[static_cast<std::size_t>(i)]; }
  const Scope& scope(int i) const { return s_.scopes[static_cast<std::size_t>(i)]; }
  const Site& site(int i) const { return s_.sites[static_cast<std::size_t>(i)]; }
  // The site that lines with this head come from; -1: not known.
  int where(int site) const { return site < 0 ? site : true_site_[static_cast<std::size_t>(site)]; }
  int only_group_of(int at) const;
  Group& group(int i) { return groups_[static_cast<std::size_t>(i)]; }

  int group_for(std::optional<std::uint64_t> id, int nranks);
  void make_groups();
  void bind_scopes();
  void size_implicit();
  void choose_main();
  void translate(Group& g, const std::map<int, int>& rank_of_site);
  void list_communicators();
  model::LogCommunicator describe(const Group& g) const;
  void list_ranks();
  void ranks_of(int g);
  void list_edges();
  void local_edges();
  void network_edges();
  void write_edges();
  void count_transports();
  int place(const Group& g, int rank) const;
  void list_rings();
  void rings_of(int g);
  void list_trees();
  void list_collectives();
  void list_timeline();
  void list_versions();
  void list_network();
  void list_tuner();
  void fix_mismatches();
  void judge_problems();
  void judge_names();
  std::vector<std::string> hosts_in_order() const;
  std::vector<model::PeerBytes> peer_bytes() const;

  const State& s_;
  NcclLog out_;
  std::vector<int> true_site_;
  std::vector<Group> groups_;
  std::vector<int> group_of_instance_, group_of_scope_;
  int implicit_ = -1, main_ = -1;
  std::map<int, std::map<int, std::string>> brackets_;  // by communicator and rank: what stands in brackets
  std::map<std::uint64_t, int> by_id_;
  std::map<int, int> by_size_;
  std::map<OutKey, OutEdge> edges_;
  std::map<std::string, std::map<std::pair<int, int>, ChannelSet>> connections_;  // by class of transport
};

int Merger::group_for(std::optional<std::uint64_t> id, int nranks) {
  auto& slot =
      id ? by_id_.try_emplace(*id, -1).first->second : by_size_.try_emplace(nranks, -1).first->second;
  if (slot < 0) {
    slot = static_cast<int>(groups_.size());
    groups_.emplace_back();
    groups_.back().comm_id = id;
    groups_.back().nranks = nranks;
  }
  return slot;
}

// By commId; without one, ranks of one size are one communicator. A handle without commId joins the only
// communicator of its size that has one.
void Merger::make_groups() {
  group_of_instance_.assign(s_.instances.size(), -1);
  std::map<int, std::vector<int>> ids_of_size;
  for (std::size_t i = 0; i < s_.instances.size(); ++i) {
    const auto& in = s_.instances[i];
    if (!in.comm_id) continue;
    const int g = group_for(in.comm_id, in.nranks);
    group_of_instance_[i] = g;
    auto& ids = ids_of_size[in.nranks];
    if (ids.empty() || ids.back() != g) ids.push_back(g);
  }
  for (std::size_t i = 0; i < s_.instances.size(); ++i) {
    const auto& in = s_.instances[i];
    if (in.comm_id || in.nranks <= 0) continue;
    auto& ids = ids_of_size[in.nranks];
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    group_of_instance_[i] = ids.size() == 1 ? ids.front() : group_for(std::nullopt, in.nranks);
  }
  for (std::size_t i = 0; i < s_.instances.size(); ++i) {
    const int g = group_of_instance_[i];
    if (g < 0) continue;
    group(g).instances.push_back(static_cast<int>(i));
    if (s_.instances[i].rank >= 0)
      if (const int at = where(s_.instances[i].site); at >= 0)
        group(g).site_of_rank.try_emplace(s_.instances[i].rank, at);
  }
}

// The group of a site that speaks of one communicator only; -1: none or several.
int Merger::only_group_of(int at) const {
  if (at < 0 || site(at).instances.size() != 1) return -1;
  return group_of_instance_[static_cast<std::size_t>(site(at).instances.front())];
}

// Lines whose communicator nobody named belong to the only one there is, else to one of their own.
void Merger::bind_scopes() {
  group_of_scope_.assign(s_.scopes.size(), -1);
  const int only = groups_.size() == 1 ? 0 : -1;
  for (std::size_t i = 0; i < s_.scopes.size(); ++i) {
    const auto& sc = s_.scopes[i];
    int g = sc.instance >= 0 ? group_of_instance_[static_cast<std::size_t>(sc.instance)] : -1;
    if (g < 0 && where(sc.site) != sc.site) g = only_group_of(where(sc.site));
    const bool fits = only >= 0 && (sc.me < 0 || sc.me < groups_[0].nranks);
    if (g < 0 && fits) g = only;
    if (g < 0) {
      if (implicit_ < 0) {
        implicit_ = static_cast<int>(groups_.size());
        groups_.emplace_back();
      }
      g = implicit_;
    }
    group_of_scope_[i] = g;
    group(g).scopes.push_back(static_cast<int>(i));
    if (const int at = where(sc.site); sc.me >= 0 && at >= 0) group(g).site_of_rank.try_emplace(sc.me, at);
  }
}

bool is_permutation_of_all(const std::vector<int>& ranks) {
  std::vector<bool> seen(ranks.size());
  for (const int r : ranks) {
    if (r < 0 || static_cast<std::size_t>(r) >= ranks.size() || seen[static_cast<std::size_t>(r)])
      return false;
    seen[static_cast<std::size_t>(r)] = true;
  }
  return !ranks.empty();
}

constexpr std::size_t kPrintedRanks = 20;  // NCCL prints no more of a ring (MAXWIDTH, src/init.cc)

// A whole ring tells the size of a communicator that no line describes.
void Merger::size_implicit() {
  if (implicit_ < 0) return;
  auto& g = group(implicit_);
  for (const int i : g.scopes)
    for (const auto& ring : scope(i).rings)
      if (!ring.cut && ring.ranks.size() != kPrintedRanks && is_permutation_of_all(ring.ranks))
        g.nranks = std::max(g.nranks, static_cast<int>(ring.ranks.size()));
  if (s_.header_ranks > 0 && g.nranks < 0 && groups_.size() == 1) g.nranks = s_.header_ranks;
}

void Merger::translate(Group& g, const std::map<int, int>& rank_of_site) {
  const bool whole = g.nranks > 0 && static_cast<int>(g.site_of_rank.size()) == g.nranks;
  if (whole) g.in_main.assign(static_cast<std::size_t>(g.nranks), -1);
  bool inside = !g.site_of_rank.empty();
  for (const auto& [rank, where] : g.site_of_rank) {
    const auto found = rank_of_site.find(where);
    if (found == rank_of_site.end())
      inside = false;
    else if (whole && rank < g.nranks)
      g.in_main[static_cast<std::size_t>(rank)] = found->second;
  }
  const bool all = whole && std::ranges::find(g.in_main, -1) == g.in_main.end();
  g.top = !inside;
  g.separate = inside && !all;
  if (!all) g.in_main.clear();
}

// The largest communicator; the others' ranks are told in its numbers where every one of them is known.
void Merger::choose_main() {
  for (std::size_t i = 0; i < groups_.size(); ++i)
    if (main_ < 0 || groups_[i].nranks > group(main_).nranks) main_ = static_cast<int>(i);
  if (main_ < 0) return;
  std::map<int, int> rank_of_site;
  for (const auto& [rank, where] : group(main_).site_of_rank) rank_of_site.try_emplace(where, rank);
  for (std::size_t i = 0; i < groups_.size(); ++i)
    if (static_cast<int>(i) != main_ && static_cast<int>(i) != implicit_) translate(groups_[i], rank_of_site);
  out_.main_ranks = std::max(0, group(main_).nranks);
}

model::LogCommunicator Merger::describe(const Group& g) const {
  model::LogCommunicator c;
  if (g.comm_id) c.id = fmt::format("0x{:x}", *g.comm_id);
  c.nranks = known(g.nranks);
  std::set<int> hosts;
  for (const auto& [rank, where] : g.site_of_rank)
    if (where >= 0) hosts.insert(site(where).host);
  if (g.nranks > 0 && static_cast<int>(g.site_of_rank.size()) == g.nranks)
    c.nnodes = static_cast<int>(hosts.size()), c.nnodes_by_names = true;
  int channels = -1;
  for (const int i : g.instances) {
    const auto& in = instance(i);
    if (in.nnodes > 0) c.nnodes = in.nnodes, c.nnodes_by_names = false;
    channels = std::max(channels, in.channels);
    if (in.p2p_channels >= 0) c.p2p_channels = in.p2p_channels;
    if (in.nvls_channels >= 0) c.nvls_channels = in.nvls_channels;
    if (in.collnet_channels >= 0) c.collnet_channels = in.collnet_channels;
    c.finished = c.finished || in.finished;
    c.mnnvl = c.mnnvl || in.mnnvl;
    if (in.init_seconds >= 0) c.init_seconds = std::max(c.init_seconds.value_or(0), in.init_seconds);
  }
  if (channels < 0)
    for (const int i : g.scopes)
      if (scope(i).ring_channels > 0) channels = std::max(channels, scope(i).ring_channels);
  c.channels = known(channels);
  c.ranks_seen = static_cast<int>(g.site_of_rank.size());
  c.in_main = g.in_main;
  return c;
}

void Merger::list_communicators() {
  std::vector<int> order;
  if (main_ >= 0) order.push_back(main_);
  for (std::size_t i = 0; i < groups_.size(); ++i)
    if (static_cast<int>(i) != main_) order.push_back(static_cast<int>(i));
  for (const int i : order) {
    auto c = describe(group(i));
    if (!c.nranks && !c.channels && i != main_) continue;
    if (!c.nranks && !c.channels && !c.id) continue;
    if (i != main_ && !group(i).top) c.parent = 0;
    group(i).output = static_cast<int>(out_.communicators.size());
    out_.communicators.push_back(std::move(c));
  }
}

// Ranks of a communicator: from init lines, from the rank that prints rings and connections, and from
// brackets.
void Merger::ranks_of(int index) {
  const auto& g = group(index);
  std::map<std::pair<int, int>, model::LogRank> found;  // by rank and site
  const auto at = [&](int rank, int where) -> model::LogRank& {
    auto& r = found[{rank, where}];
    r.rank = rank;
    r.communicator = std::max(0, g.output);
    if (where < 0) return r;
    const auto& w = site(where);
    if (w.host != 0) r.host = s_.hosts[w.host];
    r.pid = known(w.pid);
    if (!r.gpu) r.gpu = known(w.dev);
    if (!w.cpus.empty()) r.cpus = w.cpus;
    if (!w.gpu_name.empty()) r.gpu_name = w.gpu_name;
    if (!r.bdf && !w.bdf_hint.empty()) r.bdf = w.bdf_hint;
    return r;
  };
  for (const int i : g.instances) {
    const auto& in = instance(i);
    if (in.rank < 0) continue;
    if (in.site >= 0 && where(in.site) < 0) continue;
    auto& r = at(in.rank, where(in.site));
    if (in.gpu >= 0) r.gpu = in.gpu;
    if (in.nvml >= 0) r.nvml = in.nvml;
    if (in.bus_id) r.bdf = bdf_of_bus_id(*in.bus_id);
  }
  for (const int i : g.scopes)
    if (scope(i).me >= 0 && (scope(i).site < 0 || where(scope(i).site) >= 0))
      at(scope(i).me, where(scope(i).site));
  if (index == main_ && s_.header_ranks > 0 && (g.nranks < 0 || g.nranks == s_.header_ranks))
    for (std::size_t i = 0; i < s_.sites.size(); ++i)
      if (s_.sites[i].rank_hint >= 0) at(s_.sites[i].rank_hint, static_cast<int>(i));
  const bool bus_ids = s_.bracket_bus_ids.value_or(s_.bracket_hex_seen ? 1 : 0) == 1;
  std::set<int> with_site;
  for (const auto& [key, r] : found)
    if (key.second >= 0) with_site.insert(key.first);
  for (const auto& [rank, text] : brackets_[index]) {
    if (!with_site.contains(rank)) at(rank, -1);
    for (auto i = found.lower_bound({rank, -1}); i != found.end() && i->first.first == rank; ++i) {
      auto& r = i->second;
      const auto value = bus_ids ? parse_hex(text) : std::nullopt;
      if (value && !r.bdf) r.bdf = bdf_of_bus_id(*value);
      if (!bus_ids && s_.bracket_bus_ids == 0 && !r.nvml) r.nvml = parse_int<int>(text);
    }
  }
  for (auto& [key, r] : found) {
    if (key.second < 0 && with_site.contains(key.first)) continue;
    out_.ranks.push_back(std::move(r));
  }
}

void Merger::list_ranks() {
  if (groups_.empty()) {  // the nccl-tests header alone
    for (const auto& w : s_.sites) {
      if (w.rank_hint < 0) continue;
      model::LogRank r;
      r.rank = w.rank_hint;
      r.host = s_.hosts[w.host];
      r.pid = known(w.pid);
      r.gpu = known(w.dev);
      if (!w.gpu_name.empty()) r.gpu_name = w.gpu_name;
      if (!w.bdf_hint.empty()) r.bdf = w.bdf_hint;
      out_.ranks.push_back(std::move(r));
    }
    std::ranges::sort(out_.ranks, {}, &model::LogRank::rank);
    return;
  }
  for (const auto& [key, bracket] : s_.bracket_of_rank) {
    if (bracket.length == 0) continue;
    auto& kept = brackets_[group_of_scope_[key.scope]][static_cast<int>(key.rank)];
    if (kept.empty() || bracket.view() < kept) kept = std::string(bracket.view());
  }
  if (main_ >= 0) ranks_of(main_);
  for (std::size_t i = 0; i < groups_.size(); ++i)
    if (static_cast<int>(i) != main_ && groups_[i].top) ranks_of(static_cast<int>(i));
}

int Merger::place(const Group& g, int rank) const {
  return static_cast<std::size_t>(rank) < g.in_main.size() ? g.in_main[static_cast<std::size_t>(rank)] : rank;
}

std::string class_of(const std::string& transport) {
  if (transport.starts_with("NET/")) return transport;
  return transport.substr(0, transport.find('/'));
}

void Merger::local_edges() {
  for (const auto& [key, edge] : s_.edges) {
    const int index = group_of_scope_[key.scope];
    const auto& g = group(index);
    const auto& name = s_.transports[key.transport];
    const int src = place(g, static_cast<int>(key.src));
    const int dst = place(g, static_cast<int>(key.dst));
    const int outside = g.separate ? g.output : -1;
    const auto kind = class_of(name);
    connections_[outside < 0 ? kind : fmt::format("{}\n{}", kind, outside)][{src, dst}].add(edge.channels);
    if (kind == "COLLNET") {
      if (g.output >= 0) out_.collnet_heads.emplace(g.output, static_cast<int>(key.src));
      continue;
    }
    auto& out = edges_[{outside, src, dst, key.transport, -1, -1}];
    out.channels.add(edge.channels);
    if (out.at.line == 0 || edge.at.line < out.at.line) out.at = edge.at;
  }
}

// Both sides of a connection, joined by (communicator, ranks, channel, index).
void Merger::network_edges() {
  struct Key {
    int group, src, dst, transport, channel, connection;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, NetConnection> joined;
  for (const auto& [key, c] : s_.net) {
    const int index = group_of_scope_[key.scope];
    auto& to = joined[{index, static_cast<int>(key.src), static_cast<int>(key.dst), key.transport,
                       key.channel, key.connection}];
    if (c.sent && !to.sent) to.send = c.send, to.sent = true;
    if (c.received && !to.received) to.receive = c.receive, to.received = true;
  }
  for (const auto& [key, c] : joined) {
    const auto& g = group(key.group);
    const int src = place(g, key.src);
    const int dst = place(g, key.dst);
    const int outside = g.separate ? g.output : -1;
    const auto& name = s_.transports[key.transport];
    connections_[outside < 0 ? name : fmt::format("{}\n{}", name, outside)][{src, dst}].add(key.channel);
    auto& out = edges_[{outside, src, dst, key.transport, c.sent ? c.send.device : -1,
                        c.sent ? -1 : c.receive.device}];
    out.channels.add(key.channel);
    if (c.sent) join_gdr(out.gdr_send, c.send.gdr);
    if (c.received) join_gdr(out.gdr_receive, c.receive.gdr);
    if (c.received && out.peer < 0) out.peer = c.receive.device;
    if (c.sent && c.send.proxy >= 0) out.proxy = c.send.proxy;
    const auto& at = c.sent ? c.send.at : c.receive.at;
    if (out.at.line == 0 || at.line < out.at.line) out.at = at;
  }
}

void Merger::write_edges() {
  for (const auto& [key, e] : edges_) {
    model::LogEdge edge;
    edge.src = key.src;
    edge.dst = key.dst;
    edge.transport = s_.transports[key.transport];
    edge.channels = e.channels.count();
    edge.at = e.at;
    if (key.group >= 0) edge.communicator = key.group;
    if (edge.transport.starts_with("NET/")) {
      edge.gdr_send = tri(e.gdr_send);
      edge.gdr_receive = tri(e.gdr_receive);
      int both = -1;
      join_gdr(both, e.gdr_send);
      join_gdr(both, e.gdr_receive);
      edge.gdr = tri(both);
      edge.device = known(key.device);
      edge.peer_device = known(e.peer);
      edge.proxy_rank = known(e.proxy);
    }
    out_.edges.push_back(std::move(edge));
  }
}

void Merger::count_transports() {
  for (const char* name : {"P2P", "SHM", "NET/IB", "NET/Socket", "NVLS", "COLLNET"})
    out_.transports[name] = 0;
  for (const auto& [kind, pairs] : connections_) {
    auto& count = out_.transports[kind.substr(0, kind.find('\n'))];
    for (const auto& [pair, channels] : pairs) count += static_cast<std::uint64_t>(channels.count());
  }
}

void Merger::list_edges() {
  local_edges();
  network_edges();
  write_edges();
  count_transports();
}

// Follows next from rank 0 (or any) until it closes; empty when a link is missing or the ring is not of all
// ranks.
std::vector<int> follow(const std::map<int, int>& next, int nranks) {
  if (next.empty() || (nranks > 0 && static_cast<int>(next.size()) < nranks)) return {};
  std::vector<int> ring;
  int at = next.begin()->first;
  do {
    ring.push_back(at);
    const auto found = next.find(at);
    if (found == next.end() || ring.size() > next.size()) return {};
    at = found->second;
  } while (at != ring.front());
  const bool whole = ring.size() == next.size() && is_permutation_of_all(ring);
  return whole && (nranks <= 0 || static_cast<int>(ring.size()) == nranks) ? ring : std::vector<int>{};
}

void Merger::rings_of(int index) {
  const auto& g = group(index);
  std::map<int, std::map<int, int>> next;  // by channel
  std::map<int, std::vector<int>> whole;
  for (const int i : g.scopes) {
    for (const auto& link : scope(i).links) {
      next[link.channel][link.me] = link.next;
      next[link.channel].try_emplace(link.prev, link.me);
    }
    for (const auto& ring : scope(i).rings) {
      for (std::size_t k = 0; k + 1 < ring.ranks.size(); ++k)
        next[ring.channel].try_emplace(ring.ranks[k], ring.ranks[k + 1]);
      const bool sure = g.nranks > 0 ? static_cast<int>(ring.ranks.size()) == g.nranks
                                     : !ring.cut && ring.ranks.size() != kPrintedRanks;
      if (sure && is_permutation_of_all(ring.ranks)) whole.try_emplace(ring.channel, ring.ranks);
    }
  }
  for (const auto& [channel, links] : next)
    if (!whole.contains(channel))
      if (auto ring = follow(links, g.nranks); !ring.empty()) whole.emplace(channel, std::move(ring));
  std::map<std::vector<int>, std::size_t> known_rings;
  for (const auto& [channel, ring] : whole) {
    const auto [at, fresh] = known_rings.try_emplace(ring, out_.rings.size());
    if (fresh) out_.rings.push_back({ring, {}, std::max(0, g.output)});
    out_.rings[at->second].channels.push_back(channel);
  }
}

void Merger::list_rings() {
  if (main_ >= 0) rings_of(main_);
  for (std::size_t i = 0; i < groups_.size(); ++i)
    if (static_cast<int>(i) != main_) rings_of(static_cast<int>(i));
}

void Merger::list_trees() {
  std::map<std::tuple<int, int, int>, model::LogTree> trees;
  for (std::size_t i = 0; i < s_.scopes.size(); ++i) {
    const int index = group_of_scope_[i];
    const int output = group(index).output;
    for (const auto& t : s_.scopes[i].trees) {
      auto [at, fresh] = trees.try_emplace({index == main_ ? -1 : index, t.channel, t.rank});
      if (!fresh) continue;
      at->second.channel = t.channel;
      at->second.rank = t.rank;
      at->second.up = known(t.up);
      at->second.down.assign(t.down.begin(), t.down.begin() + t.downs);
      at->second.communicator = std::max(0, output);
    }
  }
  for (auto& [key, tree] : trees) out_.trees.push_back(std::move(tree));
}

// A collective is counted once per communicator: by the rank that printed most of them. Sends and receives
// are each rank's own.
void Merger::list_collectives() {
  for (std::size_t gi = 0; gi < groups_.size(); ++gi) {
    const auto& g = groups_[gi];
    std::map<int, std::uint64_t> most, sum;
    for (std::size_t shape = 0; shape < s_.calls.size(); ++shape) {
      const auto& calls = s_.calls[shape];
      for (const int i : g.instances) {
        if (static_cast<std::size_t>(i) >= calls.size()) break;  // instances are in rising order
        const auto n = calls[static_cast<std::size_t>(i)];
        if (n == 0) continue;
        auto& m = most[static_cast<int>(shape)];
        m = std::max<std::uint64_t>(m, n);
        sum[static_cast<int>(shape)] += n;
      }
    }
    for (const auto& [shape, calls] : most) {
      const auto& key = s_.shapes[static_cast<std::size_t>(shape)];
      model::LogCollective c;
      c.op = s_.ops[static_cast<int>(key.op)];
      c.datatype = s_.ops[static_cast<int>(key.datatype)];
      c.count = key.count;
      c.calls = c.op == "Send" || c.op == "Recv" ? sum[shape] : calls;
      c.bytes = model::call_bytes(c.op, c.datatype, c.count, known(g.nranks));
      c.communicator = std::max(0, g.output);
      out_.collectives.push_back(std::move(c));
    }
  }
}

void Merger::list_timeline() {
  for (const auto& [family, line] : s_.timelines) {
    const int g = line.instance < 0 ? -1 : group_of_instance_[static_cast<std::size_t>(line.instance)];
    const int output = g < 0 ? 0 : std::max(0, groups_[static_cast<std::size_t>(g)].output);
    for (auto step : line.steps) {
      step.communicator = output;
      out_.timeline.push_back(std::move(step));
    }
  }
  std::ranges::sort(out_.timeline, [](const auto& a, const auto& b) {
    return std::tuple(a.at.file, a.at.line, a.communicator) <
           std::tuple(b.at.file, b.at.line, b.communicator);
  });
}

void Merger::list_versions() {
  for (const auto& seen : s_.versions) {
    auto v = seen.seen;
    for (const int h : seen.hosts) v.hosts.push_back(s_.hosts[h]);
    out_.versions.push_back(std::move(v));
  }
  if (!s_.versions.empty()) {
    const auto best = std::ranges::max_element(s_.versions, {}, [](const auto& v) { return v.seen.count; });
    out_.library = best->seen.library;
    out_.version = best->seen.version;
    if (!best->suffix.empty()) out_.version_suffix = best->suffix;
    if (best->seen.library == "NCCL" && !best->seen.cuda.empty()) out_.cuda = best->seen.cuda;
  } else if (s_.rccl_words) {
    out_.library = "RCCL";
  } else if (s_.nccl_words) {
    out_.library = "NCCL";
  }
  for (const auto& g : groups_) {
    std::set<int> seen;
    for (const int i : g.instances)
      if (instance(i).site >= 0 && site(instance(i).site).version >= 0)
        seen.insert(site(instance(i).site).version);
    // One commId is one job; equal sizes alone may be several jobs in one file.
    if (seen.size() > 1 && g.comm_id) out_.versions_differ_in_job = true;
  }
}

void Merger::list_network() {
  auto& net = out_.net;
  std::uint64_t most = 0;
  for (const auto& [name, count] : s_.networks)
    if (count > most || (count == most && net.used && name < *net.used)) net.used = name, most = count;
  const auto list = [&](const char* name) {
    const auto found = s_.devices.find(name);
    return found == s_.devices.end() ? std::vector<std::string>{} : found->second;
  };
  net.ib_devices = list("IB");
  net.sockets = list("Socket");
  if (!net.used) {
    for (const auto& edge : out_.edges)
      if (edge.transport.starts_with("NET/")) net.used = edge.transport.substr(4);
    if (!net.used && !net.sockets.empty()) net.used = "Socket";
    if (!net.used && !net.ib_devices.empty()) net.used = "IB";
  }
  const auto own = net.used ? list(net.used->c_str()) : std::vector<std::string>{};
  // "mlx5_0:1/IB" and fused "mlx5_0:1/RoCE+mlx5_1:1/RoCE": the devices' names.
  const auto names = [](const std::vector<std::string>& all) {
    std::vector<std::string> short_names;
    for (const auto& one : all)
      for (const auto part : split(one, '+')) short_names.emplace_back(part.substr(0, part.find(':')));
    return short_names;
  };
  if (!own.empty())
    net.devices = names(own);
  else if (net.used && net.used->starts_with("IB"))
    net.devices = names(net.ib_devices);
  else if (net.used && *net.used == "Socket")
    net.devices = names(net.sockets.empty() ? net.bootstrap : net.sockets);
  for (const auto& plugin : s_.plugins) net.plugins.push_back(plugin);
  int all = -1;
  for (const auto& edge : out_.edges)
    if (edge.gdr) join_gdr(all, *edge.gdr ? 1 : 0);
  if (all < 0 && net.used == "Socket") all = 0;
  const std::string prefix = net.used ? "NET/" + *net.used + "/" : "NET/";
  bool any_on = false;
  bool any_off = false;
  for (const auto& [name, on] : s_.hca_gdr)
    if (name.starts_with(prefix)) (on ? any_on : any_off) = true;
  if (all < 0 && any_off && !any_on) all = 0;
  net.gdr = tri(all);
}

void Merger::list_tuner() {
  std::vector<int> communicator(s_.instances.size(), -1);
  for (std::size_t i = 0; i < communicator.size(); ++i)
    if (group_of_instance_[i] >= 0) communicator[i] = group(group_of_instance_[i]).output;
  out_.tuner = tuner_of(s_, communicator);
}

void Merger::fix_mismatches() {
  for (auto& m : out_.mismatches) {
    int found = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const auto& g = groups_[i];
      if (g.comm_id && static_cast<int>(*g.comm_id & 0x7fffffffU) == m.communicator)
        found = std::max(0, g.output);
    }
    m.communicator = found;
  }
}

// A host name is no machine's identity: NCCL adds the boot id, which it does not print. Where it prints no
// number of nodes, a name with two addresses on one interface is two machines'; one PCI address twice, or a
// network between its ranks although nothing forbids them peer access and shared memory, make it doubtful.
void Merger::judge_names() {
  const auto* main = out_.communicators.empty() ? nullptr : &out_.communicators.front();
  if (main_ < 0 || (main != nullptr && main->nnodes && !main->nnodes_by_names)) return;
  const auto set = [&](std::string_view name) {
    return std::ranges::any_of(out_.env, [&](const auto& s) { return s.name == name && s.value == "1"; });
  };
  std::map<std::pair<int, std::string>, std::string> address;  // by host and interface
  for (const auto& [rank, at] : group(main_).site_of_rank)
    for (const auto& one : site(at).addresses) {
      const auto& name = s_.hosts[site(at).host];
      const auto known = address.try_emplace({site(at).host, one.substr(0, one.find(':'))}, one).first;
      if (known->second != one && !name.empty()) out_.shared_names[name] = true;
    }
  const bool one_gpu =
      set("NCCL_MULTI_RANK_GPU_ENABLE") || std::ranges::any_of(out_.problems, [](const auto& p) {
        return p.text.find("Duplicate GPU") != std::string::npos;
      });
  std::map<int, const std::string*> host_of;
  std::map<std::pair<std::string, std::string>, int> rank_at;  // by host and PCI address
  for (const auto& r : out_.ranks) {
    if (r.communicator != 0 || !r.host) continue;
    host_of.try_emplace(r.rank, &*r.host);
    if (r.bdf && !one_gpu && rank_at.try_emplace({*r.host, *r.bdf}, r.rank).first->second != r.rank)
      out_.shared_names.try_emplace(*r.host, false);
  }
  if (!set("NCCL_P2P_DISABLE") && !set("NCCL_SHM_DISABLE"))
    for (const auto& e : out_.edges) {
      const auto a = host_of.find(e.src);
      const auto b = host_of.find(e.dst);
      if (!e.communicator && e.transport.starts_with("NET/") && a != host_of.end() && b != host_of.end() &&
          *a->second == *b->second)
        out_.shared_names.try_emplace(*a->second, false);
    }
  if (out_.shared_names.empty()) return;
  for (auto& c : out_.communicators)
    if (c.nnodes_by_names) c.nnodes.reset();
}

// Warnings of jobs that go on as if nothing had been.
std::string why_harmless(const model::LogProblem& p) {
  struct Harmless {
    std::string_view source, text, why;
  };
  static constexpr Harmless kHarmless[] = {
      {"ras/", "Address already in use",
       "another job on this host holds the port of NCCL's RAS; this one does without"},
      {"", "ibv_query_port_speed failed", "the port's speed is read another way"},
      {"", "Maximum retry reached for accept", "Fast Socket goes on"},
      {"", "Could not find ncclGetVersion symbol", "the plugin does without NCCL's version"},
      {"", "rocprofiler-register", "no profiler is attached"},
  };
  for (const auto& one : kHarmless)
    if (p.source.starts_with(one.source) && p.text.find(one.text) != std::string::npos)
      return std::string(one.why);
  return {};
}

// An error reached the program when it came out of the library's entry points, or when nothing tells that a
// communicator was ever made.
void Merger::judge_problems() {
  const bool made = std::ranges::any_of(s_.instances, &Instance::initialised);
  const auto is_entry = [](const std::string& frame) {
    return std::ranges::any_of(
        std::initializer_list<std::string_view>{"init.cc:", "group.cc:", "enqueue.cc:"},
        [&](std::string_view file) { return frame.starts_with(file); });
  };
  for (auto& p : out_.problems) {
    if (!p.unwound.empty()) p.returned = p.returned || !made || std::ranges::any_of(p.unwound, is_entry);
    if (made && !p.returned) p.harmless = why_harmless(p);
  }
}

std::vector<std::string> Merger::hosts_in_order() const {
  std::vector<std::string> list;
  std::set<int> seen;
  for (std::size_t i = 0; i < s_.sites.size(); ++i) {
    const int host = s_.sites[i].host;
    if (true_site_[i] == static_cast<int>(i) && host != 0 && seen.insert(host).second)
      list.push_back(s_.hosts[host]);
  }
  return list;
}

// Bytes of Send lines; of Recv lines where the sender's lines are not in the log.
std::vector<model::PeerBytes> Merger::peer_bytes() const {
  std::map<std::tuple<int, int, int>, std::uint64_t> sent, received;
  const auto collect = [&](const auto& from, auto& to, bool swap) {
    for (const auto& [key, bytes] : from) {
      const auto& in = instance(static_cast<int>(key.instance));
      const int g = group_of_instance_[key.instance];
      if (g < 0 || in.rank < 0) continue;
      const int me = place(groups_[static_cast<std::size_t>(g)], in.rank);
      const int peer = place(groups_[static_cast<std::size_t>(g)], static_cast<int>(key.peer));
      if (groups_[static_cast<std::size_t>(g)].separate) continue;
      to[swap ? std::tuple(g, peer, me) : std::tuple(g, me, peer)] += bytes;
    }
  };
  collect(s_.sent, sent, false);
  collect(s_.received, received, true);
  for (const auto& [key, bytes] : received) sent.try_emplace(key, bytes);
  std::vector<model::PeerBytes> list;
  for (const auto& [key, bytes] : sent) list.push_back({std::get<1>(key), std::get<2>(key), bytes});
  return list;
}

}  // namespace

model::NcclLog merge(const State& state) { return Merger(state).run(); }

}  // namespace topotune::parse::log
