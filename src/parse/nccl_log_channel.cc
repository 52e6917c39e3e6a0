#include <algorithm>

#include "base/text.h"
#include "parse/nccl_log_lines.h"
#include "parse/nccl_log_scan.h"

// "Channel 00/0 : 15[7] -> 16[0] [send] via NET/IB/3(8)/GDRDMA", rings and trees.
namespace topotune::parse::log {
namespace {

bool good_rank(int rank) { return rank >= 0 && rank < kMaxRank; }
bool good_channel(int channel) { return channel >= 0 && channel < kMaxChannel; }

struct End {
  int rank = -1;
  std::string_view bracket;  // "" when there is none
};

End read_end(Cursor& in) {
  End end;
  end.rank = in.need<int>();
  if (in.take("[")) {
    end.bracket = in.until("]");
    in.expect("]");
  }
  return end;
}

void remember_bracket(State& state, std::uint32_t scope, const End& end) {
  Bracket made;
  if (end.bracket.empty() || end.bracket.size() > made.text.size()) return;
  bool letters = false;
  for (const char c : end.bracket) {
    if (!is_hex_digit(c)) return;
    letters = letters || !is_digit(c);
  }
  if (!state.bracket_hex_seen) {
    const auto value = parse_hex(end.bracket);
    state.bracket_hex_seen = letters || (value && *value > 0x99);
  }
  if (state.bracket_of_rank.size() >= kMaxBrackets) return;
  auto& kept = state.bracket_of_rank[{scope, static_cast<std::uint32_t>(end.rank)}];
  if (kept.length != 0) return;
  std::ranges::copy(end.bracket, made.text.begin());
  made.length = static_cast<std::uint8_t>(end.bracket.size());
  kept = made;
}

void remember_brackets(State& state, Scope& scope, const End& from, const End& to) {
  if (scope.bracket_from == from.rank && scope.bracket_to == to.rank) return;
  scope.bracket_from = from.rank;
  scope.bracket_to = to.rank;
  const auto index = static_cast<std::uint32_t>(&scope - state.scopes.data());
  remember_bracket(state, index, from);
  remember_bracket(state, index, to);
}

struct Connection {
  int channel = 0, index = 0;
  End from, to;
  bool receive = false, send = false;
};

// RCCL adds " comm 0x… nRanks 08" to every line.
std::string_view without_rccl_tail(std::string_view text) {
  for (auto at = text.rfind(' '); at != std::string_view::npos && at > 0; at = text.rfind(' ', at - 1))
    if (text.substr(at).starts_with(" comm 0x")) return text.substr(0, at);
  return text;
}

// "NET/AWS Libfabric/1(3)/GDRDMA/Shared": name, device, proxy rank, GPUDirect.
bool net_connection(State& state, Scope& scope, const Connection& c, std::string_view via) {
  Cursor in(via);
  in.expect("NET/");
  const auto rest = in.rest();
  // The name ends at the last "/digits" before a flag or the end.
  std::size_t slash = std::string_view::npos;
  for (auto at = rest.find('/'); at != std::string_view::npos; at = rest.find('/', at + 1))
    if (at + 1 < rest.size() && is_digit(rest[at + 1])) slash = at;
  if (slash == std::string_view::npos || slash == 0 || slash > 64) return false;
  Cursor tail(rest.substr(slash + 1));
  NetSide side;
  side.device = tail.need<int>();
  if (tail.take("(")) {
    side.proxy = tail.need<int>();
    tail.expect(")");
  }
  if (!tail.ok()) return false;
  side.gdr = tail.rest().find("/GDRDMA") != std::string_view::npos ? 1 : 0;
  if (side.gdr == 0 && !tail.at_end() && std::string_view("/GDRDMA").starts_with(tail.rest()))
    side.gdr = -1;  // cut
  if (state.unterminated && side.gdr == 0 && rest.substr(0, slash) != "Socket") side.gdr = -1;
  side.at = state.at;
  const int transport = state.transports.id(via.substr(0, 4 + slash));
  if (state.net.size() >= kMaxEdges) {
    ++state.log.cut;
    return true;
  }
  const EdgeKey key{static_cast<std::uint32_t>(&scope - state.scopes.data()),
                    static_cast<std::uint32_t>(c.from.rank),
                    static_cast<std::uint32_t>(c.to.rank),
                    static_cast<std::uint16_t>(transport),
                    static_cast<std::uint16_t>(c.channel),
                    static_cast<std::uint16_t>(c.index)};
  auto& connection = state.net[key];
  if (c.receive && !connection.received) connection.receive = side, connection.received = true;
  if (!c.receive && !connection.sent) connection.send = side, connection.sent = true;
  return true;
}

// The transport as one word: "P2P/CUMEM/read", "SHM/direct/direct"; the GPU between of an indirect path is
// left out.
std::string_view local_transport(std::string_view via) {
  if (via == "direct shared memory") return "SHM";
  if (const auto at = via.find("/indirect/"); at != std::string_view::npos) return via.substr(0, at + 9);
  return via;
}

// Names that NCCL 2.2 to 2.30 and RCCL print.
constexpr std::string_view kTransports[] = {
    "P2P/IPC",           "P2P/CUMEM", "P2P/MNNVL",  "P2P/direct pointer", "P2P/indirect",
    "P2P/common device", "SHM",       "SHM/direct", "SHM/direct/direct",  "SHM/CE/direct",
    "SHM/direct/CE",     "SHM/CE/CE", "SHM/CE"};

bool is_whole_transport(std::string_view via) {
  for (const auto name : kTransports) {
    if (via == name) return true;
    const auto tail = via.starts_with(name) ? via.substr(name.size()) : std::string_view{};
    if (tail == "/read" || tail == "/CE" || tail == "/read/CE" || tail == "/write") return true;
  }
  return false;
}

// "P2P/CU": the rest of the line is lost. A name that no version printed so far may be new.
bool is_cut_transport(std::string_view via) {
  if (is_whole_transport(via)) return false;
  if (via.ends_with('/') || via == "P2P") return true;
  for (const auto name : kTransports) {
    if (name.starts_with(via)) return true;
    const auto tail = via.starts_with(name) ? via.substr(name.size()) : std::string_view{};
    if (!tail.empty() &&
        (std::string_view("/read").starts_with(tail) || std::string_view("/write").starts_with(tail)))
      return true;
  }
  return false;
}

bool local_connection(State& state, Scope& scope, const Connection& c, std::string_view via) {
  via = local_transport(via);
  const bool known = via.starts_with("P2P") || via.starts_with("SHM") || via.starts_with("NVLS") ||
                     via.starts_with("COLLNET");
  if (!known || is_cut_transport(via) || (state.unterminated && !is_whole_transport(via)) ||
      via.size() > 64 || via.find_first_of("\n\r[]<>:?*") != std::string_view::npos)
    return false;
  if (state.edges.size() >= kMaxEdges) {
    ++state.log.cut;
    return true;
  }
  const EdgeKey key{static_cast<std::uint32_t>(&scope - state.scopes.data()),
                    static_cast<std::uint32_t>(c.from.rank),
                    static_cast<std::uint32_t>(c.to.rank),
                    static_cast<std::uint16_t>(state.transports.id(via)),
                    0,
                    0};
  auto& edge = state.edges[key];
  if (edge.at.line == 0) edge.at = state.at;
  edge.channels.add(c.channel);
  return true;
}

bool connect(State& state, const Connection& c, std::string_view via) {
  if (!good_rank(c.from.rank) || !good_rank(c.to.rank) || !good_channel(c.channel) || via.empty())
    return false;
  auto* scope = scope_here(state, false);
  if (scope == nullptr) return true;
  const int me = c.receive ? c.to.rank : c.from.rank;
  if (scope->me < 0 && scope->site >= 0) scope->me = me;
  remember_brackets(state, *scope, c.from, c.to);
  via = trim(without_rccl_tail(via));
  return via.starts_with("NET/") ? net_connection(state, *scope, c, via)
                                 : local_connection(state, *scope, c, via);
}

// "    0   7   6 …": a whole ring; NCCL cuts it ("..." or silently after 20 ranks).
bool whole_ring(State& state, int channel, int of, Cursor in) {
  Scope::Ring ring{channel, false, {}};
  for (in.blanks(); !in.at_end(); in.blanks()) {
    if (in.take("...")) {
      // The number before the dots may have lost digits.
      if (!ring.ranks.empty()) ring.ranks.pop_back();
      ring.cut = true;
      break;
    }
    const int rank = in.need<int>();
    if (!in.ok() || !good_rank(rank) || ring.ranks.size() >= static_cast<std::size_t>(kMaxRank)) {
      ring.cut = true;
      break;
    }
    if (in.rest().starts_with("..."))
      ring.cut = true;
    else
      ring.ranks.push_back(rank);
    if (!in.at_end() && in.rest().front() != ' ' && !in.rest().starts_with("...")) return false;
  }
  if (state.unterminated) ring.cut = true;
  if (!good_channel(channel) || (ring.ranks.empty() && !ring.cut)) return false;
  auto* scope = scope_here(state, true);
  if (scope == nullptr) return true;
  if (of > 0 && of <= kMaxChannel) scope->ring_channels = std::max(scope->ring_channels, of);
  if (scope->rings.size() < static_cast<std::size_t>(kMaxChannel)) scope->rings.push_back(std::move(ring));
  return true;
}

// Behind the head: "0[1a000] -> 1[1c000] [send] via …".
bool connection_tail(State& state, int channel, int index, Cursor in) {
  Connection c;
  c.channel = channel;
  c.index = index;
  c.from = read_end(in);
  in.blanks();
  if (!in.take("->")) return false;
  in.blanks();
  c.to = read_end(in);
  in.blanks();
  c.receive = in.take("[receive]");
  c.send = !c.receive && in.take("[send]");
  in.blanks();
  if (!in.ok() || !in.take("via ")) return false;
  return connect(state, c, in.rest());
}

}  // namespace

bool channel_line(State& state, std::string_view text) {
  Cursor in(text);
  in.expect("Channel ");
  const int channel = in.need<int>();
  int second = 0;
  const bool slash = in.take("/");
  if (slash) second = in.need<int>();
  in.blanks();
  const bool colon = in.take(":");  // RCCL leaves it out where a communicator has one rank
  if (!in.ok() || (!colon && !slash)) return false;
  in.blanks();
  if (in.rest().find("->") == std::string_view::npos)
    return whole_ring(state, channel, slash ? second : 0, in);
  if (!colon) return false;
  return connection_tail(state, channel, second, in);
}

// "Ring 00 : 3 -> 0 -> 1" (2.5+, GRAPH), "Ring 00 : 0[1a] -> 1[1b] via P2P/IPC" (2.2-2.5), "Ring 00 :    0 1"
// (2.3).
bool ring_line(State& state, std::string_view text) {
  Cursor in(text);
  in.expect("Ring ");
  const int channel = in.need<int>();
  in.blanks();
  if (!in.expect(":").ok()) return false;
  in.blanks();
  if (in.rest().find("->") == std::string_view::npos) return whole_ring(state, channel, 0, in);
  if (in.rest().find(" via ") != std::string_view::npos) return connection_tail(state, channel, 0, in);
  const int prev = in.need<int>();
  const int me = in.expect(" -> ").need<int>();
  const int next = in.expect(" -> ").need<int>();
  if (!in.ok() || !good_rank(prev) || !good_rank(me) || !good_rank(next) || !good_channel(channel))
    return false;
  if (!in.at_end() && in.rest().front() != ' ') return false;
  auto* scope = scope_here(state, true);
  if (scope == nullptr) return true;
  if (scope->site >= 0) scope->me = me;
  if (scope->links.size() < 2 * static_cast<std::size_t>(kMaxChannel))
    scope->links.push_back({channel, prev, me, next});
  return true;
}

namespace {

// "1/-1/-1": the ranks that are there.
bool read_downs(Cursor& in, Scope::Tree& tree) {
  tree.downs = 0;
  do {
    const int rank = in.need<int>();
    if (!in.ok() || rank >= kMaxRank) return false;
    if (rank >= 0 && tree.downs < static_cast<int>(tree.down.size()))
      tree.down[static_cast<std::size_t>(tree.downs++)] = rank;
  } while (in.take("/"));
  return true;
}

void keep_tree(State& state, const Scope::Tree& tree) {
  auto* scope = scope_here(state, true);
  if (scope == nullptr) return;
  if (scope->site >= 0) scope->me = tree.rank;
  for (const auto& known : scope->trees)
    if (known.channel == tree.channel && known.rank == tree.rank) return;
  if (scope->trees.size() < static_cast<std::size_t>(kMaxChannel)) scope->trees.push_back(tree);
}

bool good(const Scope::Tree& tree) {
  return good_rank(tree.rank) && good_channel(tree.channel) && tree.up < kMaxRank;
}

}  // namespace

// "Tree 0 : up -> me -> d0/d1/d2"
bool tree_line(State& state, std::string_view text) {
  Cursor in(text);
  Scope::Tree tree{};
  in.expect("Tree ");
  tree.channel = in.need<int>();
  in.blanks();
  in.expect(":").blanks();
  tree.up = in.need<int>();
  tree.rank = in.expect(" -> ").need<int>();
  in.expect(" -> ");
  if (!in.ok() || !read_downs(in, tree) || !good(tree) || !in.at_end()) return in.rest().starts_with(" comm");
  keep_tree(state, tree);
  return true;
}

namespace {

// One entry behind "[c] ": "d0/d1/d2->me->up" (2.5+; up to 2.7 followed by "|up->me->d0/d1/d2") or
// "up->me->d0/d1/d2" (2.4). False when it is cut: an entry must be followed by a blank or the message's end,
// and not end in half a number.
bool read_tree_entry(Cursor& in, Scope::Tree& tree) {
  Scope::Tree left{};
  if (!read_downs(in, left)) return false;
  const bool down_first = in.rest().starts_with("->");
  if (!down_first) return false;
  tree.rank = in.expect("->").need<int>();
  Scope::Tree right{};
  in.expect("->");
  const auto before = in.rest();
  if (!in.ok() || !read_downs(in, right)) return false;
  const auto slashes = before.substr(0, before.size() - in.rest().size()).find('/');
  if (slashes != std::string_view::npos) {  // 2.4: the children stand on the right
    tree.up = left.downs > 0 ? left.down[0] : -1;
    tree.down = right.down;
    tree.downs = right.downs;
  } else {
    tree.up = right.downs > 0 ? right.down[0] : -1;
    tree.down = left.down;
    tree.downs = left.downs;
  }
  return true;
}

}  // namespace

bool trees_line(State& state, std::string_view text) {
  Cursor in(without_rccl_tail(text));
  in.expect("Trees");
  // NCCL cuts the line at 1023 characters: then the last entry cannot be trusted.
  const bool cut = text.size() >= 1021 || text.ends_with("...");
  bool any = false;
  while (true) {
    in.blanks();
    Scope::Tree tree{};
    if (!in.take("[")) break;
    tree.channel = in.need<int>();
    in.expect("]").blanks();
    if (!in.ok() || !read_tree_entry(in, tree)) break;
    if (in.take("|")) in.word();  // the same once more, from the other side
    if (!in.at_end() && in.rest().front() != ' ') break;
    if ((cut && in.at_end()) || !good(tree)) break;
    keep_tree(state, tree);
    any = true;
  }
  if (!in.at_end() && any) ++state.log.cut;
  return any || text == "Trees";
}

// "CollNet 00/0 : 3 [send] via COLLNET/SHARP/0/GDRDMA"
bool collnet_line(State& state, std::string_view text) {
  Cursor in(text);
  in.word();
  in.blanks();
  Connection c;
  const auto channel = in.number<int>();
  if (!channel) return true;  // other CollNet remarks
  c.channel = *channel;
  if (in.take("/")) c.index = in.need<int>();
  in.blanks();
  if (!in.take(":")) return true;
  in.blanks();
  c.from.rank = in.need<int>();
  in.blanks();
  if (!in.take("[send]")) return true;
  in.blanks();
  if (!in.take("via ") || !in.ok()) return false;
  c.to = c.from;
  const auto via = trim(without_rccl_tail(in.rest()));
  const auto second = via.find('/', 8);
  return connect(state, c, via.substr(0, second));
}

}  // namespace topotune::parse::log
