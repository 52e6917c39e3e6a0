#include <algorithm>

#include "base/bdf.h"
#include "base/text.h"
#include "parse/nccl_log_scan.h"
#include "parse/nccl_log_state.h"

// What other programs print between NCCL's lines and still tells something.
namespace topotune::parse::log {
namespace {

int site_by_name(State& state, std::string_view host, int pid, int dev) {
  LogRecord record;
  record.host = host;
  record.pid = pid;
  record.dev = dev;
  return host.size() > 255 ? -1 : site_of(state, record);
}

// nccl-tests: "#  Rank  0 Group  0 Pid   9822 on node001 device  0 [0000:2c:00] NVIDIA GeForce RTX 4090"
bool tests_header(State& state, std::string_view line) {
  Cursor in(line);
  if (!in.skip_past("Rank ")) return false;
  in.blanks();
  const int rank = in.need<int>();
  in.blanks();
  if (in.take("Group ")) in.blanks(), in.need<int>(), in.blanks();
  if (!in.take("Pid ")) return false;
  in.blanks();
  const int pid = in.need<int>();
  in.blanks();
  if (!in.take("on ")) return false;
  in.blanks();
  const auto host = in.word();
  in.blanks();
  if (!in.take("device ")) return false;
  in.blanks();
  const int dev = in.need<int>();
  in.blanks();
  if (!in.take("[") || !in.ok() || rank < 0 || rank >= kMaxRank) return false;
  const auto bus = in.until("]");
  in.take("]");
  state.log.benchmark = true;
  ++state.header_ranks;
  state.known_hosts.add(host);
  const int index = site_by_name(state, host, pid, dev);
  if (index < 0) return true;
  auto& site = state.sites[static_cast<std::size_t>(index)];
  site.rank_hint = rank;
  site.gpu_name = std::string(trim(in.rest()).substr(0, 80));
  // "[0x0f]" of older versions is the bus alone: not an address.
  if (bus.find(':') != std::string_view::npos)
    if (const auto bdf = parse_bdf(bus)) site.bdf_hint = bdf->to_string();
  auto& names = state.log.gpu_names;
  bool listed = names.size() >= 64;
  for (const auto& name : names) listed = listed || name == site.gpu_name;
  if (!listed && !site.gpu_name.empty()) names.push_back(site.gpu_name);
  return true;
}

// RCCL prints one banner over several lines; those behind the first have no prefix.
bool rccl_banner(State& state, std::string_view line) {
  const auto value = [&](std::string_view head) -> std::string_view {
    if (!line.starts_with(head)) return {};
    const auto colon = line.find(':');
    return colon == std::string_view::npos ? std::string_view{} : trim(line.substr(colon + 1));
  };
  if (const auto hip = value("HIP version"); !hip.empty()) {
    state.rccl_words = true;
    if (!state.log.hip && hip.size() < 80) state.log.hip = std::string(hip);
    return true;
  }
  if (const auto rocm = value("ROCm version"); !rocm.empty()) {
    state.rccl_words = true;
    if (!state.log.rocm && rocm.size() < 80) state.log.rocm = std::string(rocm);
    return true;
  }
  return !value("Librccl path").empty();
}

// PyTorch: "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, …)"
bool watchdog(State& state, std::string_view line) {
  const auto at = find_from(line, "atchdog caught collective operation timeout", 0);
  if (at == std::string_view::npos) return false;
  note(state, model::NoteKind::watchdog, "", trim(line.substr(at - std::min<std::size_t>(at, 1))));
  const auto rank_at = line.substr(0, at).rfind("ank ");
  if (rank_at == std::string_view::npos) return true;
  Cursor in(line.substr(rank_at + 4));
  if (const auto rank = in.number<int>(); rank && *rank >= 0 && *rank < kMaxRank)
    state.log.watchdog_ranks.insert(*rank);
  return true;
}

bool bus_bandwidth(State& state, std::string_view line) {
  const auto at = find_from(line, "Avg bus bandwidth", 0);
  if (at == std::string_view::npos) return false;
  const auto colon = line.find(':', at);
  if (colon == std::string_view::npos) return false;
  if (const auto value = parse_double(trim(line.substr(colon + 1)))) state.log.bus_gbytes_per_s = value;
  state.log.benchmark = true;
  return true;
}

constexpr std::size_t kMaxSizes = 256;

void measured(State& state, std::optional<std::uint64_t> size, double bus) {
  auto& log = state.log;
  if (bus > log.peak_bus_gbytes_per_s.value_or(0)) {
    log.peak_bus_gbytes_per_s = bus;
    log.peak_bus_bytes = size.value_or(0);
  }
  if (!size) return;
  if (log.bus_by_size.size() >= kMaxSizes && !log.bus_by_size.contains(*size)) {
    ++log.bus_sizes_left_out;
    return;
  }
  auto& best = log.bus_by_size[*size];
  best = std::max(best, bus);
}

// A result row of nccl-tests: "size count type redop [root] time algbw busbw wrong time algbw busbw wrong".
bool result_row(State& state, std::string_view text) {
  if (!is_digit(text.front())) return false;
  const auto cells = words(text);
  if (cells.size() < 8 || cells.size() > 16) return false;
  const auto size = parse_int<std::uint64_t>(cells[0]);
  if (!size || !parse_int<std::uint64_t>(cells[1]) || parse_double(cells[2]) || parse_double(cells[3]))
    return false;
  for (std::size_t first : {std::size_t{4}, std::size_t{5}}) {  // 5: a column "root"
    if ((cells.size() - first) % 4 != 0) continue;
    const auto bus = parse_double(cells[first + 2]);
    if (!bus || *bus > 1e6) return false;
    measured(state, size, *bus);
    // The second half of the row: in place.
    if (cells.size() >= first + 8)
      if (const auto in_place = parse_double(cells[first + 6]); in_place && *in_place <= 1e6)
        measured(state, size, *in_place);
    return true;
  }
  return false;
}

// The number whose last character stands before `end` (blanks between are passed over).
std::optional<double> number_before(std::string_view text, std::size_t end) {
  text = trim(text.substr(0, end));
  const auto begin = text.find_last_not_of("0123456789.");
  return parse_double(text.substr(begin == std::string_view::npos ? 0 : begin + 1));
}

// Other benchmarks' rows: "all-reduce 1073741824 bytes 3258.7 us 329.5 GB/s busbw".
bool named_bandwidth(State& state, std::string_view text) {
  if (text.size() > 400) return false;
  constexpr auto kNone = std::string_view::npos;
  const bool named = text.find("busbw") != kNone || text.find("bus bandwidth") != kNone;
  const auto unit = text.find("GB/s");
  if (!named || unit == kNone || text.find("GB/s", unit + 4) != kNone) return false;
  const auto bus = number_before(text, unit);
  if (!bus || *bus <= 0 || *bus > 1e6) return false;
  const auto bytes = text.find(" bytes");
  const auto size = bytes == kNone ? std::nullopt : number_before(text, bytes);
  const bool whole = size && *size >= 1 && *size < 1e15;
  measured(state, whole ? std::optional(static_cast<std::uint64_t>(*size)) : std::nullopt, *bus);
  return true;
}

}  // namespace

void foreign_line(State& state, std::string_view line) {
  if (line.size() > 4096) return;
  const auto text = trim(trim_message_end(line));
  if (text.empty()) return;
  if (const auto hash = text.find('#'); hash != std::string_view::npos && hash < 64) {
    if (tests_header(state, text.substr(hash)) || bus_bandwidth(state, text)) return;
  }
  if (rccl_banner(state, text) || result_row(state, text) || named_bandwidth(state, text)) return;
  watchdog(state, text);
}

}  // namespace topotune::parse::log
