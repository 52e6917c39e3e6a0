#include "emit/nccl_log_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "emit/long_lists.h"

namespace topotune::emit {
namespace {

using Json = nlohmann::ordered_json;
using namespace model;

template <class T>
Json or_null(const std::optional<T>& value) {
  if constexpr (std::is_same_v<T, std::string>)
    return value ? Json(printable(*value)) : Json(nullptr);
  else
    return value ? Json(*value) : Json(nullptr);
}
Json text(const std::string& value) { return value.empty() ? Json(nullptr) : Json(printable(value)); }

Json texts(const std::vector<std::string>& list) {
  Json out = Json::array();
  for (const auto& one : list) out.push_back(printable(one));
  return out;
}

template <class List, class Of>
Json array_of(const List& list, Of of) {
  Json out = Json::array();
  for (const auto& one : list) out.push_back(of(one));
  return out;
}

// Where several files were read, a line's file is named.
void put_place(Json& out, const LogLine& at, const NcclLog& log) {
  out["line"] = at.line == 0 ? Json(nullptr) : Json(at.line);
  if (log.files.size() > 1 && static_cast<std::size_t>(at.file) < log.files.size())
    out["file"] = printable(log.files[static_cast<std::size_t>(at.file)]);
}

Json rank_json(const LogRank& r) {
  Json out{{"rank", r.rank},
           {"host", or_null(r.host)},
           {"pid", or_null(r.pid)},
           {"gpu", or_null(r.gpu)},
           {"bdf", or_null(r.bdf)}};
  if (r.nvml) out["nvml"] = *r.nvml;
  if (r.cpus) out["cpus"] = *r.cpus;
  if (r.gpu_name) out["gpu_name"] = printable(*r.gpu_name);
  if (r.communicator != 0) out["communicator"] = r.communicator;
  return out;
}

Json communicator_json(const LogCommunicator& c) {
  Json out{{"id", or_null(c.id)},
           {"nranks", or_null(c.nranks)},
           {"nnodes", or_null(c.nnodes)},
           {"channels", or_null(c.channels)}};
  if (c.p2p_channels) out["p2p_channels"] = *c.p2p_channels;
  if (c.nvls_channels) out["nvls_channels"] = *c.nvls_channels;
  if (c.collnet_channels) out["collnet_channels"] = *c.collnet_channels;
  out["ranks_seen"] = c.ranks_seen;
  if (c.parent) out["parent"] = *c.parent;
  if (c.mnnvl) out["mnnvl"] = true;
  if (c.init_seconds) out["init_seconds"] = *c.init_seconds;
  return out;
}

Json setting_json(const LogSetting& s, const NcclLog& log) {
  Json out{
      {"name", printable(s.name)}, {"value", printable(s.value)}, {"by", name_of(s.by)}, {"count", s.count}};
  put_place(out, s.at, log);
  return out;
}

Json net_json(const LogNet& net) {
  Json devices = Json::array();
  for (const auto& device : net.devices) devices.push_back(printable(device));
  return {{"used", or_null(net.used)},
          {"plugins", texts(net.plugins)},
          {"devices", devices},
          {"gdr", or_null(net.gdr)},
          {"bootstrap", texts(net.bootstrap)}};
}

// A text, most often a plain name, as JSON.
std::string quoted(const std::string& text) {
  if (std::ranges::all_of(text, [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }))
    return '"' + text + '"';
  return Json(printable(text)).dump();
}

std::string edges_json(const NcclLog& log) {
  ListWriter list;
  for (const auto& e : log.edges) {
    list.begin_object();
    list.field("src", e.src);
    list.field("dst", e.dst);
    list.field("transport", Json(printable(e.transport)).dump());
    list.field("channels", e.channels);
    list.field("gdr", e.gdr);
    list.field("device", e.device);
    if (e.transport.starts_with("NET/")) {
      list.field("peer_device", e.peer_device);
      if (e.gdr_send != e.gdr_receive) {
        list.field("gdr_send", e.gdr_send);
        list.field("gdr_receive", e.gdr_receive);
      }
      if (e.proxy_rank) list.field("proxy_rank", *e.proxy_rank);
    }
    if (e.communicator) list.field("communicator", *e.communicator);
    list.end_object();
  }
  return list.take();
}

std::string trees_json(const NcclLog& log) {
  ListWriter list;
  for (const auto& t : log.trees) {
    list.begin_object();
    list.field("channel", t.channel);
    list.field("rank", t.rank);
    list.field("up", t.up);
    list.numbers("down", t.down);
    if (t.communicator != 0) list.field("communicator", t.communicator);
    list.end_object();
  }
  return list.take();
}

using Pairs = decltype(NcclLog::traffic);

std::string traffic_json(const Pairs& pairs) {
  ListWriter list;
  for (const auto& [pair, bytes] : pairs) {
    list.begin_object();
    list.field("src", pair.first);
    list.field("dst", pair.second);
    list.field("bytes", static_cast<std::size_t>(bytes));
    list.end_object();
  }
  return list.take();
}

std::string tuning_json(const NcclLog& log) {
  ListWriter list;
  for (const auto& t : log.tuning) {
    list.begin_object();
    list.field("op", t.op ? quoted(*t.op) : "null");
    list.field("bytes", static_cast<std::size_t>(t.bytes));
    list.field("algorithm", quoted(t.algorithm));
    list.field("protocol", quoted(t.protocol));
    if (t.last_channel) list.field("channels", *t.last_channel - t.first_channel.value_or(0) + 1);
    if (t.microseconds && std::isfinite(*t.microseconds))
      list.field("model_seconds", Json(*t.microseconds * 1e-6).dump());
    list.field("count", static_cast<std::size_t>(t.count));
    list.end_object();
  }
  return list.take();
}

// Communicators of one size make one entry: a call is counted once in each.
std::string collectives_json(const NcclLog& log) {
  std::vector<LogCollective> sums;
  std::map<std::tuple<std::string, std::string, std::uint64_t, std::optional<std::uint64_t>>, std::size_t> at;
  for (const auto& c : log.collectives) {
    const auto [found, fresh] = at.try_emplace({c.op, c.datatype, c.count, c.bytes}, sums.size());
    if (fresh) {
      sums.push_back(c);
    } else {
      sums[found->second].calls += c.calls;
      sums[found->second].estimated = sums[found->second].estimated || c.estimated;
    }
  }
  ListWriter list;
  for (const auto& c : sums) {
    list.begin_object();
    list.field("op", quoted(c.op));
    list.field("datatype", quoted(c.datatype));
    // Of a size class without an event that tells its type.
    const bool counted = !c.estimated || c.datatype != "unknown";
    list.field("count", counted ? std::optional(static_cast<std::size_t>(c.count)) : std::nullopt);
    list.field("bytes", c.bytes);
    list.field("calls", static_cast<std::size_t>(c.calls));
    if (c.estimated) list.field("estimated", std::string_view("true"));
    list.end_object();
  }
  return list.take();
}

// `unknown`: pairs that are not listed are so, but for a rank and itself.
Json matrix_json(const std::optional<std::string>& basis, int n, const Pairs& pairs, bool unknown) {
  if (!basis || n < 1 || n > kDenseMatrix) return nullptr;
  const auto ranks = static_cast<std::size_t>(n);
  std::vector<std::vector<Json>> rows(ranks, std::vector<Json>(ranks, unknown ? Json(nullptr) : Json(0)));
  for (std::size_t i = 0; i < ranks; ++i) rows[i][i] = 0;
  for (const auto& [pair, bytes] : pairs)
    if (pair.first < n && pair.second < n)
      rows[static_cast<std::size_t>(pair.first)][static_cast<std::size_t>(pair.second)] = bytes;
  return rows;
}

// The matrices of a profile's communicators.
void put_traffics(Json& out, const NcclLog& log, Splices& long_lists) {
  if (log.traffics.empty()) return;
  out["matrix_communicator"] =
      log.traffic_shown ? Json(log.traffics[*log.traffic_shown].communicator) : Json(nullptr);
  out["matrices"] = array_of(log.traffics, [&](const LogTraffic& t) {
    const int n = log.communicators[static_cast<std::size_t>(t.communicator)].nranks.value_or(0);
    Json one{{"communicator", t.communicator},
             {"matrix", matrix_json(t.basis, n, t.bytes, t.partial)},
             {"basis", or_null(t.basis)},
             {"foreign_bytes", t.foreign}};
    if (!t.basis) one["why"] = t.why;
    if (n > kDenseMatrix && t.basis) one["traffic"] = long_lists.put(traffic_json(t.bytes));
    return one;
  });
}

Json problem_json(const LogProblem& p, const NcclLog& log) {
  Json out;
  put_place(out, p.at, log);
  out["count"] = p.count;
  out["rank"] = or_null(p.rank);
  out["host"] = or_null(p.host);
  out["text"] = printable(p.text);
  if (!p.source.empty()) out["source"] = printable(p.source);
  if (!p.time.empty()) out["time"] = printable(p.time);
  if (!p.unwound.empty()) out["unwound"] = texts(p.unwound);
  if (p.returned) out["returned"] = true;
  if (!p.harmless.empty()) out["harmless"] = p.harmless;
  return out;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json graph_json(const LogGraph& g) {
  if (!g.max_bw && g.patterns.empty() && g.links.empty()) return nullptr;
  Json out{{"host", text(g.host)},
           {"max_gbytes_per_s", g.max_bw ? number(*g.max_bw) : Json(nullptr)},
           {"total_gbytes_per_s", g.total_bw ? number(*g.total_bw) : Json(nullptr)}};
  out["patterns"] = array_of(g.patterns, [](const GraphPattern& p) {
    return Json{{"pattern", p.pattern},
                {"channels", p.channels},
                {"intra_gbytes_per_s", number(p.bw_intra)},
                {"inter_gbytes_per_s", number(p.bw_inter)},
                {"intra", printable(p.type_intra)},
                {"inter", printable(p.type_inter)}};
  });
  out["links"] = array_of(g.links, [](const GraphLink& l) {
    Json link{{"from", printable(l.from)},
              {"type", printable(l.type)},
              {"to", printable(l.to)},
              {"gbytes_per_s", number(l.gbytes_per_s)}};
    if (l.rank) link["rank"] = *l.rank;
    return link;
  });
  out["paths"] = array_of(g.paths, [](const GraphPath& p) {
    return Json{{"from", printable(p.from)},
                {"to", printable(p.to)},
                {"type", printable(p.type)},
                {"hops", p.hops},
                {"gbytes_per_s", number(p.gbytes_per_s)}};
  });
  return out;
}

Json finding_json(const Finding& f) {
  Json evidence = Json::array();
  for (const auto& e : f.evidence)
    evidence.push_back({{"source", printable(e.source)}, {"text", printable(e.text)}});
  Json out{{"rule", f.rule},
           {"severity", name_of(f.severity)},
           {"subject", printable(f.subject)},
           {"file", f.file ? text(*f.file) : Json(nullptr)},
           {"line", or_null(f.line)},
           {"title", f.title},
           {"evidence", evidence},
           {"expected", text(f.expected)},
           {"observed", text(f.observed)},
           {"impact", text(f.impact)},
           {"remedy", text(f.remedy)},
           {"action", text(f.action)},
           {"reference", text(f.reference)}};
  if (!f.because.empty()) out["because"] = f.because;
  return out;
}

Json step_json(const LogStep& s, const NcclLog& log) {
  Json out;
  put_place(out, s.at, log);
  out["time"] = text(s.time);
  out["communicator"] = s.communicator;
  out["op"] = printable(s.op);
  out["datatype"] = printable(s.datatype);
  out["count"] = s.count;
  out["times"] = s.times;
  return out;
}

Json cost_json(const LogCost& c) {
  return {{"settings", texts(c.settings)},
          {"bytes", c.bytes == 0 ? Json(nullptr) : Json(c.bytes)},
          {"with_bus_gbytes_per_s", or_null(c.with_gbytes_per_s)},
          {"without_bus_gbytes_per_s", or_null(c.without_gbytes_per_s)},
          {"with_seconds", or_null(c.with_seconds)},
          {"without_seconds", or_null(c.without_seconds)}};
}

Json measured_json(const NcclLog& log) {
  if (!log.peak_bus_gbytes_per_s && !log.bus_gbytes_per_s && !log.wall_seconds) return nullptr;
  const bool sized = log.peak_bus_gbytes_per_s && log.peak_bus_bytes > 0;
  Json out{{"best_bus_gbytes_per_s", or_null(log.peak_bus_gbytes_per_s)},
           {"best_bytes", sized ? Json(log.peak_bus_bytes) : Json(nullptr)},
           {"average_bus_gbytes_per_s", or_null(log.bus_gbytes_per_s)},
           {"seconds", or_null(log.wall_seconds)}};
  Json sizes = Json::array();
  for (const auto& [bytes, bus] : log.bus_by_size)
    sizes.push_back({{"bytes", bytes}, {"bus_gbytes_per_s", bus}});
  out["sizes"] = std::move(sizes);
  if (log.bus_sizes_left_out > 0) out["sizes_left_out"] = log.bus_sizes_left_out;
  if (!log.costs.empty()) out["costs"] = array_of(log.costs, cost_json);
  return out;
}

Json ras_json(const RasCount& r) {
  return {{"communicator", text(r.group)},
          {"op", text(r.op)},
          {"ranks", r.ranks},
          {"operation", or_null(r.operation)},
          {"named", r.named}};
}

Json rings_json(const NcclLog& log) {
  Json out = Json::array();
  for (const auto& ring : log.rings)
    if (ring.communicator == 0 || log.communicators.size() <= 1) out.push_back(ring.ranks);
  return out;
}

Json ring_channels_json(const NcclLog& log) {
  Json out = Json::array();
  for (const auto& ring : log.rings)
    if (ring.communicator == 0 || log.communicators.size() <= 1) out.push_back(ring.channels);
  return out;
}

}  // namespace

std::string nccl_log_json(const NcclLog& log, const Diagnosis& diagnosis, const std::string& name,
                          const LogJsonOptions& options) {
  Json out;
  Splices long_lists(options.one_line);
  out["schema"] = "topotune.nccl-log/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["source"] = {{"kind", log.kind}, {"name", printable(name)}};
  if (log.files.size() > 1) out["source"]["files"] = texts(log.files);
  out["library"] = or_null(log.library);
  out["version"] = or_null(log.version);
  out["cuda"] = or_null(log.cuda);
  if (log.version_suffix) out["version_suffix"] = printable(*log.version_suffix);
  if (log.hip) out["hip"] = printable(*log.hip);
  if (log.rocm) out["rocm"] = printable(*log.rocm);
  out["cuda_driver"] = or_null(log.cuda_driver);
  out["lines"] = log.lines;
  out["library_lines"] = log.library_lines;
  out["unrecognised"] = log.unrecognised;
  out["glued"] = log.glued;
  out["cut"] = log.cut;
  if (log.overlong > 0) out["overlong"] = log.overlong;
  if (!log.unrecognised_samples.empty()) out["unrecognised_samples"] = texts(log.unrecognised_samples);
  out["hosts"] = texts(log.hosts);
  out["ranks"] = array_of(log.ranks, rank_json);
  out["communicators"] = array_of(log.communicators, communicator_json);
  out["env"] = array_of(log.env, [&](const LogSetting& s) { return setting_json(s, log); });
  out["net"] = net_json(log.net);
  out["edges"] = long_lists.put(edges_json(log));
  out["transports"] = log.transports;
  out["rings"] = rings_json(log);
  out["ring_channels"] = ring_channels_json(log);
  out["trees"] = long_lists.put(trees_json(log));
  out["tuning"] = long_lists.put(tuning_json(log));
  out["collectives"] = long_lists.put(collectives_json(log));
  const bool partial = log.traffic_shown && log.traffics[*log.traffic_shown].partial;
  out["matrix"] = matrix_json(log.traffic_basis, log.main_ranks, log.traffic, partial);
  out["matrix_basis"] = or_null(log.traffic_basis);
  if (!log.traffic_without.empty()) out["matrix_without"] = log.traffic_without;
  if (log.main_ranks > kDenseMatrix && !log.traffic.empty())
    out["traffic"] = long_lists.put(traffic_json(log.traffic));
  put_traffics(out, log, long_lists);
  out["graph"] = graph_json(log.graph);
  if (!log.ras.empty()) out["ras"] = array_of(log.ras, ras_json);
  out["problems"] = array_of(log.problems, [&](const LogProblem& p) { return problem_json(p, log); });
  if (log.problems_left_out > 0) out["problems_left_out"] = log.problems_left_out;
  if (auto measured = measured_json(log); !measured.is_null()) out["measured"] = std::move(measured);
  if (options.timeline) {
    out["timeline"] = array_of(log.timeline, [&](const LogStep& s) { return step_json(s, log); });
    out["timeline_complete"] = log.timeline_complete;
  }
  out["verdict"] = name_of(verdict_of(diagnosis));
  out["findings"] = array_of(diagnosis.findings, finding_json);
  auto document =
      long_lists.fill(out.dump(options.one_line ? -1 : 1, ' ', false, Json::error_handler_t::replace));
  if (!options.more.empty()) document.insert(document.size() - 1, "," + options.more);
  return document + "\n";
}

}  // namespace topotune::emit
