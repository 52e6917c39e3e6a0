#include "emit/nccl_log_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"

namespace topotune::emit {
namespace {

using namespace model;

constexpr std::size_t kFewEdges = 24;
constexpr std::size_t kFewFindings = 8;
constexpr std::size_t kFewProblems = 8;

class Paint {
 public:
  explicit Paint(bool on) : on_(on) {}
  std::string bold(const std::string& text) const { return wrap(text, "1"); }
  std::string red(const std::string& text) const { return wrap(text, "31"); }
  std::string yellow(const std::string& text) const { return wrap(text, "33"); }
  std::string severity(Severity s) const {
    const std::string name = fmt::format("{:<5}", name_of(s));
    return s == Severity::error ? red(name) : s == Severity::warn ? yellow(name) : name;
  }

 private:
  std::string wrap(const std::string& text, const char* code) const {
    return on_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }
  bool on_;
};

std::string bytes_text(double bytes) {
  const char* unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t u = 0;
  while (bytes >= 1024 && u + 1 < std::size(unit)) bytes /= 1024, ++u;
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 && u > 0 ? 1 : 0, unit[u]);
}

std::string version_text(const NcclLog& log) {
  std::string text = log.library.value_or("NCCL or RCCL");
  text += log.version ? " " + *log.version + log.version_suffix.value_or("") : ", version unknown";
  if (log.cuda) text += ", CUDA " + *log.cuda;
  if (log.hip) text += ", HIP " + *log.hip;
  if (log.cuda_driver) text += ", driver for CUDA " + *log.cuda_driver;
  return text;
}

std::string job_text(const NcclLog& log) {
  if (log.communicators.empty()) return "job     no communicator is described in the log\n";
  const auto& c = log.communicators[0];
  std::string text = fmt::format("job     {} rank{} on {} node{}", c.nranks ? std::to_string(*c.nranks) : "?",
                                 c.nranks == 1 ? "" : "s", c.nnodes ? std::to_string(*c.nnodes) : "?",
                                 c.nnodes == 1 ? "" : "s");
  if (c.channels) text += fmt::format(", {} channel{}", *c.channels, c.channels == 1 ? "" : "s");
  if (c.nvls_channels) text += fmt::format(", {} NVLS", *c.nvls_channels);
  if (log.kind != "nccl-ras" && c.nranks && c.ranks_seen < *c.nranks)
    text += fmt::format("; {} rank{} in the log", c.ranks_seen, c.ranks_seen == 1 ? "" : "s");
  if (log.communicators.size() > 1)
    text += fmt::format("; {} more communicators", log.communicators.size() - 1);
  if (c.init_seconds) text += fmt::format("; init {:.2f} s", *c.init_seconds);
  text += "\n";
  if (!log.hosts.empty()) {
    text += "hosts   ";
    for (std::size_t i = 0; i < log.hosts.size() && i < 8; ++i)
      text += (i > 0 ? " " : "") + printable(log.hosts[i]);
    if (log.hosts.size() > 8) text += fmt::format(" and {} more", log.hosts.size() - 8);
    text += "\n";
  }
  if (!log.gpu_names.empty())
    text += fmt::format("GPUs    {}\n", printable(fmt::format("{}", fmt::join(log.gpu_names, ", "))));
  return text;
}

std::string network_text(const NcclLog& log) {
  if (!log.net.used) return "";
  std::string text = "net     " + printable(*log.net.used);
  if (!log.net.devices.empty()) text += ": " + printable(fmt::format("{}", fmt::join(log.net.devices, " ")));
  if (log.net.used != "Socket")
    text += log.net.gdr ? (*log.net.gdr ? "; GPUDirect RDMA" : "; no GPUDirect RDMA")
                        : "; GPUDirect RDMA unknown";
  if (!log.net.plugins.empty())
    text += "; plugins " + printable(fmt::format("{}", fmt::join(log.net.plugins, " ")));
  return text + "\n";
}

std::string settings_text(const NcclLog& log, bool all) {
  std::string text;
  std::size_t shown = 0;
  for (const auto& s : log.env) {
    if (!all && (s.by == SettingBy::config || shown >= 12)) continue;
    text += fmt::format("{}{}={}{}\n", shown == 0 ? "set     " : "        ", printable(s.name),
                        printable(s.value),
                        s.by == SettingBy::environment ? "" : fmt::format(" (by {})", name_of(s.by)));
    ++shown;
  }
  return text;
}

std::string class_of(const std::string& transport) {
  if (transport.starts_with("NET/")) return transport;
  return transport.substr(0, transport.find('/'));
}

// Transports with the number of pairs, the heaviest first.
std::string transports_text(const NcclLog& log) {
  if (log.edges.empty()) return "";
  struct Sum {
    std::set<std::tuple<int, int, int>> pairs;  // communicator, from, to
    int channels = 0, gdr = 0, no_gdr = 0;
    std::set<std::string> kinds;
  };
  std::map<std::string, Sum> sums;
  for (const auto& e : log.edges) {
    auto& s = sums[class_of(e.transport)];
    s.pairs.emplace(e.communicator.value_or(-1), e.src, e.dst);
    s.channels += e.channels;
    s.kinds.insert(e.transport);
    if (e.gdr) ++(*e.gdr ? s.gdr : s.no_gdr);
  }
  std::string text = "\nWho talks to whom\n";
  for (const auto& [name, s] : sums) {
    text += fmt::format("  {:<14} {:>5} pair{} {:>6} channel{}", printable(name), s.pairs.size(),
                        s.pairs.size() == 1 ? ", " : "s,", s.channels, s.channels == 1 ? "" : "s");
    if (s.gdr + s.no_gdr > 0)
      text += fmt::format(", GPUDirect on {} of {}", s.gdr, s.gdr + s.no_gdr);
    else if (s.kinds.size() > 1 || *s.kinds.begin() != name)
      text += printable(fmt::format(" ({})", fmt::join(s.kinds, ", ")));
    text += "\n";
  }
  return text;
}

std::string edge_text(const LogEdge& e) {
  std::string text =
      fmt::format("  {:>4} -> {:<4} {}{}, {} channel{}", e.src, e.dst, printable(e.transport),
                  e.gdr.value_or(false) ? "/GDRDMA" : "", e.channels, e.channels == 1 ? "" : "s");
  if (e.device) text += fmt::format(", device {}", *e.device);
  if (e.peer_device) text += fmt::format(", peer device {}", *e.peer_device);
  if (e.proxy_rank) text += fmt::format(", through rank {}", *e.proxy_rank);
  if (e.communicator) text += fmt::format(" (ranks of communicator {})", *e.communicator);
  return text + "\n";
}

std::string rings_text(const NcclLog& log, bool all) {
  if (log.rings.empty()) return "";
  std::string text = "\nRings\n";
  std::size_t shown = 0;
  for (const auto& ring : log.rings) {
    if (!all && shown >= 4) {
      text += fmt::format("  … {} more\n", log.rings.size() - shown);
      break;
    }
    const std::size_t length = all ? ring.ranks.size() : std::min<std::size_t>(ring.ranks.size(), 32);
    std::vector<int> head(ring.ranks.begin(), ring.ranks.begin() + static_cast<std::ptrdiff_t>(length));
    text +=
        fmt::format("  {}{}  ({} channel{})\n", fmt::join(head, " "), length < ring.ranks.size() ? " …" : "",
                    ring.channels.size(), ring.channels.size() == 1 ? "" : "s");
    ++shown;
  }
  return text;
}

std::string calls_text(const NcclLog& log, bool all) {
  if (log.collectives.empty()) return "";
  auto list = log.collectives;
  std::ranges::sort(list, [](const auto& a, const auto& b) {
    return static_cast<double>(a.bytes.value_or(0)) * static_cast<double>(a.calls) >
           static_cast<double>(b.bytes.value_or(0)) * static_cast<double>(b.calls);
  });
  std::string text = "\nCalls\n";
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!all && i >= 5) {
      text += fmt::format("  … {} more\n", list.size() - i);
      break;
    }
    const auto& c = list[i];
    text += fmt::format("  {:<14} {:>10} x {:<8} {}\n", printable(c.op),
                        c.bytes ? bytes_text(static_cast<double>(*c.bytes)) : "?", c.calls, c.datatype);
  }
  return text;
}

// "NCCL_P2P_DISABLE=1: 26.9 GB/s with it, 329.5 without it, at 1.0 GiB (8 %)"
std::string cost_text(const LogCost& c) {
  const auto* them = c.settings.size() == 1 ? "it" : "them";
  std::string text;
  if (c.with_gbytes_per_s && c.without_gbytes_per_s) {
    text = fmt::format("{:.1f} GB/s with {}, {:.1f} without {}", *c.with_gbytes_per_s, them,
                       *c.without_gbytes_per_s, them);
    if (c.bytes > 0) text += ", at " + bytes_text(static_cast<double>(c.bytes));
    if (*c.without_gbytes_per_s > 0)
      text += fmt::format(" ({:.0f} %)", 100 * *c.with_gbytes_per_s / *c.without_gbytes_per_s);
  }
  if (c.with_seconds && c.without_seconds)
    text += fmt::format("{}the command took {:.1f} s with {}, {:.1f} s without {}", text.empty() ? "" : "; ",
                        *c.with_seconds, them, *c.without_seconds, them);
  if (text.empty()) return "";
  return printable(fmt::format("  {}: {}", fmt::join(c.settings, ", "), text)) + "\n";
}

std::string measured_text(const NcclLog& log) {
  std::string text;
  if (log.peak_bus_gbytes_per_s)
    text += fmt::format(
        "  best bus bandwidth {:.2f} GB/s{}\n", *log.peak_bus_gbytes_per_s,
        log.peak_bus_bytes == 0 ? "" : ", at " + bytes_text(static_cast<double>(log.peak_bus_bytes)));
  if (log.bus_gbytes_per_s)
    text += fmt::format("  average bus bandwidth {:.2f} GB/s\n", *log.bus_gbytes_per_s);
  if (log.wall_seconds) text += fmt::format("  the command took {:.1f} s\n", *log.wall_seconds);
  for (const auto& cost : log.costs) text += cost_text(cost);
  return text.empty() ? text : "\nMeasured\n" + text;
}

// Texts of ranks that lost another one: it is the other one's error that counts.
bool is_consequence(const LogProblem& p) {
  for (const std::string_view text :
       {"Connection closed by remote peer", "Socket recv failed while polling", "Connection reset by peer",
        "Broken pipe", "Failed to execute operation", "Error encountered progressing operation",
        "without a warning"})
    if (p.text.find(text) != std::string::npos) return true;
  return false;
}

// What failed: causes in the order of their lines, then what only follows.
std::vector<const LogProblem*> errors_of(const NcclLog& log) {
  std::vector<const LogProblem*> errors;
  for (const auto& p : log.problems)
    if (p.harmless.empty()) errors.push_back(&p);
  std::stable_partition(errors.begin(), errors.end(), [](const auto* p) { return !is_consequence(*p); });
  return errors;
}

// Where no rule speaks: all is well only when a communicator is described and nothing failed.
std::string no_finding(const NcclLog& log) {
  if (!errors_of(log).empty()) return "\nThe log holds errors, and no rule knows their cause.\n";
  if (log.communicators.empty())
    return "\nWhether anything is slower than it could be does not follow from this log.\n";
  return "\nNothing in the log is slower than it could be, as far as it tells.\n";
}

std::string findings_part(const NcclLog& log, const Diagnosis& d, const Paint& paint, bool all) {
  std::string text;
  std::size_t shown = 0;
  std::size_t hidden = 0;
  for (const auto& f : d.findings) {
    if (!all && (f.severity == Severity::info || shown >= kFewFindings)) {
      ++hidden;
      continue;
    }
    text +=
        fmt::format("  {} {:<6} {}\n", paint.severity(f.severity), f.rule, paint.bold(printable(f.title)));
    text += fmt::format("               {}\n", printable(f.observed));
    if (!f.because.empty()) text += fmt::format("               because of {}\n", fmt::join(f.because, ", "));
    if (!f.evidence.empty())
      text += fmt::format("               {}: {}\n", printable(f.evidence[0].source),
                          printable(f.evidence[0].text.substr(0, 160)));
    if (!f.impact.empty() && f.severity != Severity::info)
      text += fmt::format("               costs: {}\n", printable(f.impact));
    if (!f.remedy.empty() && f.severity != Severity::info)
      text += fmt::format("               do: {}\n", printable(f.remedy));
    ++shown;
  }
  if (text.empty())
    text = no_finding(log);
  else
    text = "\nWhat is wrong or slower than it could be\n" + text;
  if (hidden > 0) text += fmt::format("  {} more remark{} with -v\n", hidden, hidden == 1 ? "" : "s");
  return text;
}

std::string problems_text(const NcclLog& log, const Paint& paint, bool all) {
  const auto errors = errors_of(log);
  if (errors.empty()) return "";
  std::string text = "\nErrors, the first of each kind\n";
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (!all && i >= kFewProblems) {
      text += fmt::format("  … {} more\n", errors.size() - i);
      break;
    }
    const auto& p = *errors[i];
    text += fmt::format("  line {}: {}{}\n", p.at.line, paint.red(printable(p.text.substr(0, 200))),
                        p.count > 1 ? fmt::format(" ({} times)", p.count) : "");
    if (p.rank || p.host)
      text += fmt::format("    {}{}{}\n", p.rank ? fmt::format("rank {}", *p.rank) : "",
                          p.rank && p.host ? " on " : "", printable(p.host.value_or("")));
    if (!p.unwound.empty())
      text +=
          fmt::format("    returned through {}\n", printable(fmt::format("{}", fmt::join(p.unwound, ", "))));
  }
  return text;
}

}  // namespace

std::string nccl_log_text(const NcclLog& log, const Diagnosis& diagnosis, const std::string& name,
                          const LogTextOptions& options) {
  const Paint paint(options.color);
  std::string text = fmt::format("{}: {}\n", printable(name),
                                 log.kind == "nccl-ras" ? "NCCL RAS report" : version_text(log));
  if (log.kind == "nccl-ras") text += "        " + version_text(log) + "\n";
  text += job_text(log) + network_text(log) + settings_text(log, options.verbose);
  text += transports_text(log);
  if (options.verbose || log.edges.size() <= kFewEdges)
    for (const auto& e : log.edges) text += edge_text(e);
  text += rings_text(log, options.verbose) + calls_text(log, options.verbose) + measured_text(log);
  text += findings_part(log, diagnosis, paint, options.verbose);
  text += problems_text(log, paint, options.verbose);
  text += fmt::format("\n{} lines, {} of the library, {} not understood", log.lines, log.library_lines,
                      log.unrecognised);
  if (log.glued > 0) text += fmt::format(", {} were glued to others", log.glued);
  return text + "\n";
}

namespace {

// "  rank0.log" where several files were read.
std::string file_of(const NcclLog& log, const LogLine& at) {
  const auto index = static_cast<std::size_t>(at.file);
  return log.files.size() < 2 || index >= log.files.size() ? "" : "  " + printable(log.files[index]);
}

}  // namespace

std::string nccl_log_timeline(const NcclLog& log) {
  if (log.timeline.empty())
    return "no COLL lines: NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,COLL prints them\n";
  std::string text = fmt::format("{:>9}  {:<20} {:<5} {:<14} {:>10} {:<11} {:>7}\n", "line", "time", "comm",
                                 "operation", "size", "type", "times");
  for (const auto& s : log.timeline) {
    const auto at = static_cast<std::size_t>(s.communicator);
    const auto bytes =
        call_bytes(s.op, s.datatype, s.count,
                   at < log.communicators.size() ? log.communicators[at].nranks : std::nullopt);
    text += fmt::format("{:>9}  {:<20} {:<5} {:<14} {:>10} {:<11} {:>7}{}\n", s.at.line,
                        printable(s.time.substr(0, 20)), s.communicator, printable(s.op),
                        bytes ? bytes_text(static_cast<double>(*bytes)) : "?", s.datatype, s.times,
                        file_of(log, s.at));
  }
  if (!log.timeline_complete) text += "… the rest is left out\n";
  return text;
}

}  // namespace topotune::emit
