#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "checks/log_rules.h"
#include "checks/log_tuner.h"

// Inside a host: NVLink, peer access, shared memory, NVLS, and NCCL's view of the machine.
namespace topotune::checks {
namespace {

using namespace model;
using Evidence = model::Evidence;  // not what rules of a machine look at
using Findings = std::vector<Finding>;

bool is_fast(const LogView::Link& link) {
  return link.type == PathType::nvl || link.type == PathType::xgmi || link.type == PathType::pix ||
         link.type == PathType::pxb;
}

std::string link_name(const LogView::Link& link) {
  if (link.type == PathType::nvl && link.nvlinks) return fmt::format("NV{}", *link.nvlinks);
  return link.type ? (link.type == PathType::nvl ? "NVLink" : name_of(*link.type)) : "an unknown path";
}

bool in_host_memory(const LogEdge& e) { return e.transport.starts_with("SHM"); }

// Pairs of one host that did not get peer access, with what the machine has between them.
struct Lost {
  const LogEdge* edge;
  LogView::Link link;
};

std::vector<Lost> lost_pairs(const LogView& v) {
  std::vector<Lost> lost;
  for (const auto& e : v.log.edges) {
    if (e.communicator || e.transport.starts_with("P2P")) continue;
    if (!in_host_memory(e) && v.same_host(e) != true) continue;
    if (const auto link = v.link(e.src, e.dst); link && is_fast(*link)) lost.push_back({&e, *link});
  }
  return lost;
}

bool any_shm(const LogView& v) { return std::ranges::any_of(v.log.edges, in_host_memory); }

std::string lost_text(const std::vector<Lost>& lost) {
  int channels = 0;
  for (const auto& one : lost) channels += one.edge->channels;
  return fmt::format("{} exists between these GPUs ({}), and {} channel{} went over {}",
                     link_name(lost[0].link), lost[0].link.why, channels, channels == 1 ? "" : "s",
                     lost[0].edge->transport.substr(0, lost[0].edge->transport.find('/')));
}

const LogSetting* p2p_switch(const LogView& v) {
  const auto* s = v.setting("NCCL_P2P_DISABLE");
  if (s != nullptr && s->value == "1") return s;
  s = v.setting("NCCL_P2P_LEVEL");
  return s != nullptr && (s->value == "LOC" || s->value == "0") ? s : nullptr;
}

// "26.9 GB/s with NCCL_P2P_DISABLE=1, 329.5 without it": where a run without it was
// measured.
std::string cost_of(const LogView& v, const std::string& setting) {
  for (const auto& c : v.log.costs) {
    if (std::ranges::find(c.settings, setting) == c.settings.end()) continue;
    const auto names = fmt::format("{}", fmt::join(c.settings, " and "));
    const auto* them = c.settings.size() == 1 ? "it" : "them";
    if (c.with_gbytes_per_s && c.without_gbytes_per_s)
      return fmt::format("measured: {:.1f} GB/s with {}, {:.1f} without {} (bus bandwidth{})",
                         *c.with_gbytes_per_s, names, *c.without_gbytes_per_s, them,
                         c.bytes == 0 ? "" : fmt::format(" at {} bytes", c.bytes));
    if (c.with_seconds && c.without_seconds)
      return fmt::format("measured: the command took {:.1f} s with {}, {:.1f} s without {}", *c.with_seconds,
                         names, *c.without_seconds, them);
  }
  return "";
}

// What a benchmark measured beside what NCCL's own graph gives the links.
std::string measured_beside_links(const LogView& v) {
  const auto& measured = v.log.peak_bus_gbytes_per_s;
  double link = 0;
  for (const auto& l : v.log.graph.links)
    if (l.type == "NVL") link = std::max(link, l.gbytes_per_s);
  if (!measured) return "";
  if (link <= 0) return fmt::format("; measured here: {:.1f} GB/s bus bandwidth at best", *measured);
  return fmt::format(
      "; measured here: {:.1f} GB/s bus bandwidth at best, where NVLink has {:.1f} GB/s ({:.0f} %)",
      *measured, link, 100 * *measured / link);
}

// What a switch costs: measured, else as the rule about the switch says.
void put_cost(const LogView& v, const LogSetting& s, std::string_view rule, Finding& f) {
  if (auto cost = cost_of(v, fmt::format("{}={}", s.name, s.value)); !cost.empty())
    f.impact = std::move(cost);
  else if (const auto* text = find_rule(rule); text != nullptr)
    f.impact = std::string(text->impact) + (rule == "NCCL02" ? measured_beside_links(v) : "");
}

Outcome shared_memory(const LogView& v) {
  if (v.log.edges.empty()) return NotEvaluated{"no connection line"};
  if (!any_shm(v)) return Clean{};
  const auto lost = lost_pairs(v);
  std::vector<Evidence> evidence;
  for (const auto& one : lost)
    if (evidence.size() < 6) evidence.push_back(v.evidence(*one.edge));
  for (const auto* n : v.notes(NoteKind::p2p_refused))
    if (evidence.size() < 8) evidence.push_back(v.evidence(*n));
  if (const auto* s = p2p_switch(v)) evidence.push_back(v.evidence(*s));
  if (!lost.empty()) {
    auto f = log_finding(v, "LOG05", fmt::format("{}-{}", lost[0].edge->src, lost[0].edge->dst), "via P2P/…",
                         lost_text(lost), evidence, lost[0].edge->at);
    if (const auto* s = p2p_switch(v)) {
      f.remedy = "remove " + s->name;
      f.because.emplace_back("LOG06");
      put_cost(v, *s, "LOG05", f);
    }
    return Findings{f};
  }
  const auto edge = std::ranges::find_if(v.log.edges, in_host_memory);
  const auto link = v.link(edge->src, edge->dst);
  if (!link && v.geforce() != true && v.notes(NoteKind::p2p_refused).empty())
    return NotEvaluated{"what connects the GPUs is not known"};
  auto f =
      log_finding(v, "LOG05", fmt::format("{}-{}", edge->src, edge->dst), "NCCL's own choice for such a pair",
                  fmt::format("{} -> {} via {}{}", edge->src, edge->dst, edge->transport,
                              link                  ? " over " + link_name(*link)
                              : v.geforce() == true ? ": GeForce cards have no peer access"
                                                    : ""),
                  evidence, edge->at);
  f.severity = Severity::info;
  return Findings{f};
}

Finding switch_finding(const LogView& v, const LogSetting& s, std::string observed,
                       std::vector<Evidence> more, Severity severity) {
  std::vector<Evidence> evidence{v.evidence(s)};
  for (auto& one : more) evidence.push_back(std::move(one));
  auto f = log_finding(v, "LOG06", s.name, "unset", std::move(observed), std::move(evidence), s.at);
  f.severity = severity;
  f.action = "unset-" + s.name;
  return f;
}

void judge_p2p(const LogView& v, Findings& found) {
  const auto* s = p2p_switch(v);
  if (s == nullptr) return;
  const auto setting = fmt::format("{}={}", s->name, s->value);
  const auto lost = lost_pairs(v);
  std::vector<Evidence> evidence;
  for (const auto& one : lost)
    if (evidence.size() < 4) evidence.push_back(v.evidence(*one.edge));
  const bool still_p2p =
      std::ranges::any_of(v.log.edges, [](const LogEdge& e) { return e.transport.starts_with("P2P"); });
  if (!lost.empty()) {
    found.push_back(
        switch_finding(v, *s, fmt::format("{}: {}", setting, lost_text(lost)), evidence, Severity::error));
  } else if (v.geforce() == true || v.log.main_ranks == 1)
    found.push_back(switch_finding(v, *s, setting + " changes nothing here: no peer access is possible", {},
                                   Severity::info));
  else if (!still_p2p)
    found.push_back(switch_finding(
        v, *s, setting + " turns peer access off, NVLink included; what connects the GPUs is not in the log",
        {}, Severity::warn));
  else
    found.push_back(switch_finding(
        v, *s, setting + ", yet P2P connections are in the log (of another process?)", {}, Severity::warn));
  put_cost(v, *s, "NCCL02", found.back());
}

Outcome switches(const LogView& v) {
  Findings found;
  judge_p2p(v, found);
  if (const auto* s = v.setting("NCCL_SHM_DISABLE"); s != nullptr && s->value == "1") {
    std::vector<Evidence> evidence;
    for (const auto& e : v.log.edges)
      if (e.transport.starts_with("NET/") && v.same_host(e) == true && evidence.size() < 4)
        evidence.push_back(v.evidence(e));
    found.push_back(switch_finding(
        v, *s, "NCCL_SHM_DISABLE=1: GPUs of one host without peer access talk over the network", evidence,
        Severity::warn));
    put_cost(v, *s, "NCCL24", found.back());
  }
  if (const auto* s = v.setting("NCCL_NVLS_ENABLE"); s != nullptr && s->value == "0") {
    const bool useless = v.hopper_or_newer() == false;
    found.push_back(switch_finding(v, *s,
                                   useless ? "NCCL_NVLS_ENABLE=0 changes nothing on these GPUs"
                                           : "NCCL_NVLS_ENABLE=0: NVLink SHARP is off",
                                   {}, useless ? Severity::info : Severity::warn));
    put_cost(v, *s, "NCCL24", found.back());
  }
  if (found.empty()) return Clean{};
  return found;
}

Outcome simple_order(const LogView& v) {
  const auto* p = v.problem({"falling back to simple order"});
  const auto* n = v.log.find(NoteKind::simple_order);
  if (p == nullptr && n == nullptr)
    return Clean{"absence proves nothing since 2.27 without the GRAPH subsystem"};
  return Findings{log_finding(v, "LOG15", "search", "a path for every pattern",
                              "NCCL found no path and uses a simple order of the GPUs",
                              {p != nullptr ? v.evidence(*p) : v.evidence(*n)},
                              p != nullptr ? p->at : n->at)};
}

// From 2.30 on NCCL reads a link's current speed, which idle GPUs lower.
bool reads_current_speed(const LogView& v) {
  if (!v.log.version) return false;
  const auto parts = split(*v.log.version, '.');
  const auto major = parts.empty() ? std::nullopt : parse_int<int>(parts[0]);
  const auto minor = parts.size() < 2 ? std::nullopt : parse_int<int>(parts[1]);
  return major && minor && (*major > 2 || (*major == 2 && *minor >= 30));
}

// The PCI link that leads to each node of NCCL's printed tree.
Outcome slow_pci(const LogView& v) {
  constexpr double kSlow = 3.0;  // GB/s: below PCIe Gen3 x4
  Findings found;
  for (const auto* n : v.notes(NoteKind::link_speed_unknown))
    found.push_back(
        log_finding(v, "LOG16", "PCIe", "a link speed that NCCL knows", n->text, {v.evidence(*n)}, n->at));
  std::map<std::string, const GraphLink*> above;
  for (const auto& l : v.log.graph.links)
    if (l.type == "PCI") above.try_emplace(l.to, &l);
  std::set<const GraphLink*> told;
  for (const auto& l : v.log.graph.links) {
    if (!l.to.starts_with("GPU/") || l.type != "PCI") continue;
    const auto* at = &l;
    for (int depth = 0; depth < 16 && at != nullptr; ++depth) {
      if (at->gbytes_per_s > 0 && at->gbytes_per_s < kSlow && told.insert(at).second)
        found.push_back(log_finding(
            v, "LOG16", at->to, "at least 3 GB/s",
            fmt::format("PCI[{:.1f}] GB/s above {}", at->gbytes_per_s, l.to),
            {{v.place(at->at), fmt::format("+ PCI[{:.1f}] - {}", at->gbytes_per_s, at->to)}}, at->at));
      const auto next = above.find(at->from);
      at = next == above.end() ? nullptr : next->second;
    }
  }
  if (reads_current_speed(v)) {
    for (auto& f : found) {
      if (!f.observed.starts_with("PCI[")) continue;
      f.observed += "; this version reads the current speed, which idle GPUs lower: read it again under load";
      f.severity = Severity::info;
    }
  }
  if (v.log.graph.links.empty() && found.empty()) return NotEvaluated{"no GRAPH lines"};
  if (found.empty()) return Clean{};
  return found;
}

Outcome no_multicast(const LogView& v) {
  const auto* n = v.log.find(NoteKind::nvls_unavailable);
  if (n == nullptr) return Clean{};
  if (v.hopper_or_newer() != true) return Clean{"the GPUs are not known to be Hopper or newer"};
  if (!v.any_nvlink() || v.log.main_ranks == 1) return Clean{"no NVSwitch is known"};
  return Findings{log_finding(v, "NVL14", n->gpu ? fmt::format("GPU{}", *n->gpu) : "GPU",
                              "NVLS multicast is available", n->text, {v.evidence(*n)}, n->at)};
}

Outcome one_channel(const LogView& v) {
  const auto* n = v.log.find(NoteKind::one_channel);
  if (n == nullptr) return Clean{};
  for (const auto* plugin : v.notes(NoteKind::plugin_loaded))
    if (plugin->subject == "TUNER" || icontains(plugin->text, "tuner"))
      return Findings{log_finding(v, "NCCL32", "tuner plugin", "channels as NCCL chooses",
                                  "one channel, and a tuner plugin is loaded",
                                  {v.evidence(*plugin), v.evidence(*n)}, n->at)};
  return Clean{};
}

Outcome one_channel_by_tuner(const LogView& v) {
  // The example tuner leaves one channel for every collective without a row in its table.
  std::uint64_t single = 0;
  std::uint64_t all = 0;
  for (const auto& t : v.log.tuning) {
    if (!t.last_channel || t.bytes < (1U << 20U)) continue;
    all += t.count;
    if (*t.last_channel == t.first_channel.value_or(0)) single += t.count;
  }
  const LogNote* tuner = nullptr;
  for (const auto* plugin : v.notes(NoteKind::plugin_loaded))
    if (plugin->subject == "TUNER" || icontains(plugin->text, "tuner")) tuner = plugin;
  if (tuner == nullptr || all == 0 || single * 2 < all) return one_channel(v);
  return Findings{
      log_finding(v, "NCCL32", "tuner plugin", "channels as NCCL chooses",
                  "collectives of 1 MiB and more run on one channel, and a tuner plugin is loaded",
                  {v.evidence(*tuner)}, tuner->at)};
}

Outcome topology_file(const LogView& v) {
  const auto* p = v.problem({"Could not open XML topology file"});
  const auto* n = v.log.find(NoteKind::topo_file_missing);
  if (p == nullptr && n == nullptr) return Clean{};
  // NCCL looks for a virtual machine's file by itself; only a file that somebody named is missed.
  const auto* s = v.setting("NCCL_TOPO_FILE");
  if (s == nullptr) return Clean{"no topology file was asked for"};
  return Findings{log_finding(v, "NCCL15", "NCCL_TOPO_FILE", s->value + " can be read",
                              "NCCL could not open it and detected the topology by itself",
                              {p != nullptr ? v.evidence(*p) : v.evidence(*n), v.evidence(*s)},
                              p != nullptr ? p->at : n->at)};
}

// The file that NCCL was given: by the variable, or found by itself ("Loading topology file ...").
std::optional<Evidence> topology_file_used(const LogView& v) {
  if (const auto* s = v.setting("NCCL_TOPO_FILE")) return v.evidence(*s);
  if (const auto* n = v.log.find(NoteKind::topo_file_loaded)) return v.evidence(*n);
  return std::nullopt;
}

// NCCL's XML reader (src/graph/xml.cc) and the building of the graph from it give up: the job does not start.
Outcome topology_file_refused(const LogView& v) {
  const auto* p =
      v.problem({"XML Parse", "XML Mismatch", "XML Topology has wrong version", "XML parser is limited to",
                 "too many XML nodes", "Add NVLink error", "Add PCI Link error"});
  if (p == nullptr) return Clean{};
  std::vector<Evidence> evidence{v.evidence(*p)};
  if (auto used = topology_file_used(v)) evidence.push_back(std::move(*used));
  return Findings{log_finding(v, "TOPO01", "topology file", "a file that NCCL reads", p->text,
                              std::move(evidence), p->at)};
}

// "CPU/0-1", "CPU/1": the NUMA node above a GPU in NCCL's graph; -1 is printed as ffff...
std::optional<int> graph_node_of(const LogView& v, std::string_view gpu) {
  std::map<std::string_view, const GraphLink*> above;
  for (const auto& l : v.log.graph.links)
    if (l.type == "PCI") above.try_emplace(l.to, &l);
  std::string_view at = gpu;
  for (int depth = 0; depth < 16; ++depth) {
    if (at.starts_with("CPU/")) return parse_int<int>(at.substr(at.find_last_of("/-") + 1));
    const auto found = above.find(at);
    if (found == above.end()) return std::nullopt;
    at = found->second->from;
  }
  return std::nullopt;
}

// What NCCL's graph says otherwise than the machine about the place of each GPU.
std::vector<std::string> misplaced_gpus(const LogView& v) {
  std::vector<std::string> out;
  std::set<int> nodes;
  for (const auto& gpu : v.machine->topology.gpus)
    if (gpu.numa) nodes.insert(*gpu.numa);
  if (nodes.size() < 2) return out;
  for (const auto& l : v.log.graph.links) {
    if (!l.rank || !l.to.starts_with("GPU/")) continue;
    const auto* gpu = v.gpu_of(*l.rank);
    const auto node = graph_node_of(v, l.to);
    if (gpu != nullptr && gpu->numa && node && *node != *gpu->numa)
      out.push_back(fmt::format("{} hangs on CPU {} in NCCL's graph, on NUMA node {} of the machine", gpu->id,
                                *node, *gpu->numa));
  }
  return out;
}

// Pairs whose NVLink only one of both has.
std::vector<std::string> other_links(const LogView& v) {
  std::vector<std::string> out;
  std::set<int> in_graph;
  for (const auto& l : v.log.graph.links)
    if (l.rank && l.to.starts_with("GPU/")) in_graph.insert(*l.rank);
  for (const int a : in_graph)
    for (const int b : in_graph) {
      if (a >= b || out.size() >= 8) continue;
      const auto there = v.machine_link(a, b);
      const auto here = v.graph_link(a, b);
      const bool linked = here && here->type == PathType::nvl;
      if (!there || !here || there->type == PathType::xgmi) continue;
      if ((there->type == PathType::nvl) == linked) continue;
      out.push_back(fmt::format("ranks {} and {}: {} in NCCL's graph, {} on the machine", a, b,
                                linked ? "NVLink" : "no NVLink", link_name(*there)));
    }
  return out;
}

// A topology file is in use, and the graph that NCCL made of it is not the machine.
Outcome topology_file_differs(const LogView& v) {
  const auto used = topology_file_used(v);
  if (!used || v.log.find(NoteKind::topo_file_missing) != nullptr) return Clean{"no topology file is in use"};
  if (v.machine == nullptr) return NotEvaluated{"the machine that the file should describe: give --topology"};
  if (v.log.graph.links.empty())
    return NotEvaluated{"no GRAPH lines: what NCCL made of the file is not known"};
  auto differences = misplaced_gpus(v);
  for (auto& one : other_links(v)) differences.push_back(std::move(one));
  if (differences.empty()) return Clean{};
  std::vector<Evidence> evidence{*used};
  for (std::size_t n = 0; n < differences.size() && n < 8; ++n)
    evidence.push_back({v.place(v.log.graph.links[0].at), differences[n]});
  return Findings{log_finding(v, "TOPO03", "topology file", "the machine as it is", differences[0],
                              std::move(evidence), v.log.graph.links[0].at)};
}

// nccl-tests with one rank: nothing was communicated.
Outcome one_rank_benchmark(const LogView& v) {
  if (!v.log.benchmark) return Clean{"no benchmark in the log"};
  if (v.log.main_ranks == 0) return NotEvaluated{"number of ranks: not in the log"};
  if (v.log.main_ranks > 1) return Clean{};
  return Findings{log_finding(v, "BENCH01", "nccl-tests", "two ranks or more", "1 rank",
                              {{v.place({0, 0}), "nccl-tests with 1 rank"}}, std::nullopt)};
}

// Lines that look alarming and are not.
Outcome harmless(const LogView& v) {
  std::vector<Evidence> evidence;
  std::vector<std::string> what;
  const auto add = [&](NoteKind kind, const char* why) {
    const auto* n = v.log.find(kind);
    if (n == nullptr) return;
    evidence.push_back(v.evidence(*n));
    what.emplace_back(why);
  };
  const bool multicast_expected = v.hopper_or_newer() == true && v.any_nvlink();
  if (!multicast_expected) {
    add(NoteKind::nvls_unavailable, "no NVLS before Hopper or without NVSwitch is normal");
    add(NoteKind::no_nvls_channels, "0 nvls channels are normal without NVLS");
  }
  if (v.setting("NCCL_NET_PLUGIN") == nullptr && v.setting("NCCL_TUNER_PLUGIN") == nullptr)
    add(NoteKind::plugin_missing, "no plugin was asked for and none is needed");
  add(NoteKind::mlx5_symbols, "missing mlx5dv symbols switch newer features off only");
  add(NoteKind::affinity_empty, "an empty GPU affinity is normal in a virtual machine");
  for (const auto& p : v.log.problems) {
    if (p.harmless.empty()) continue;
    evidence.push_back(v.evidence(p));
    if (std::ranges::find(what, p.harmless) == what.end()) what.push_back(p.harmless);
  }
  if (evidence.empty()) return Clean{};
  return Findings{log_finding(v, "LOG23", "log", "nothing to do", fmt::format("{}", fmt::join(what, "; ")),
                              evidence, std::nullopt)};
}

// Where some ranks use the table and others do not they may hang; where none does only its gain is lost.
Outcome tuning_table(const LogView& v) {
  if (!wants_table(v.log)) return Clean{"no table of topotune was asked for"};
  const auto uses = table_uses(v.log, "");
  const auto any = [&](TableUse::State state) {
    return std::ranges::find(uses, state, &TableUse::state) != uses.end();
  };
  Findings found;
  for (const auto& use : uses) {
    if (use.state != TableUse::State::unused) continue;
    found.push_back(log_finding(v, "LOG24", "tuner plugin", "one table, in use by all ranks", use.text,
                                {{v.place(use.at), use.text}}, use.at));
    if (!use.differs) found.back().severity = Severity::warn;
  }
  if (!found.empty()) return found;
  if (any(TableUse::State::unknown)) return NotEvaluated{"the log does not show every rank's tuner plugin"};
  return Clean{};
}

constexpr LogRule kRules[] = {{"LOG05", shared_memory},
                              {"LOG06", switches},
                              {"LOG15", simple_order},
                              {"LOG16", slow_pci},
                              {"LOG23", harmless},
                              {"LOG24", tuning_table},
                              {"NVL14", no_multicast},
                              {"NCCL15", topology_file},
                              {"NCCL32", one_channel_by_tuner},
                              {"TOPO01", topology_file_refused},
                              {"TOPO03", topology_file_differs},
                              {"BENCH01", one_rank_benchmark}};

}  // namespace

std::span<const LogRule> log_local_rules() { return kRules; }

}  // namespace topotune::checks
