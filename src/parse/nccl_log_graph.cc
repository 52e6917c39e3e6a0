#include <algorithm>

#include "base/text.h"
#include "parse/nccl_log_lines.h"
#include "parse/nccl_log_scan.h"

// GRAPH lines: the topology as NCCL sees it. One rank's print is kept, and the search results of the same
// rank.
namespace topotune::parse::log {
namespace {

constexpr std::size_t kMaxLinks = 4096;

bool takes_part(State& state) {
  if (state.graph_site < 0 && !state.graph_taken) {
    state.graph_site = state.site;
    if (const auto* site = state.here(); site != nullptr) state.log.graph.host = state.hosts[site->host];
  }
  return state.graph_site == state.site;
}

// "=== System : maxBw 48.0 totalBw 370.8 ===", up to 2.13 maxWidth and totalWidth.
bool system_line(State& state, std::string_view text) {
  if (state.log.graph.max_bw && takes_part(state))
    state.graph_taken = true;  // the same rank's next communicator
  if (state.log.graph.max_bw || !takes_part(state)) return true;
  for (const auto word : words(text)) {
    const auto number = parse_double(word);
    if (!number) continue;
    if (!state.log.graph.max_bw)
      state.log.graph.max_bw = number;
    else if (!state.log.graph.total_bw)
      state.log.graph.total_bw = number;
  }
  return true;
}

// "GPU/18000 (0)": name, and for GPUs the rank.
std::string node_name(std::string_view text) {
  return std::string(text.substr(0, std::min<std::size_t>(text.find(' '), 64)));
}

std::optional<int> rank_of(std::string_view node) {
  if (!node.starts_with("GPU/")) return std::nullopt;
  const auto open = node.find('(');
  const auto close = node.find_first_of(")/", open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  return parse_int<int>(node.substr(open + 1, close - open - 1));
}

// "+ PCI[48.0] - GPU/18000 (0)": indented to where the name of the node above begins.
bool link_line(State& state, std::string_view text, std::size_t indent) {
  Cursor in(text);
  in.expect("+ ");
  const auto type = in.until("[");
  in.expect("[").blanks();
  const auto bw = parse_double(in.until("]"));
  in.expect("] - ");
  if (!in.ok() || !bw || type.size() > 8) return false;
  if (state.graph_taken || !takes_part(state)) return true;
  auto& stack = state.graph_stack;
  while (!stack.empty() && stack.back().first >= static_cast<int>(indent)) stack.pop_back();
  const auto from = stack.empty() ? std::string{} : stack.back().second;
  const auto to = node_name(in.rest());
  auto& links = state.log.graph.links;
  if (links.size() < kMaxLinks)
    links.push_back({from, std::string(type), to, *bw, rank_of(in.rest()), state.at});
  if (stack.size() < 64) stack.emplace_back(static_cast<int>(indent), to);
  return true;
}

// "GPU/60 :GPU/60 (0/5000.0/LOC) GPU/70 (2/370.8/NVL) …"
bool paths_line(State& state, std::string_view text) {
  Cursor in(text);
  const auto from = in.until(" ");
  if (!in.take(" :")) return false;
  if (state.graph_taken || !takes_part(state)) return true;
  auto& paths = state.log.graph.paths;
  while (!in.at_end() && paths.size() < kMaxLinks) {
    in.blanks();
    const auto to = in.until(" ");
    in.blanks();
    if (!in.take("(")) break;
    const auto hops = in.need<int>();
    in.expect("/");
    const auto bw = parse_double(in.until("/"));
    in.expect("/");
    const auto type = in.until(")");
    if (!in.expect(")").ok() || !bw || to.size() > 64 || type.size() > 16 || from.size() > 64) break;
    paths.push_back({std::string(from), std::string(to), std::string(type), hops, *bw});
  }
  return true;
}

}  // namespace

bool graph_line(State& state, std::string_view text) {
  if (text.starts_with("=== System")) return system_line(state, text);
  if (text.starts_with("=====")) return true;
  if (text.starts_with("+ ")) return link_line(state, text, 0);
  if (text.find(" :") != std::string_view::npos) return paths_line(state, text);
  if (text.starts_with("CPU/") && !state.graph_taken && takes_part(state))
    state.graph_stack = {{-1, node_name(text)}};
  return true;
}

// Indented links keep their blanks: the message is not trimmed for them.
bool graph_indented(State& state, std::string_view message) {
  const auto indent = message.find_first_not_of(' ');
  if (indent == std::string_view::npos) return false;
  return link_line(state, message.substr(indent), indent);
}

// "Pattern 4, crossNic 0, nChannels 4, bw 24.000000/24.000000, type NVL/PIX, sameChannels 0" ("speed" up
// to 2.13)
bool pattern_line(State& state, std::string_view text) {
  Cursor in(text);
  model::GraphPattern p;
  p.pattern = in.expect("Pattern ").need<int>();
  p.cross_nic = in.expect(", crossNic ").need<int>();
  p.channels = in.expect(", nChannels ").need<int>();
  if (!in.ok()) return false;
  if (!in.take(", bw ") && !in.take(", speed ")) return true;
  const auto intra = parse_double(in.until("/"));
  in.expect("/");
  const auto inter = parse_double(in.until(","));
  in.expect(", type ");
  const auto type = in.until(",");
  p.same_channels = in.rest().ends_with("sameChannels 1");
  if (!in.ok() || !intra || !inter || type.size() > 32) return false;
  p.bw_intra = *intra;
  p.bw_inter = *inter;
  const auto slash = type.find('/');
  p.type_intra = std::string(type.substr(0, slash));
  if (slash != std::string_view::npos) p.type_inter = std::string(type.substr(slash + 1));
  if (!state.graph_taken && takes_part(state) && state.log.graph.patterns.size() < 64)
    state.log.graph.patterns.push_back(p);
  return true;
}

}  // namespace topotune::parse::log
