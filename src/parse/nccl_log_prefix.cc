#include "parse/nccl_log_prefix.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "parse/nccl_log_scan.h"

namespace topotune::parse {
namespace {

constexpr auto kNone = std::string_view::npos;
constexpr std::size_t kLongestHost = 255;
constexpr std::size_t kLongestFront = 1024;  // of what may stand before a statement that lost its head

bool is_host_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '.' || c == '-' || c == '_';
}

// The digits that end right before `end`; nothing when there are none or too many for an int.
std::optional<int> digits_before(std::string_view text, std::size_t& end) {
  std::size_t begin = end;
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  const auto value = parse_int<int>(text.substr(begin, end - begin));
  if (value) end = begin;
  return value;
}

bool takes_back(std::string_view text, std::size_t& end, char c) {
  if (end == 0 || text[end - 1] != c) return false;
  --end;
  return true;
}

// The rest of a terminal escape: "[0m", "[1;32m" before a host name.
std::size_t after_escape(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin == 0 || text[begin - 1] != '[') return begin;
  std::size_t at = begin;
  while (at < end && is_digit(text[at])) ++at;
  return at > begin && at < end && text[at] == 'm' ? at + 1 : begin;
}

// Where the host that ends at `end` begins. "<name>" is a host too: some people write a placeholder.
std::size_t host_begin(std::string_view text, std::size_t end, std::size_t floor) {
  std::size_t begin = end;
  if (begin > floor && text[begin - 1] == '>') {
    const auto from = std::max(floor, end - std::min(end, kLongestHost));
    const auto open = text.substr(from, begin - 1 - from).rfind('<');
    if (open != kNone) return from + open;
  }
  while (begin > floor && is_host_char(text[begin - 1]) && end - begin < kLongestHost) --begin;
  return after_escape(text, begin, end);
}

// "[2025-05-10 23:09:41] " or "2025-05-10T23:09:41.123Z " right before the host.
std::string_view time_before(std::string_view text) {
  text = trim(text);
  if (text.ends_with(']')) {
    const auto open = text.rfind('[');
    if (open == kNone) return {};
    const auto inside = text.substr(open + 1, text.size() - open - 2);
    return inside.size() >= 8 && is_digit(inside.front()) && inside.find(':') != kNone ? inside
                                                                                       : std::string_view{};
  }
  const auto word = text.substr(text.find_last_of(" \t") + 1);
  const bool stamp = word.size() >= 19 && is_digit(word.front()) && word[4] == '-' && word.find(':') != kNone;
  return stamp ? word : std::string_view{};
}

// "20:13:32" looks like host:pid:tid.
bool is_clock(std::string_view text) {
  return text.size() == 8 && text.find_first_not_of("0123456789:") == kNone && text[2] == ':' &&
         text[5] == ':';
}

// "[rank3]", "[trainer-0:4711]": a tag of one word in place of the head. The name and process it holds, if
// any.
struct Tag {
  bool is_tag = false;
  std::string_view host;
  std::optional<int> pid;
};
Tag tag_of(std::string_view before) {
  Tag tag;
  if (before.size() < 3 || before.size() > 80 || before.front() != '[' || before.back() != ']') return tag;
  const auto inside = before.substr(1, before.size() - 2);
  if (inside.find_first_of(" \t[]\"") != kNone) return tag;
  tag.is_tag = true;
  const auto colon = inside.rfind(':');
  if (colon == kNone || colon == 0 || !std::ranges::all_of(inside.substr(0, colon), is_host_char)) return tag;
  tag.pid = parse_int<int>(inside.substr(colon + 1));
  if (tag.pid && !parse_int<int>(inside.substr(0, colon))) tag.host = inside.substr(0, colon);
  return tag;
}

// "node [0]", "node:xxx:xxx [0]", "dgx-01:": a head whose numbers were taken out before it was posted, alone
// or behind a time. Only "[0]" makes the word before it a host's name.
bool blank_head(std::string_view before, LogRecord& record) {
  std::optional<int> dev;
  if (before.ends_with(']')) {
    auto end = before.size() - 1;
    dev = digits_before(before, end);
    if (!dev || !takes_back(before, end, '[') || !takes_back(before, end, ' ')) return false;
    before = before.substr(0, end);
  } else if (!before.ends_with(':')) {
    return false;
  }
  const auto word = before.substr(before.find_last_of(" \t") + 1);
  const auto front = trim(before.substr(0, before.size() - word.size()));
  const auto host = word.substr(0, word.find(':'));
  if (word.empty() || (!front.empty() && time_before(front).empty()) || is_clock(word.substr(0, 8)))
    return false;
  if (!std::ranges::all_of(word, [](char c) { return is_host_char(c) || c == ':' || c == '*'; }))
    return false;
  if (dev && !host.empty() && host.size() <= kLongestHost && host.find_first_not_of("0123456789") != kNone)
    record.host = host, record.dev = dev;
  return true;
}

struct LevelWord {
  std::string_view word;
  LogLevel level;
};
constexpr std::array kLevels{LevelWord{"INFO", LogLevel::info}, LevelWord{"WARN", LogLevel::warn},
                             LevelWord{"CALL", LogLevel::call}, LevelWord{"TRACE", LogLevel::trace}};

// After "NCCL ": the level and the length of its word.
const LevelWord* level_at(std::string_view text) {
  for (const auto& level : kLevels) {
    if (!text.starts_with(level.word)) continue;
    if (text.size() == level.word.size() || text[level.word.size()] == ' ') return &level;
  }
  return nullptr;
}

// "init.cc:94" or "get_provider:312": a source place, the only thing that may stand before a warning without
// a host.
bool is_source(std::string_view word) {
  const auto colon = word.rfind(':');
  return colon != kNone && colon > 0 && parse_int<unsigned>(word.substr(colon + 1)).has_value() &&
         !is_clock(word);
}

}  // namespace

void KnownHosts::add(std::string_view host) {
  if (names_.size() < (1U << 20U)) names_.emplace(host);
}

std::string_view KnownHosts::longest_suffix(std::string_view token) const {
  for (std::size_t i = 0; i < token.size(); ++i)
    if (names_.find(token.substr(i)) != names_.end()) return token.substr(i);
  return {};
}

std::string_view trim_message_end(std::string_view text) {
  while (!text.empty()) {
    const char c = text.back();
    if (is_digit(c) || (c >= 'A' && c <= 'Z')) break;  // nearly every line
    std::size_t end = is_space(c) || c == '\0' || c == '\x1b' || (c == '*' && text.size() == 1) ||
                              (c == '`' && std::ranges::count(text, '`') == 1)
                          ? 1
                          : 0;
    // Markdown, a colour, the frame of a terminal's window, HTML.
    for (const std::string_view ending : {"**", "\x1b[0m", "\u2502", "<br>", "</td>"})
      if (text.ends_with(ending)) end = ending.size();
    if (end == 0) break;
    text.remove_suffix(end);
  }
  return text;
}

// The head that ends right before `end` (the blank before "NCCL" or before a source place is not part of it).
bool RecordReader::read_head(std::size_t end, std::size_t floor, Mark& mark) const {
  std::size_t at = end;
  std::optional<int> dev;
  if (takes_back(line_, at, ']')) {
    dev = digits_before(line_, at);
    if (!dev || !takes_back(line_, at, '[') || !takes_back(line_, at, ' ')) return false;
  }
  const auto ids_end = at;
  const auto tid = digits_before(line_, at);
  if (!tid || !takes_back(line_, at, ':')) return false;
  const auto pid = digits_before(line_, at);
  if (!pid || !takes_back(line_, at, ':')) return false;
  const auto begin = host_begin(line_, at, floor);
  if (begin == at) return false;
  if (is_clock(line_.substr(begin, ids_end - begin))) return false;
  mark.start = begin;
  mark.record.host = line_.substr(begin, at - begin);
  mark.record.pid = pid;
  mark.record.dev = dev;
  return true;
}

// "host:pid:tid [dev] NCCL INFO " at the very start: nearly every line.
bool RecordReader::fast_head(Mark& mark) const {
  std::size_t at = 0;
  while (at < line_.size() && is_host_char(line_[at])) ++at;
  if (at == 0 || at > kLongestHost) return false;
  if (at == 2 && is_clock(line_.substr(0, 8))) return false;  // or a short name's whole head: read slowly
  const auto host = line_.substr(0, at);
  Cursor in(line_.substr(at));
  in.expect(":");
  const auto pid = in.need<int>();
  in.expect(":").need<int>();
  const auto dev = in.expect(" [").need<int>();
  if (!in.expect("] NCCL INFO ").ok()) return false;
  mark.start = 0;
  mark.message = line_.size() - in.rest().size();
  mark.record = LogRecord{LogLevel::info, host, pid, dev, {}, {}, {}, false};
  return true;
}

// "NCCL version 2.7.8+cuda10.2" without a head: printed by printf up to 2.21, and for NCCL_DEBUG=VERSION.
bool RecordReader::banner_at(std::size_t word, Mark& mark) const {
  const auto text = line_.substr(word, 160);
  Cursor in(text.substr(5));
  if (!in.take("version ")) return false;
  in.take(": ");
  if (in.at_end() || !is_digit(in.rest().front())) return false;
  const auto version = in.until(" \t\r\n\x1b*");
  const bool full = version.find("+cuda") != kNone || version.find("+hip") != kNone;
  const auto before = trim(line_.substr(0, word));
  const bool behind_tag = before.empty() || std::string_view(":>]|)").find(before.back()) != kNone;
  const bool alone = behind_tag && trim_message_end(in.rest()).empty();
  // PyTorch: "NCCL error in: file:line, unhandled cuda error (…), NCCL version 2.26.2".
  const bool of_error = before.ends_with(',') && before.find("NCCL error in:") != kNone;
  if (!full && !in.rest().starts_with(" compiled with") && !alone && !of_error) return false;
  mark.start = mark.message = word;
  mark.record = LogRecord{LogLevel::banner, {}, {}, {}, {}, {}, {}, word != 0};
  return true;
}

// A record whose "NCCL" stands at `word`.
bool RecordReader::mark_at(std::size_t word, Mark& mark) const {
  const auto* level = level_at(line_.substr(word + 5));
  if (level == nullptr) return banner_at(word, mark);
  mark.record = LogRecord{};
  mark.record.level = level->level;
  mark.message = std::min(line_.size(), word + 5 + level->word.size() + 1);
  if (word == 0) return true;
  if (line_[word - 1] != ' ') return false;
  std::size_t end = word - 1;  // behind the head, or behind the source place
  if (read_head(end, floor_, mark)) return true;
  for (int words = 0; words < 3; ++words) {  // "file:line", "file:line (func)", "12.5 func:line"
    const auto blank = end == 0 ? kNone : line_.rfind(' ', end - 1);
    const auto begin = blank == kNone || blank < floor_ ? floor_ : blank + 1;
    const auto token = line_.substr(begin, end - begin);
    if (is_source(token)) mark.record.source = token;
    if (begin > floor_ && read_head(begin - 1, floor_, mark)) return true;
    if (begin == floor_ || token.empty()) break;
    end = begin - 1;
  }
  // No head: some tools strip it. Then only a source place, quotes or a time may stand before.
  if (word - floor_ > kLongestFront) return false;
  auto before = trim(line_.substr(floor_, word - floor_));
  if (!mark.record.source.empty() && before.ends_with(mark.record.source))
    before = trim(before.substr(0, before.size() - mark.record.source.size()));
  const auto stamp = time_before(before);
  while (!before.empty() && std::string_view(">*\"-`").find(before.back()) != kNone) before.remove_suffix(1);
  before = trim(before);
  mark.start = floor_;
  if (const auto tag = tag_of(before); tag.is_tag) {
    if (!tag.host.empty()) mark.record.host = tag.host, mark.record.pid = tag.pid;
    return true;
  }
  return before.empty() || blank_head(before, mark.record) || !stamp.empty() || !mark.record.source.empty() ||
         is_clock(before.substr(0, 8));
}

bool RecordReader::find_mark(std::size_t from, Mark& mark) const {
  for (std::size_t at = from;; ++at) {
    at = find_from(line_, "CCL ", at);
    if (at == kNone) return false;
    if (at == 0 || (line_[at - 1] != 'N' && line_[at - 1] != 'R')) continue;
    if (at - 1 >= floor_ && mark_at(at - 1, mark)) return true;
  }
}

// Up to 2.2: "host:pid:tid [0] INFO text" and "host:pid:tid [0] file:line WARN text".
bool RecordReader::find_old_mark(Mark& mark) const {
  for (const std::string_view word : {" INFO ", " WARN "}) {
    for (auto at = find_from(line_, word, 0); at != kNone; at = find_from(line_, word, at + 1)) {
      mark.record = LogRecord{};
      mark.record.level = word == " INFO " ? LogLevel::info : LogLevel::warn;
      mark.message = at + word.size();
      if (mark.record.level == LogLevel::info && read_head(at, 0, mark) && mark.record.dev) return true;
      const auto blank = at == 0 ? kNone : line_.rfind(' ', at - 1);
      if (blank == kNone) continue;
      mark.record.source = line_.substr(blank + 1, at - blank - 1);
      if (is_source(mark.record.source) && read_head(blank, 0, mark) && mark.record.dev) return true;
    }
  }
  return false;
}

void RecordReader::fix_glued_host(Mark& mark) const {
  const bool alone = trim(line_.substr(floor_, mark.start - std::min(mark.start, floor_))).empty();
  if (alone && floor_ == 0) return;
  const auto known = hosts_.longest_suffix(mark.record.host);
  if (known.empty()) return;
  mark.start += mark.record.host.size() - known.size();
  mark.record.host = known;
}

namespace {

// A cell or a JSON text: what stands behind its closing quote is not the message's.
std::string_view without_quote(std::string_view text, char quote) {
  for (auto at = text.find(quote); at != kNone; at = text.find(quote, at + 1)) {
    if (at > 0 && text[at - 1] == '\\') continue;
    const auto next = text.find_first_not_of(' ', at + 1);
    if (next != kNone && text[next] != '}' && text[next] != ',') continue;
    text = text.substr(0, at);
    while (text.ends_with("\\n")) text.remove_suffix(2);
    return text;
  }
  return text;
}

// "…[1,3]<stdout>:": the launcher's tag belongs to the record that follows on the same line.
std::string_view without_tag(std::string_view text) {
  if (!text.ends_with(">:")) return text;
  const auto open = text.rfind('[');
  if (open == kNone || text.size() - open > 40 || text.find('<', open) == kNone) return text;
  return text.substr(0, open);
}

}  // namespace

// A launcher's tag and the head, where they may stand before other lines too: no time, no other program's
// words.
std::size_t RecordReader::repeated_head(const Mark& mark) const {
  constexpr std::string_view kWord = "] NCCL INFO ";
  const auto& r = mark.record;
  if (r.level != LogLevel::info || !r.dev || !r.time.empty() || mark.start > 24) return 0;
  const auto tag = line_.substr(0, mark.start);
  const auto digits = static_cast<std::size_t>(std::ranges::count_if(tag, is_digit));
  if (digits > 8 || tag.find_first_of("{\"") != kNone) return 0;
  const auto end = mark.message - std::min(mark.message, kWord.size());
  return line_.substr(end).starts_with(kWord) ? end : 0;
}

bool RecordReader::next(LogRecord& record) {
  if (!started_) {
    started_ = true;
    more_ = fast_head(ahead_);
    if (more_) head_length_ = ahead_.message - std::string_view("] NCCL INFO ").size();
    if (!more_) {
      more_ = find_mark(0, ahead_) || find_old_mark(ahead_);
      if (more_ && !ahead_.record.host.empty()) fix_glued_host(ahead_);
    }
    foreign_ = line_.substr(0, more_ ? ahead_.start : kNone);
    ahead_.record.shared_line = false;
    if (more_) ahead_.record.time = time_before(foreign_);
    if (more_ && head_length_ == 0) head_length_ = repeated_head(ahead_);
  }
  if (!more_) return false;
  Mark mark = ahead_;
  // A banner's message begins with the word that marks it; "NCCL INFO NCCL version …" is one record too.
  floor_ = mark.message + (mark.record.level == LogLevel::banner ? 1 : 0);
  // The next record of the line bounds this one's message.
  more_ = find_mark(floor_, ahead_) && ahead_.start >= floor_;
  if (more_ && ahead_.record.level == LogLevel::banner && ahead_.start == mark.message)
    more_ = find_mark(mark.message + 5, ahead_) && ahead_.start >= floor_;
  if (more_ && !ahead_.record.host.empty()) fix_glued_host(ahead_);
  ahead_.record.shared_line = true;
  record = mark.record;
  auto message = line_.substr(mark.message, (more_ ? ahead_.start : line_.size()) - mark.message);
  if (more_) message = without_tag(message);
  if (!more_ && !mark.record.shared_line && !foreign_.empty() &&
      (foreign_.back() == '"' || foreign_.back() == '\''))
    message = without_quote(message, foreign_.back());
  record.message = trim_message_end(message);
  return true;
}

namespace {

void unescape(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    const char c = text[++i];
    out.push_back(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? ' ' : c);
    if (c == 'u' && text.substr(i + 1, 4) == "001b") {
      out.back() = '\x1b';
      i += 4;
    }
  }
}

}  // namespace

std::optional<std::string> unwrap_json_line(std::string_view line) {
  const auto start = line.find_first_not_of(" \t");
  if (start == kNone || line[start] != '{') return std::nullopt;
  for (const std::string_view key :
       {"\"log\":", "\"message\":", "\"msg\":", "\"textPayload\":", "\"line\":", "\"_line\":"}) {
    auto at = line.find(key);
    if (at == kNone) continue;
    at = line.find_first_not_of(' ', at + key.size());
    if (at == kNone || line[at] != '"') continue;
    std::size_t end = at + 1;
    while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
    std::string out;
    unescape(line.substr(at + 1, std::min(end, line.size()) - at - 1), out);
    return out;
  }
  return std::nullopt;
}

}  // namespace topotune::parse
