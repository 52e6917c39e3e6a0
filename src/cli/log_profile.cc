#include "cli/log_profile.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/text.h"
#include "cli/bench_frame.h"
#include "cli/profile_reader.h"
#include "emit/nccl_log_json.h"
#include "measure/runner.h"
#include "measure/statistics.h"

namespace topotune::cli {

namespace {

using parse::NcclProfile;

// Equal calls of one rank.
struct Group {
  const parse::ProfileEvent* like = nullptr;
  std::uint64_t calls = 0;
  std::vector<double> host, gpu;  // seconds
};

std::vector<Group> groups_of(const NcclProfile& p) {
  std::vector<Group> out;
  for (const auto* e : parse::in_groups(p)) {
    if (out.empty() || !parse::same_group(*out.back().like, *e)) out.push_back({e, 0, {}, {}});
    auto& g = out.back();
    ++g.calls;
    if (e->host_seconds) g.host.push_back(*e->host_seconds);
    if (e->gpu_seconds) g.gpu.push_back(*e->gpu_seconds);
  }
  return out;
}

std::string_view or_else(std::string_view text, std::string_view other) {
  return text.empty() ? other : text;
}

std::string id_of(const std::optional<std::string>& id) { return id ? *id : "without an id"; }

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
    out += fmt::format("  {:<14} {:>12} {:<12} {:<14} {:>8} {:>8} {:>12} {:>12}\n",
                       or_else(g.like->op, "unknown"), g.like->bytes, or_else(g.like->datatype, "unknown"),
                       fmt::format("{}/{}", or_else(g.like->algorithm, "-"), or_else(g.like->protocol, "-")),
                       g.like->channels, g.calls, microseconds(g.host), microseconds(g.gpu));
  if (p.overwritten() > 0)
    out += fmt::format("  {} events were overwritten: calls and bytes of them are counted, nothing else\n",
                       p.overwritten());
  return out;
}

std::string matrix_text(const model::NcclLog& log) {
  std::string out;
  for (const auto& t : log.traffics) {
    const auto id = id_of(log.communicators[static_cast<std::size_t>(t.communicator)].id);
    if (!t.basis) {
      out += fmt::format("communicator {}: who sent how much to whom is not known ({})\n", id, t.why);
      continue;
    }
    out += fmt::format("communicator {}: bytes from rank to rank, {}\n", id,
                       *t.basis == "measured" ? "measured on the network; within a node not known"
                                              : "modelled: both ranks are on one node");
    bool any = false;
    for (const auto& [pair, bytes] : t.bytes) {
      if (bytes == 0) continue;
      out += fmt::format("  {} -> {}: {}\n", pair.first, pair.second, bytes), any = true;
    }
    if (!any) out += "  no bytes were seen\n";
    if (t.foreign > 0)
      out += fmt::format(
          "  {} bytes more were sent for ranks of other processes (PXN): not in these numbers\n", t.foreign);
  }
  return out;
}

std::string quoted(const std::string& text) {
  if (text.empty()) return "null";
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
std::string named(std::string_view constant) {
  return constant.empty() ? "null" : fmt::format("\"{}\"", constant);
}
template <class T>
std::string or_null(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "null";
}

// JSON, without building it first: a ring holds up to a million groups.
std::string json_of(const NcclProfile& p) {
  auto out = fmt::format(
      R"({{"rank":{},"communicator":{},"name":{},"events":{},"kept":{},"overwritten":{},"foreign_bytes":{},)"
      R"("network_steps":{},"finished":{},"totals":[)",
      or_null(p.rank), p.communicator ? fmt::format("\"0x{:x}\"", *p.communicator) : "null", quoted(p.name),
      p.events, p.kept.size(), p.overwritten(), p.foreign, p.steps, p.closed);
  const char* between = "";
  for (const auto& t : p.totals) {
    const auto from = t.log2_bytes == 0 ? 0 : std::uint64_t{1} << t.log2_bytes;
    out += fmt::format(R"({}{{"op":"{}","from_bytes":{},"calls":{},"bytes":{}}})",
                       std::exchange(between, ","), t.op, from, t.calls, t.bytes);
  }
  out += R"(],"groups":[)";
  between = "";
  for (const auto& g : groups_of(p))
    out += fmt::format(
        R"({}{{"op":"{}","rank_bytes":{},"datatype":"{}","algorithm":{},"protocol":{},"channels":{},"calls":{},)"
        R"("host_seconds":{},"gpu_seconds":{},"gpu_samples":{}}})",
        std::exchange(between, ","), or_else(g.like->op, "unknown"), g.like->bytes,
        or_else(g.like->datatype, "unknown"), named(g.like->algorithm), named(g.like->protocol),
        g.like->channels, g.calls, or_null(measure::median_of(g.host)), or_null(measure::median_of(g.gpu)),
        g.gpu.size());
  return out + "]}";
}

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
  emit::LogJsonOptions options{.timeline = false, .one_line = true, .more = R"("profile":[)"};
  for (const auto& p : profiles) options.more += json_of(p) + (&p == &profiles.back() ? "]" : ",");
  return emit::nccl_log_json(log, {}, name_of(files), options);
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
  auto profiles = read_profiles(files);
  if (!profiles) return report(profiles.error());
  say_doubles(join_doubles(*profiles), files);
  by_rank(*profiles);
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
  say_doubles(join_doubles(*before), files);
  const double began = measure::monotonic_seconds();
  bool any = false;
  for (double last = began;;) {
    const double look = every.seconds > 0 ? std::min(0.2, every.seconds) : 0.05;
    std::this_thread::sleep_for(std::chrono::duration<double>(look));
    auto now = read_profiles(files);
    if (!now) return report(now.error());
    join_doubles(*now);
    const double at = measure::monotonic_seconds();
    const bool over = interrupted() || std::ranges::all_of(*now, ended);
    const bool due = every.seconds > 0 ? at - last >= every.seconds
                                       : most_events(*now) >= most_events(*before) + every.calls;
    if (!over && !due) continue;
    std::vector<NcclProfile> part;
    for (std::size_t i = 0; i < now->size(); ++i) part.push_back(parse::since((*before)[i], (*now)[i]));
    by_rank(part);
    if (over && !any && most_events(part) == 0 && !globals.quiet)
      fmt::print(stderr, "topotune: the job is over: without --every, all that it did is told\n");
    if (due || !any || most_events(part) > 0) {
      any = true;
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
