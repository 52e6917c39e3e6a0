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
    const auto at = line.substr(0, 160).find(head);
    constexpr std::string_view kEnds = " \t:>]|)";  // of what a launcher puts before it
    if (at == std::string_view::npos || (at > 0 && kEnds.find(line[at - 1]) == std::string_view::npos))
      return {};
    const auto colon = line.find(':', at);
    if (line.find_first_not_of(' ', at + head.size()) != colon) return {};
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

// "[PG ID 0 PG GUID 0(default_pg) Rank 1]" and "[Rank 1]" before a text: group and rank.
struct Speaker {
  std::string_view group;
  std::optional<int> rank;
};
Speaker speaker_of(std::string_view before) {
  Speaker found;
  const auto at = before.rfind("ank ");
  if (at == std::string_view::npos || at == 0) return found;
  Cursor in(before.substr(at + 4));
  found.rank = in.number<int>();
  const auto open = before.substr(0, at).rfind('[');
  if (open != std::string_view::npos && before.substr(open).starts_with("[PG "))
    found.group = trim(before.substr(open + 1, at - open - 2));
  // The number within the group; the launcher's label holds the job's.
  if (Cursor label(before); label.skip_past("[rank"))
    if (const auto rank = label.number<int>(); rank && label.take("]:")) found.rank = rank;
  return found;
}

// "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1,
// …)", then "[PG 1 Rank 3] … detected by watchdog at work: 7, …" or "… at work sequence id: 7 PG status: …".
bool watchdog(State& state, std::string_view line) {
  constexpr auto kNo = std::string_view::npos;
  const auto caught = find_from(line, "atchdog caught collective operation timeout", 0);
  const auto detected = find_from(line, "detected by watchdog at work", 0);
  const auto at = std::min(caught, detected);
  if (at == kNo) return false;
  if (caught != kNo)
    note(state, model::NoteKind::watchdog, "", trim(line.substr(at - std::min<std::size_t>(at, 1))));
  const auto speaker = speaker_of(line.substr(0, at));
  Cursor in(line.substr(at));
  const bool numbered = caught != kNo ? in.skip_past("SeqNum=") : in.skip_past(": ");
  const auto number = numbered ? in.number<std::uint64_t>() : std::nullopt;
  if (!speaker.rank || *speaker.rank < 0 || *speaker.rank >= kMaxRank || (caught == kNo && !number))
    return true;
  constexpr std::size_t kMost = 65536;
  if (state.timed_out.size() >= kMost) return true;
  auto& work = state.timed_out[{*speaker.rank, number.value_or(0)}];
  if (work.at.line == 0) work.at = state.at;
  work.rank = *speaker.rank;
  work.number = number.value_or(0);
  if (work.group.empty()) work.group = std::string(speaker.group.substr(0, 80));
  if (in.take(", OpType=")) work.op = std::string(in.until(",)").substr(0, 40));
  const auto sizes = in.take(", ") ? in.rest() : std::string_view{};
  if (sizes.starts_with("NumelIn="))
    work.sizes =
        std::string(sizes.substr(0, std::min(sizes.find(", Timeout"), sizes.find(')'))).substr(0, 80));
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

bool is_tests_type(std::string_view word) {
  for (const std::string_view type :
       {"int", "uint", "half", "float", "double", "bfloat", "f8", "fp8", "char"})
    if (word.starts_with(type)) return true;
  return false;
}

// A result row of nccl-tests: "size count type [redop] [root] time algbw busbw wrong time algbw busbw wrong",
// behind whatever a launcher puts before it.
bool result_row(State& state, std::string_view text) {
  constexpr std::size_t kFront = 12;  // words before it
  if (!is_digit(text.back()) && !text.ends_with("N/A")) return false;
  auto cells = words(text.substr(0, 1024));
  for (std::size_t i = 0; i < kFront && i + 8 <= cells.size(); ++i) {
    if (!is_tests_type(cells[i + 2]) || !parse_int<std::uint64_t>(cells[i + 1])) continue;
    const auto glued = cells[i].find_last_of(":>]|");  // "[1,0]<stdout>:1024"
    const auto size =
        parse_int<std::uint64_t>(cells[i].substr(glued == std::string_view::npos ? 0 : glued + 1));
    const auto n = cells.size() - i;
    const std::size_t first = n % 4 == 3 ? 3 : n % 4 == 0 ? 4 : 5;  // 4: a redop or a root, 5: both
    if (!size || n > 16 || (n - first) % 4 != 0) return false;
    const auto bus = parse_double(cells[i + first + 2]);
    if (!bus || *bus > 1e6) return false;
    measured(state, size, *bus);
    // The second half of the row: in place.
    if (n >= first + 8)
      if (const auto in_place = parse_double(cells[i + first + 6]); in_place && *in_place <= 1e6)
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
  if (const auto hash = text.find('#'); hash != std::string_view::npos && hash < 256) {
    if (tests_header(state, text.substr(hash)) || bus_bandwidth(state, text)) return;
  }
  if (rccl_banner(state, text) || result_row(state, text) || named_bandwidth(state, text)) return;
  watchdog(state, text);
}

}  // namespace topotune::parse::log
