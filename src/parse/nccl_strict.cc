#include "parse/nccl_strict.h"

#include <fmt/format.h>

#include <optional>

#include "base/text.h"

namespace topotune::parse {
namespace {

constexpr std::size_t kMaxText = 254;       // MAX_STR_LEN of xml.h: longer names and values are refused
constexpr std::size_t kMaxAttributes = 16;  // MAX_ATTR_COUNT
constexpr std::size_t kMaxOpen = 100'000;   // NCCL's node limits end a file long before

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<StrictProblem> run() {
    while (!stopped_ && next_element()) {
    }
    if (!stopped_ && !open_.empty())
      fatal(open_.back().at, fmt::format("<{}> is never closed", printable(open_.back().name)));
    return std::move(problems_);
  }

 private:
  struct Open {
    std::string_view name;
    std::size_t at;
  };

  // Names and values end the reader where NCCL's would; nothing: a fatal problem was said.
  std::optional<std::string_view> name();
  bool value();
  bool attributes();
  bool next_element();
  bool comment();
  bool close_element();
  bool open_element(std::size_t at);
  bool check_system(std::size_t at);

  void say(std::size_t at, std::string text, bool fatal) {
    if (problems_.size() >= kMaxStrictProblems && !fatal) return;
    advance(at);
    problems_.push_back({line_, static_cast<int>(at - line_start_) + 1, std::move(text), fatal});
  }
  bool fatal(std::size_t at, std::string text) {
    say(at, std::move(text), true);
    stopped_ = true;
    return false;
  }
  // Problems come in the order of the text, so that lines are counted once.
  void advance(std::size_t at) {
    if (at < counted_) {  // an element that was opened before and never closed: the last problem
      counted_ = line_start_ = 0;
      line_ = 1;
    }
    for (; counted_ < at && counted_ < text_.size(); ++counted_) {
      if (text_[counted_] != '\n') continue;
      ++line_;
      line_start_ = counted_ + 1;
    }
  }
  char peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }
  bool at_end() const { return pos_ >= text_.size(); }

  std::string_view text_;
  std::size_t pos_ = 0, counted_ = 0, line_start_ = 0;
  int line_ = 1;
  bool stopped_ = false;
  std::vector<Open> open_;
  std::vector<StrictProblem> problems_;
  std::optional<std::string_view> version_;
  std::string_view value_;
};

std::string shown(char c) {
  if (c == '\t') return "a TAB";
  if (c == '\n' || c == '\r') return "a line break";
  return c == '\0' ? "the end of the file" : fmt::format("'{}'", printable(std::string_view(&c, 1)));
}

std::optional<std::string_view> Reader::name() {
  const auto start = pos_;
  constexpr std::string_view kEnds = " >/\n\r=";
  const auto end = text_.find_first_of(kEnds, start);
  if (end == std::string_view::npos) {
    fatal(text_.size(), "the file ends inside a tag");
    return std::nullopt;
  }
  const auto word = text_.substr(start, end - start);
  pos_ = end;
  if (const auto tab = word.find('\t'); tab != std::string_view::npos) {
    fatal(start + tab, "a TAB inside a tag: NCCL takes blanks only");
    return std::nullopt;
  }
  if (word.size() < kMaxText) return word;
  fatal(start, fmt::format("a name of {} characters; NCCL takes 253", word.size()));
  return std::nullopt;
}

bool Reader::value() {
  const char quote = peek();
  if (quote != '"' && quote != '\'')
    return fatal(pos_, fmt::format("a value without quotes: {}", shown(quote)));
  const auto start = ++pos_;
  const auto end = text_.find(quote, start);
  if (end == std::string_view::npos) return fatal(start, "a value whose quote is never closed");
  value_ = text_.substr(start, end - start);
  if (value_.size() >= kMaxText)
    return fatal(start, fmt::format("a value of {} characters; NCCL takes 253", value_.size()));
  pos_ = end + 1;
  return true;
}

// Attributes stand one blank apart and on the line of their tag.
bool Reader::attributes() {
  std::size_t count = 0;
  while (peek() == ' ') {
    const auto at = ++pos_;
    const auto key = name();
    if (!key) return false;
    if (key->empty() && peek() != '=') {
      if (peek() == ' ')
        say(at, "two blanks between attributes: NCCL loses one of its 16 attribute slots", false);
      ++count;
      continue;
    }
    if (peek() == '=') {
      ++pos_;
      if (!value()) return false;
      if (*key == "version" && open_.empty()) version_ = value_;
    }
    if (++count == kMaxAttributes + 1) say(at, "more than 16 attributes: NCCL drops the others", false);
  }
  return true;
}

bool Reader::comment() {
  const auto end = text_.find("-->", pos_);
  if (end == std::string_view::npos) return fatal(pos_, "a comment that is never closed");
  pos_ = end + 3;
  return true;
}

bool Reader::close_element() {
  const auto at = ++pos_;
  const auto word = name();
  if (!word) return false;
  if (peek() != '>') return fatal(pos_, fmt::format("expected > in a closing tag, got {}", shown(peek())));
  ++pos_;
  if (open_.empty()) return fatal(at, fmt::format("</{}> closes nothing", printable(*word)));
  if (open_.back().name != *word)
    return fatal(at, fmt::format("</{}> stands where <{}> should be closed", printable(*word),
                                 printable(open_.back().name)));
  open_.pop_back();
  return true;
}

bool Reader::check_system(std::size_t at) {
  if (!version_) return fatal(at, "<system> has no version");
  if (*version_ == "1") return true;
  return fatal(at, fmt::format("<system version=\"{}\">: NCCL reads version 1", printable(*version_)));
}

bool Reader::open_element(std::size_t at) {
  version_.reset();
  const auto word = name();
  if (!word) return false;
  if (word->starts_with("?")) return fatal(at, "an XML prolog (<?xml …?>): NCCL has no place for one");
  if (peek() == '=') return fatal(pos_, "a value with no attribute");
  if (!attributes()) return false;
  const bool single = peek() == '/';
  if (single) ++pos_;
  if (peek() != '>') return fatal(pos_, fmt::format("expected >, got {}", shown(peek())));
  ++pos_;
  if (open_.empty() && *word == "system" && !check_system(at)) return false;
  if (!single) open_.push_back({*word, at});
  if (open_.size() > kMaxOpen) return fatal(at, "elements nest deeper than any topology");
  return true;
}

bool Reader::next_element() {
  while (peek() == ' ' || peek() == '\n' || peek() == '\r') ++pos_;
  if (at_end()) return false;
  const auto at = pos_;
  if (peek() != '<') return fatal(at, fmt::format("expected <, got {}", shown(peek())));
  ++pos_;
  if (text_.substr(pos_).starts_with("!--")) return comment();
  return peek() == '/' ? close_element() : open_element(at);
}

}  // namespace

std::vector<StrictProblem> nccl_problems(std::string_view text) { return Reader(text).run(); }

}  // namespace topotune::parse
