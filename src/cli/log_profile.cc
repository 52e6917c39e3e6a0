#include "cli/log_profile.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "base/text.h"
#include "cli/bench_frame.h"
#include "cli/profile_reader.h"
#include "emit/nccl_log_json.h"
#include "measure/runner.h"
#include "measure/statistics.h"

namespace topotune::cli {

namespace {

using parse::NcclProfile;
using Json = nlohmann::ordered_json;

// Equal calls of one rank.
struct Group {
  std::string op, datatype, algorithm, protocol;
  int channels = 0;
  std::uint64_t bytes = 0, calls = 0;  // bytes: of one rank's part
  std::vector<double> host, gpu;       // seconds
};

std::vector<Group> groups_of(const NcclProfile& p) {
  std::map<std::tuple<std::string, std::uint64_t, std::string, std::string, std::string, int>, Group> groups;
  for (const auto& e : p.kept) {
    const auto algorithm = e.algorithm.value_or("-"), protocol = e.protocol.value_or("-");
    auto& g = groups[{e.op, e.bytes, e.datatype, algorithm, protocol, e.channels}];
    g.op = e.op.empty() ? "unknown" : e.op, g.datatype = e.datatype.empty() ? "unknown" : e.datatype;
    g.algorithm = algorithm, g.protocol = protocol, g.channels = e.channels, g.bytes = e.bytes;
    ++g.calls;
    if (e.host_seconds) g.host.push_back(*e.host_seconds);
    if (e.gpu_seconds) g.gpu.push_back(*e.gpu_seconds);
  }
  std::vector<Group> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

std::string microseconds(const std::vector<double>& seconds) {
  const auto median = measure::median_of(seconds);
  return median ? fmt::format("{:.2f}", 1e6 * *median) : "-";
}

std::string title_of(const NcclProfile& p) {
  return fmt::format("communicator {}{}, rank {} of {}, pid {} on {}{}",
                     p.communicator ? fmt::format("0x{:x}", *p.communicator) : "without an id",
                     p.name.empty() ? "" : " '" + p.name + "'",
                     p.rank ? fmt::format("{}", *p.rank) : "unknown",
                     p.ranks ? fmt::format("{}", *p.ranks) : "an unknown number", p.pid,
                     p.host.empty() ? "an unknown host" : p.host, p.closed ? "" : " (not finished)");
}

std::string text_of(const NcclProfile& p) {
  std::string out = title_of(p) + "\n";
  std::uint64_t bytes = 0;
  for (const auto& t : p.totals) bytes += t.bytes;
  out +=
      fmt::format("  {} events, {} bytes in all; the newest {} by kind:\n", p.events, bytes, p.kept.size());
  out += fmt::format("  {:<14} {:>12} {:<12} {:<14} {:>8} {:>8} {:>12} {:>12}\n", "operation", "bytes",
                     "type", "choice", "channels", "calls", "host us", "GPU us");
  for (const auto& g : groups_of(p))
    out += fmt::format("  {:<14} {:>12} {:<12} {:<14} {:>8} {:>8} {:>12} {:>12}\n", g.op, g.bytes, g.datatype,
                       g.algorithm + "/" + g.protocol, g.channels, g.calls, microseconds(g.host),
                       microseconds(g.gpu));
  if (p.foreign > 0)
    out += fmt::format("  {} bytes were sent for ranks of other processes (PXN)\n", p.foreign);
  return out;
}

std::string matrix_text(const model::NcclLog& log) {
  if (!log.traffic_basis) return "who sent how much to whom is not known (no network steps were recorded)\n";
  std::string out =
      fmt::format("bytes from rank to rank, {}\n", *log.traffic_basis == "measured"
                                                       ? "measured on the network; within a node not known"
                                                       : "modelled: both ranks are on one node");
  for (const auto& [pair, bytes] : log.traffic)
    out += fmt::format("  {} -> {}: {}\n", pair.first, pair.second, bytes);
  return out;
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json json_of(const NcclProfile& p) {
  Json out;
  out["rank"] = p.rank ? Json(*p.rank) : Json(nullptr);
  out["communicator"] = p.communicator ? Json(fmt::format("0x{:x}", *p.communicator)) : Json(nullptr);
  out["name"] = p.name.empty() ? Json(nullptr) : Json(p.name);
  out["events"] = p.events, out["kept"] = p.kept.size(), out["finished"] = p.closed;
  out["totals"] = Json::array();
  for (const auto& t : p.totals)
    out["totals"].push_back({{"op", t.op},
                             {"from_bytes", std::uint64_t{1} << t.log2_bytes},
                             {"calls", t.calls},
                             {"bytes", t.bytes}});
  out["groups"] = Json::array();
  for (const auto& g : groups_of(p))
    out["groups"].push_back({{"op", g.op},
                             {"rank_bytes", g.bytes},
                             {"datatype", g.datatype},
                             {"algorithm", g.algorithm == "-" ? Json(nullptr) : Json(g.algorithm)},
                             {"protocol", g.protocol == "-" ? Json(nullptr) : Json(g.protocol)},
                             {"channels", g.channels},
                             {"calls", g.calls},
                             {"host_seconds", or_null(measure::median_of(g.host))},
                             {"gpu_seconds", or_null(measure::median_of(g.gpu))},
                             {"gpu_samples", g.gpu.size()}});
  return out;
}

}  // namespace

namespace {

std::string name_of(const std::vector<std::string>& files) {
  return files.size() == 1 ? files[0] : fmt::format("{} and {} more", files[0], files.size() - 1);
}

std::string document_of(const std::vector<NcclProfile>& profiles, const std::vector<std::string>& files,
                        bool matrix, bool json) {
  auto log = parse::log_of(profiles);
  log.files = files;
  std::string out;
  if (!json) {
    if (!matrix)
      for (const auto& p : profiles) out += text_of(p);
    return out + matrix_text(log);
  }
  auto document = Json::parse(emit::nccl_log_json(log, {}, name_of(files)));
  document["profile"] = Json::array();
  for (const auto& p : profiles) document["profile"].push_back(json_of(p));
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Whether nothing will be added any more: the communicator was closed, or its process is gone from this
// machine.
bool ended(const NcclProfile& p) {
  char host[64] = {};
  ::gethostname(host, sizeof host - 1);
  const bool here = p.host == host && p.pid > 1 && p.pid < 1u << 30;
  return p.closed || (here && ::kill(static_cast<pid_t>(p.pid), 0) != 0 && errno == ESRCH);
}

std::uint64_t most_events(const std::vector<NcclProfile>& profiles) {
  std::uint64_t most = 0;
  for (const auto& p : profiles) most = std::max(most, p.events);
  return most;
}

}  // namespace

int explain_profiles(const std::vector<std::string>& files, bool matrix, const Globals& globals) {
  const auto profiles = read_profiles(files);
  if (!profiles) return report(profiles.error());
  return write_result(globals, document_of(*profiles, files, matrix, globals.json));
}

Result<Every> every_from(const std::string& text) {
  const bool seconds = !text.empty() && text.back() == 's';
  const auto number = parse_int<int>(seconds ? text.substr(0, text.size() - 1) : text);
  if (!number || *number < 1)
    return tl::unexpected(
        Error{Errc::usage,
              fmt::format("--every '{}' is no time or number of collectives", printable(text)),
              {},
              {},
              {},
              "10s: each ten seconds; 500: each 500 collectives"});
  return seconds ? Every{static_cast<double>(*number), 0} : Every{0, static_cast<std::uint64_t>(*number)};
}

int follow_profiles(const std::vector<std::string>& files, const Every& every, bool matrix,
                    const Globals& globals) {
  end_in_order_on_interrupt();
  auto before = read_profiles(files);
  if (!before) return report(before.error());
  const double began = measure::monotonic_seconds();
  for (double last = began;;) {
    const double look = every.seconds > 0 ? std::min(0.2, every.seconds) : 0.05;
    std::this_thread::sleep_for(std::chrono::duration<double>(look));
    auto now = read_profiles(files);
    if (!now) return report(now.error());
    const double at = measure::monotonic_seconds();
    const bool over = interrupted() || std::ranges::all_of(*now, ended);
    const bool due = every.seconds > 0 ? at - last >= every.seconds
                                       : most_events(*now) >= most_events(*before) + every.calls;
    if (!over && !due) continue;
    std::vector<NcclProfile> part;
    for (std::size_t i = 0; i < now->size(); ++i) part.push_back(parse::since((*before)[i], (*now)[i]));
    if (due || most_events(part) > 0) {
      const auto head =
          globals.json ? std::string() : fmt::format("{:.1f} s to {:.1f} s\n", last - began, at - began);
      if (const int status = write_result(globals, head + document_of(part, files, matrix, globals.json));
          status != kOk)
        return status;
      std::fflush(stdout);
    }
    if (over) return interrupted() ? kInterrupted : kOk;
    before = std::move(now), last = at;
  }
}

}  // namespace topotune::cli
