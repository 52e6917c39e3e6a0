#include "parse/nccl_log.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "parse/nccl_log_ras.h"
#include "parse/nccl_log_scan.h"
#include "parse/nccl_log_state.h"

namespace topotune::parse {
namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 20U;  // what is behind is not read
constexpr std::size_t kLongestJson = std::size_t{64} << 20U;
constexpr std::size_t kSamples = 20;

// Some tools strip the prefix wholly: statements that nothing but NCCL prints.
bool is_bare_statement(std::string_view text) {
  if (text.starts_with("Channel ") && text.size() > 8 && is_digit(text[8]))
    return text.find(" : ") != std::string_view::npos;
  const auto at = text.starts_with("nccl") ? text.find(" comm 0x") : text.find("comm 0x");
  if ((at == 0 || (text.starts_with("nccl") && at < 40)) && text.find(" nranks ") != std::string_view::npos)
    return true;
  for (const std::string_view head :
       {"NET/IB : ", "NET/Socket : ", "NET/Plugin", "Bootstrap : Using", "Using network ", "Trees [",
        "GPU Direct RDMA ", "NVLS multicast support", "cudaDriverVersion "})
    if (text.starts_with(head)) return true;
  return text.starts_with("NCCL_") && text.find(" set by environment to ") != std::string_view::npos;
}

}  // namespace

struct NcclLogParser::Impl {
  log::State state;
  log::RasReader ras;
  std::string carry;        // the beginning of a line whose end is in the next piece
  bool carry_full = false;  // the line is longer than kLongestLine
  bool file_open = false;
  std::string json;  // a RAS report as JSON begins with a line "{"
  bool json_possible = true;
  bool may_hold_nul = true;           // false: the piece that is read has none
  std::uint64_t last_error_line = 0;  // where PyTorch printed "Last error:"
  std::size_t last_error_label = 0;   // what a launcher put before it

  void line(std::string_view text);
  void line_with_head(std::string_view text, std::size_t length, int head);
  std::size_t whole_lines(std::string_view chunk);
  void records(std::string_view text);
  void record(const LogRecord& one);
  void statement(const LogRecord& one);
  void not_understood(std::string_view text);
  bool understand_escaped(const LogRecord& one);
  bool last_error(std::string_view text);
  bool known_head(int head, std::string_view message);
  void pieces(std::string_view text);
  void end_line(std::string_view text);
  void keep_json(std::string_view chunk);
};

void NcclLogParser::Impl::record(const LogRecord& one) {
  auto& s = state;
  if (one.level != LogLevel::banner) ++s.log.library_lines;
  if (!one.host.empty())
    s.enter(log::site_of(s, one));
  else
    s.site = -1;
  s.time = one.time;
  statement(one);
}

// What a record says; the site is known.
void NcclLogParser::Impl::statement(const LogRecord& one) {
  auto& s = state;
  if (one.level == LogLevel::warn) {
    log::add_problem(s, one);
    return;
  }
  if (one.level == LogLevel::call || one.level == LogLevel::trace) return;
  if (log::understand(s, one) || understand_escaped(one)) return;
  not_understood(one.message);
}

void NcclLogParser::Impl::not_understood(std::string_view text) {
  ++state.log.unrecognised;
  if (state.log.unrecognised_samples.size() < kSamples)
    state.log.unrecognised_samples.emplace_back(text.substr(0, 160));
}

// A page's source: "0 -&gt; 1".
bool NcclLogParser::Impl::understand_escaped(const LogRecord& one) {
  if (one.message.size() > 4096 || find_from(one.message, "&gt;", 0) == std::string_view::npos) return false;
  std::string plain;
  for (std::size_t i = 0; i < one.message.size(); ++i) {
    const auto rest = one.message.substr(i);
    const bool more = rest.starts_with("&gt;");
    const bool less = rest.starts_with("&lt;");
    plain.push_back(more ? '>' : less ? '<' : rest.front());
    if (more || less) i += 3;
  }
  auto unescaped = one;
  unescaped.message = plain;
  return log::understand(state, unescaped);
}

// PyTorch's exception ends with "Last error:" and, on the next line, the text of NCCL's last warning: all
// that is left of it without NCCL_DEBUG.
bool NcclLogParser::Impl::last_error(std::string_view text) {
  text = trim(trim_message_end(text));
  constexpr std::string_view kLast = "Last error:";
  // The line behind it has the same launcher's label.
  const auto label = std::exchange(last_error_label, std::size_t{0});
  if (label > 0 && label < text.size() && (text[label - 1] == ' ' || text[label - 1] == ':') &&
      !text.ends_with(kLast) && !text.starts_with("[rank"))
    text = trim(text.substr(label));
  const auto line_begin = text;
  std::optional<int> rank;
  if (Cursor in(text); in.take("[rank")) {
    rank = in.number<int>();
    if (in.take("]:")) text = trim(in.rest());
  }
  const auto said = std::exchange(last_error_line, std::uint64_t{0});
  if (text.ends_with(kLast)) {
    last_error_line = state.at.line;
    last_error_label = line_begin.size() - kLast.size();
    return true;
  }
  if (said == 0 || state.at.line > said + 1 || text.empty()) return false;
  if (state.problem_ids.contains(text.substr(0, 4096))) return true;
  state.site = -1;
  state.time = {};
  LogRecord one;
  one.message = text;
  const auto before = state.log.problems.size();
  log::add_problem(state, one);
  if (state.log.problems.size() == before) return true;
  state.log.problems.back().returned = true;
  if (rank && *rank >= 0) state.log.problems.back().rank = *rank;
  return true;
}

void NcclLogParser::Impl::records(std::string_view text) {
  RecordReader reader(text, state.known_hosts);
  LogRecord one;
  bool first = true;
  while (reader.next(one)) {
    if (!first) ++state.log.glued;
    if (first && reader.foreign().size() > 24) log::foreign_line(state, reader.foreign());
    record(one);
    if (first && reader.head_length() > 0 && state.site >= 0)
      state.heads.add(text.substr(0, reader.head_length()), state.site);
    first = false;
  }
  if (!first) return;
  if (ras.line(text, state.at) || last_error(text)) return;
  log::foreign_line(state, text);
  if (const auto bare = trim_message_end(trim(text)); is_bare_statement(bare)) {
    one = LogRecord{};
    one.message = bare;
    record(one);
  } else if (bare.find("NCCL INFO ") != std::string_view::npos ||
             bare.find("NCCL WARN ") != std::string_view::npos) {
    not_understood(bare);  // a head that nobody knows
  }
}

constexpr std::string_view kBehindHead = "] NCCL INFO ";

// Length of what stands before "] NCCL INFO ", the first or second ']' of a line (a launcher's tag may have
// one); 0 when there is none.
std::size_t head_length(std::string_view text) {
  std::size_t from = 0;
  for (int brackets = 0; brackets < 3; ++brackets) {
    const auto room = std::min(text.size(), log::Head::kLongest + 1);
    if (from >= room) return 0;
    const void* found = std::memchr(text.data() + from, ']', room - from);
    if (found == nullptr) return 0;
    const auto close = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    if (text.substr(close).starts_with(kBehindHead)) return close;
    from = close + 1;
  }
  return 0;
}

// "CCL " anywhere: four bytes a step, as the last of them tells how far the word may be.
bool holds_record(std::string_view text) {
  for (std::size_t at = 3; at < text.size();) {
    const char c = text[at];
    if (c == ' ' && text[at - 1] == 'L' && text[at - 2] == 'C' && text[at - 3] == 'C') return true;
    at += c == 'L' ? 1 : c == 'C' ? 2 : 4;
  }
  return false;
}

// The proxies' connections make most lines of a large job's start; nothing of them is kept.
bool is_idle_remark(std::string_view text) {
  return text.starts_with("New proxy ") || text.starts_with("Connected to proxy ");
}

// A line that begins with a head seen before; false: it has to be taken apart.
bool NcclLogParser::Impl::known_head(int head, std::string_view message) {
  const bool idle = is_idle_remark(message);
  if (!idle && log::collective_by_head(state, head, message)) {
    ++state.log.library_lines;
    return true;
  }
  if (holds_record(message)) return false;  // maybe another record
  if (may_hold_nul && std::memchr(message.data(), '\0', message.size()) != nullptr) return false;
  ++state.log.library_lines;
  state.enter(state.heads.at(head).site);
  if (idle) return true;
  LogRecord one;
  one.message = trim_message_end(message);
  state.time = {};
  statement(one);
  return true;
}

// NULs stand where bytes are missing: what is before and behind them is read by itself.
void NcclLogParser::Impl::pieces(std::string_view text) {
  const bool last = std::exchange(state.unterminated, true);
  while (!text.empty()) {
    const auto end = text.find('\0');
    if (end == std::string_view::npos) state.unterminated = last;
    if (const auto piece = text.substr(0, end); !trim(piece).empty()) records(piece);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  state.unterminated = last;
}

void NcclLogParser::Impl::line(std::string_view text) {
  const auto length = head_length(text);
  const int head =
      length == 0 ? -1
                  : state.heads.find(text.substr(0, length), log::HeadCache::hash_of(text.substr(0, length)));
  line_with_head(text, length, head);
}

void NcclLogParser::Impl::line_with_head(std::string_view text, std::size_t length, int head) {
  ++state.log.lines;
  ++state.at.line;
  if (text.empty()) return;
  if (head >= 0 && known_head(head, text.substr(length + kBehindHead.size()))) return;
  if (may_hold_nul && std::memchr(text.data(), '\0', text.size()) != nullptr) return pieces(text);
  if (text.front() == '{') {
    if (const auto inner = unwrap_json_line(text)) {
      for (const auto part : lines(*inner)) records(part);
      return;
    }
  }
  if (text.size() > 2 && text.front() == '"') {  // a cell of a table
    text = trim_message_end(text.substr(1));
    if (text.ends_with('"')) text.remove_suffix(1);
  }
  records(text);
}

// Lines that lie whole in one piece, some at a time: what the later ones need is fetched from memory while
// the earlier ones are read. Returns how many bytes were taken.
std::size_t NcclLogParser::Impl::whole_lines(std::string_view chunk) {
  struct Ahead {
    std::string_view text;
    std::size_t length = 0;
    std::uint64_t hash = 0;
    int head = -1;
  };
  constexpr std::size_t kAhead = 24;
  std::array<Ahead, kAhead> ahead;
  std::size_t taken = 0;
  may_hold_nul = true;
  if (chunk.empty()) return 0;  // its data may be a null pointer, which memchr() must not get
  may_hold_nul = std::memchr(chunk.data(), '\0', chunk.size()) != nullptr;
  while (true) {
    std::size_t n = 0;
    for (; n < kAhead; ++n) {
      const void* found = std::memchr(chunk.data() + taken, '\n', chunk.size() - taken);
      if (found == nullptr) break;
      auto& a = ahead[n];
      a.text = chunk.substr(taken,
                            static_cast<std::size_t>(static_cast<const char*>(found) - chunk.data()) - taken);
      taken += a.text.size() + 1;
      a.length = head_length(a.text);
      a.hash = log::HeadCache::hash_of(a.text.substr(0, a.length));
      if (a.length > 0) state.heads.fetch(a.hash);
    }
    if (n == 0) {
      may_hold_nul = true;
      return taken;
    }
    for (std::size_t i = 0; i < n; ++i)
      ahead[i].head = ahead[i].length == 0 ? -1 : state.heads.guess(ahead[i].hash);
    for (std::size_t i = 0; i < n; ++i) {
      const auto& a = ahead[i];
      const auto head = a.text.substr(0, a.length);
      int known = a.head;
      if (a.length > 0 && (known < 0 || !state.heads.at(known).is(head)))
        known = state.heads.find(head, a.hash);
      if (a.text.size() > kLongestLine) ++state.log.overlong;
      line_with_head(a.text.substr(0, kLongestLine), a.length, known);
    }
  }
}

// The end of the line that `carry` begins.
void NcclLogParser::Impl::end_line(std::string_view text) {
  if (carry.size() + text.size() > kLongestLine) carry_full = true;
  carry.append(text.substr(0, kLongestLine - std::min(kLongestLine, carry.size())));
  if (carry_full) ++state.log.overlong;
  line(carry);
  carry.clear();
  carry_full = false;
}

void NcclLogParser::Impl::keep_json(std::string_view chunk) {
  if (!json_possible) return;
  if (json.empty()) {
    const auto start = chunk.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos) return;
    // A log collector's lines begin with '{' too, but go on with a key.
    const auto rest = trim(chunk.substr(start + 1, 64));
    json_possible = chunk[start] == '{' && rest.starts_with("\"nccl_version\"");
  }
  if (json_possible && json.size() + chunk.size() <= kLongestJson)
    json.append(chunk);
  else
    json_possible = false, json.clear();
}

NcclLogParser::NcclLogParser() : impl_(std::make_unique<Impl>()) {}
NcclLogParser::~NcclLogParser() = default;
NcclLogParser::NcclLogParser(NcclLogParser&&) noexcept = default;
NcclLogParser& NcclLogParser::operator=(NcclLogParser&&) noexcept = default;

void NcclLogParser::begin_file(std::string name) {
  auto& s = impl_->state;
  if (!impl_->carry.empty() || impl_->carry_full) {
    s.unterminated = true;
    impl_->end_line({});
    s.unterminated = false;
  }
  s.log.files.push_back(std::move(name));
  s.at = {static_cast<int>(s.log.files.size() - 1), 0};
}

void NcclLogParser::feed(std::string_view chunk) {
  if (impl_->state.log.files.empty()) begin_file("");
  impl_->keep_json(chunk);
  if (!impl_->carry.empty() || impl_->carry_full) {
    const auto end = chunk.find('\n');
    if (end != std::string_view::npos) {
      impl_->end_line(chunk.substr(0, end));
      chunk.remove_prefix(end + 1);
    }
  }
  if (impl_->carry.empty() && !impl_->carry_full) chunk.remove_prefix(impl_->whole_lines(chunk));
  const auto room = kLongestLine - std::min(kLongestLine, impl_->carry.size());
  if (chunk.size() > room) impl_->carry_full = true;
  impl_->carry.append(chunk.substr(0, room));
}

model::NcclLog NcclLogParser::snapshot() const {
  auto log = log::merge(impl_->state);
  impl_->ras.store(log);
  if (impl_->json_possible && !impl_->json.empty()) log::read_ras_json(impl_->json, log);
  return log;
}

model::NcclLog NcclLogParser::finish() {
  if (!impl_->carry.empty() || impl_->carry_full) {
    impl_->state.unterminated = true;
    impl_->end_line({});
    impl_->state.unterminated = false;
  }
  return snapshot();
}

model::NcclLog parse_nccl_log(std::string_view text, std::string name) {
  NcclLogParser parser;
  parser.begin_file(std::move(name));
  parser.feed(text);
  return parser.finish();
}

bool looks_like_nccl_log(std::string_view text) {
  text = text.substr(0, std::size_t{1} << 20U);
  const KnownHosts hosts;
  std::size_t from = 0;
  for (int n = 0; n < 20000 && from < text.size(); ++n) {
    const auto end = std::min(text.find('\n', from), text.size());
    const auto line = text.substr(from, std::min<std::size_t>(end - from, 4096));
    LogRecord record;
    if (RecordReader(line, hosts).next(record)) return true;
    if (trim(line) == "Job summary" || line.find("\"nccl_version\"") != std::string_view::npos) return true;
    from = end + 1;
  }
  return false;
}

}  // namespace topotune::parse
