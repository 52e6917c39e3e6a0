#include "parse/port_counters.h"

#include <array>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

using sv = std::string_view;

constexpr sv kClass = "/sys/class/infiniband/";

// perfquery's words (InfiniBand 1.3, PortCounters and PortCountersExtended) and the kernel's.
constexpr std::array<std::pair<sv, sv>, 11> kNames{
    {{"SymbolErrorCounter", "symbol_error"},
     {"LinkErrorRecoveryCounter", "link_error_recovery"},
     {"LinkDownedCounter", "link_downed"},
     {"PortRcvErrors", "port_rcv_errors"},
     {"PortXmitDiscards", "port_xmit_discards"},
     {"LocalLinkIntegrityErrors", "local_link_integrity_errors"},
     {"ExcessiveBufferOverrunErrors", "excessive_buffer_overrun_errors"},
     {"PortXmitWait", "port_xmit_wait"},
     {"PortXmitData", "port_xmit_data"},
     {"PortRcvData", "port_rcv_data"},
     {"VL15Dropped", "VL15_dropped"}}};

class Reader {
 public:
  explicit Reader(sv text) : lines_(text) {}

  Result<std::vector<CounterRecord>> read() {
    while (lines_.next()) {
      if (out_.size() >= kMaxRecords) return too_many("ports", lines_.number());
      take(trim(lines_.line()).substr(0, 16384));
    }
    std::erase_if(out_, [](const CounterRecord& r) { return r.counters.empty(); });
    if (out_.empty()) return not_a("port counters");
    return std::move(out_);
  }

 private:
  CounterRecord& record(std::string device, int port) {
    const auto [at, fresh] = places_.try_emplace(device + "/" + std::to_string(port), out_.size());
    if (fresh) out_.push_back({lines_.number(), std::move(device), port, {}, {}});
    return out_[at->second];
  }

  void take(sv line) {
    if (line.starts_with("# Port") && line.find(": Lid ") != sv::npos) return open_perfquery(line);
    if (line.starts_with(kClass)) return take_path(line.substr(kClass.size()));
    if (line.starts_with("link ")) return take_statistic(words(line));
    take_perfquery(line);
  }

  // "# Port extended counters: Lid 12 port 1 (CapMask: 0x5A00)"
  void open_perfquery(sv line) {
    const auto lid = after(line, "Lid "), port = after(line, "port ");
    const auto number = lid ? parse_int<int>(leading_digits(*lid)) : std::nullopt;
    out_.push_back({lines_.number(), "", 1, number, {}});
    if (port) out_.back().port = parse_int<int>(leading_digits(*port)).value_or(1);
    in_perfquery_ = true;
  }

  // "PortXmitWait:....................17"
  void take_perfquery(sv line) {
    const auto colon = line.find(':');
    if (!in_perfquery_ || colon == sv::npos) return;
    const auto digits = line.find_first_not_of(". ", colon + 1);
    const auto value = digits == sv::npos ? std::nullopt : parse_int<std::uint64_t>(line.substr(digits));
    if (!value) return;
    for (const auto& [printed, kernel] : kNames)
      if (line.substr(0, colon) == printed) out_.back().counters[std::string(kernel)] = *value;
  }

  // "mlx5_0/ports/1/hw_counters/out_of_sequence:17"
  void take_path(sv rest) {
    const auto colon = rest.rfind(':');
    if (colon == sv::npos) return;
    const auto parts = split(rest.substr(0, colon), '/');
    const auto value = parse_int<std::uint64_t>(trim(rest.substr(colon + 1)));
    if (parts.size() != 5 || parts[1] != "ports" || !value) return;
    if (parts[3] != "counters" && parts[3] != "hw_counters") return;
    const auto port = parse_int<int>(parts[2]);
    if (port) record(std::string(parts[0]), *port).counters[std::string(parts[4])] = *value;
  }

  // "link mlx5_0/1 rx_write_requests 0 out_of_sequence 17 ..."
  void take_statistic(const std::vector<sv>& line) {
    if (line.size() < 4) return;
    const auto slash = line[1].rfind('/');
    const auto port = slash == sv::npos ? std::nullopt : parse_int<int>(line[1].substr(slash + 1));
    if (!port) return;
    auto& to = record(std::string(line[1].substr(0, slash)), *port);
    for (std::size_t i = 2; i + 1 < line.size(); i += 2)
      if (const auto value = parse_int<std::uint64_t>(line[i + 1]))
        to.counters[std::string(line[i])] = *value;
  }

  LineReader lines_;
  std::vector<CounterRecord> out_;
  std::unordered_map<std::string, std::size_t> places_;
  bool in_perfquery_ = false;
};

}  // namespace

bool looks_like_port_counters(sv text) {
  if (text.find("# Port") != sv::npos && text.find("ounters: Lid ") != sv::npos) return true;
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    if (line.starts_with(kClass) && line.find("counters/") != sv::npos && line.find(':') != sv::npos)
      return true;
    if (line.starts_with("link ") && line.find(" rx_write_requests ") != sv::npos) return true;
  }
  return false;
}

Result<std::vector<CounterRecord>> parse_port_counters(sv text) { return Reader(text).read(); }

}  // namespace topotune::parse
