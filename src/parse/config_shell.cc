#include "parse/config_shell.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "base/text.h"
#include "parse/config_shell_state.h"

namespace topotune::parse {

namespace {

using sv = std::string_view;
using shell::State;
using shell::Word;

constexpr int kMaxBlocks = 200;
// How far the end of ${...} and of ((...)) is looked for: what is longer is read as plain text.
constexpr std::size_t kMaxExpansion = 1024;

bool is_meta(char c) {
  return c == '|' || c == '&' || c == ';' || c == '<' || c == '>' || c == '(' || c == ')' || is_space(c);
}
// Characters that the reading of a word looks at; all others stand for themselves.
bool ends_plain_run(char c) {
  return is_meta(c) || c == '\\' || c == '\'' || c == '"' || c == '`' || c == '$' || c == '=';
}
bool ends_quoted_run(char c) { return c == '"' || c == '\\' || c == '$' || c == '`' || c == '\n'; }
bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}
bool is_one_of(sv word, std::initializer_list<sv> list) {
  return std::ranges::find(list, word) != list.end();
}

const std::array<bool, 256> kEndsPlainRun = [] {
  std::array<bool, 256> out{};
  for (int c = 0; c < 256; ++c) out[static_cast<std::size_t>(c)] = ends_plain_run(static_cast<char>(c));
  return out;
}();

struct HereDocument {
  std::string delimiter;
  bool strip_tabs = false;
  Place at;
  int command = -1;  // index of the command it feeds
};

// What has been opened and not yet closed.
struct Open {
  enum Kind { if_, loop, case_, brace, paren, function } kind;
  int block;
  bool pattern = false;  // case: in front of a pattern's ")"
};

// Reads one level: the whole text, or what stands in $(...), `...`, <(...).
class Scanner {
 public:
  Scanner(State& state, std::size_t begin, std::size_t end, char closer, int depth, int block)
      : s_(state), i_(begin), end_(end), closer_(closer), depth_(depth), root_block_(block) {}

  // Returns the offset behind the closer (or the end).
  std::size_t run();

 private:
  char peek(std::size_t ahead = 0) const { return i_ + ahead < end_ ? s_.text[i_ + ahead] : '\0'; }
  bool at_end() const { return i_ >= end_; }
  int block() const { return open_.empty() ? root_block_ : open_.back().block; }

  bool step();  // false: the closer was met
  void skip_blanks();
  void read_comment();
  bool operators();
  bool close_paren();
  void newline();

  Word read_word();
  void plain_run(Word& word);
  bool read_action(Word& word);
  void read_single(Word& word);
  void read_ansi(Word& word);
  void read_double(Word& word);
  void read_dollar(Word& word, bool quoted);
  void read_braced(Word& word, bool quoted);
  void assign_default(sv name, sv text, std::size_t at);
  void read_backticks(Word& word, bool quoted);
  void substitute(std::size_t skip);
  bool skip_arithmetic();
  void use_variable(sv name, Word& word, bool quoted);
  static void append_unknown(Word& word, sv source);
  void read_array(Word& word);
  std::size_t quote_end(char quote) const;

  void take_word();
  bool reserved(sv word);
  void open_block(Open::Kind kind);
  void close_block(Open::Kind kind);
  void begin_loop(sv keyword);
  void redirect();
  void end_command(sv terminator);
  void finish_loop_header(std::size_t end);
  void here_documents();
  void feed(const HereDocument& doc, std::size_t begin, std::size_t end);

  State& s_;
  std::size_t i_, end_;
  char closer_;
  int depth_, root_block_;
  std::vector<Open> open_;
  std::vector<HereDocument> pending_;
  std::vector<Word> words_;
  std::vector<Redirect> redirects_;
  std::size_t command_begin_ = 0, pipeline_begin_ = 0;
  bool in_pipeline_ = false;
  bool after_test_ = false;  // the next command hangs on && or ||
  int loop_ = -1, closed_loop_ = -1, reading_loop_ = -1;
  std::size_t loop_begin_ = 0, closed_loop_begin_ = 0;
  std::vector<int> loops_;
  bool in_words_of_for_ = false, in_case_word_ = false, in_test_ = false;
  std::string function_;
};

std::size_t Scanner::run() {
  pipeline_begin_ = i_;
  while (!at_end())
    if (step()) return i_;
  end_command("");
  if (closer_ != '\0') s_.diagnose(i_, fmt::format("'{}' is missing", closer_));
  here_documents();
  return i_;
}

// True: the closer was met and passed.
bool Scanner::step() {
  skip_blanks();
  if (at_end()) return false;
  const char c = peek();
  if (c == '\n' || c == '\r') {
    newline();
    return false;
  }
  if (c == '#') {
    read_comment();
    return false;
  }
  if (c == ')' && !in_test_) return close_paren();
  if (c == '`' && closer_ == '`') {
    end_command("");
    ++i_;
    return true;
  }
  if (!in_test_ && operators()) return false;
  take_word();
  return false;
}

void Scanner::skip_blanks() {
  while (!at_end()) {
    if (peek() == ' ' || peek() == '\t' || peek() == '\v' || peek() == '\f' || peek() == '\0') {
      ++i_;
    } else if (peek() == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      i_ += peek(1) == '\n' ? 2 : 3;
    } else {
      return;
    }
  }
}

void Scanner::read_comment() {
  const std::size_t begin = i_;
  i_ = std::min(s_.text.find('\n', i_), end_);
  const sv text = trim(s_.text.substr(begin + 1, i_ - begin - 1));
  const Place at = s_.place(begin);
  if (text.starts_with("SBATCH ")) shell::directive(s_, text.substr(7), at);
  if (text.starts_with("PBS ")) shell::pbs_directive(s_, text.substr(4), at);
  s_.out.comments.push_back({at.line, std::string(text), words_.empty()});
}

void Scanner::newline() {
  end_command("\n");
  i_ += peek() == '\r' && peek(1) == '\n' ? 2 : 1;
  in_pipeline_ = false;
  here_documents();
  pipeline_begin_ = i_;
}

bool Scanner::close_paren() {
  if (!open_.empty() && open_.back().kind == Open::case_ && open_.back().pattern) {
    words_.clear();
    ++i_;
    open_.back().pattern = false;
    open_.back().block = s_.new_block(open_.size() > 1 ? open_[open_.size() - 2].block : root_block_, true);
    return false;
  }
  end_command(")");
  ++i_;
  if (!open_.empty() && open_.back().kind == Open::paren) {
    open_.pop_back();
    return false;
  }
  const bool nested = std::ranges::any_of(open_, [](const Open& one) { return one.kind == Open::paren; });
  return closer_ == ')' && !nested;
}

// Takes ; & | && || ( < > and what follows them. False: the character begins a word.
bool Scanner::operators() {
  const char c = peek();
  if (c == ';') {
    end_command(";");
    i_ += 1;
    if (peek() == ';' || peek() == '&') {
      while (peek() == ';' || peek() == '&') ++i_;
      if (!open_.empty() && open_.back().kind == Open::case_) open_.back().pattern = true;
    }
    return true;
  }
  if (c == '&' && peek(1) == '>') {
    redirect();
    return true;
  }
  if (c == '&' || c == '|') {
    const bool both = peek(1) == c;
    const sv op = both ? (c == '&' ? "&&" : "||") : (c == '&' ? "&" : "|");
    end_command(op);
    i_ += both || (c == '|' && peek(1) == '&') ? 2 : 1;
    return true;
  }
  if (c == '(') {
    if (words_.size() == 1 && is_variable_name(words_[0].text) && !words_[0].quoted) {  // name() { ... }
      std::size_t j = i_ + 1;
      while (j < end_ && (s_.text[j] == ' ' || s_.text[j] == '\t')) ++j;
      if (j < end_ && s_.text[j] == ')') {
        s_.out.functions.insert(words_[0].text);
        function_ = words_[0].text;
        words_.clear();
        i_ = j + 1;
        open_block(Open::function);
        return true;
      }
    }
    if (!open_.empty() && open_.back().kind == Open::case_ && open_.back().pattern) {
      ++i_;
      return true;
    }
    if (words_.empty() && peek(1) == '(' && skip_arithmetic()) return true;
    end_command("(");
    ++i_;
    open_block(Open::paren);
    return true;
  }
  if (c == '<' || c == '>') {
    if (peek(1) == '(') return false;  // process substitution: part of a word
    redirect();
    return true;
  }
  return false;
}

// (( ... )): kept as a command of one word, for rules that look at thresholds.
bool Scanner::skip_arithmetic() {
  int depth = 0;
  const std::size_t stop = std::min(end_, i_ + kMaxExpansion);
  for (std::size_t j = i_; j < stop && s_.text[j] != '\n'; ++j) {
    if (s_.text[j] == '(') ++depth;
    if (s_.text[j] == ')' && --depth == 0) {
      Word word;
      word.text = std::string(s_.text.substr(i_, j + 1 - i_));
      word.span = {i_, j + 1};
      shell::note_reads(s_, word.text);
      command_begin_ = i_;
      words_.push_back(std::move(word));
      i_ = j + 1;
      return true;
    }
  }
  return false;
}

std::size_t Scanner::quote_end(char quote) const {
  for (std::size_t j = i_; j < end_; ++j) {
    if (s_.text[j] == '\\' && quote != '\'') {
      ++j;
    } else if (s_.text[j] == quote) {
      return j;
    } else if (s_.text[j] == '\n' && s_.line_limited) {
      return sv::npos;
    }
  }
  return sv::npos;
}

void Scanner::read_single(Word& word) {
  const std::size_t begin = i_++;
  std::size_t close = quote_end('\'');
  if (close == sv::npos) {
    s_.unbalanced(begin, '\'');
    close = std::min(s_.text.find('\n', i_), end_);
    word.text += s_.text.substr(i_, close - i_);
    i_ = close;
    return;
  }
  word.text += s_.text.substr(i_, close - i_);
  word.quoted = true;
  i_ = close + 1;
}

void Scanner::read_ansi(Word& word) {  // $'...'
  i_ += 2;
  word.quoted = true;
  while (!at_end() && peek() != '\'') {
    if (peek() == '\\' && i_ + 1 < end_) {
      ++i_;
      word.text += peek() == 'n' ? '\n' : peek() == 't' ? '\t' : peek();
    } else {
      word.text += peek();
    }
    ++i_;
  }
  if (!at_end()) ++i_;
}

void Scanner::read_double(Word& word) {
  const std::size_t begin = i_++;
  word.quoted = true;
  while (!at_end() && peek() != '"') {
    const char c = peek();
    if (c == '\n' && s_.line_limited) break;
    if (c == '\\' && i_ + 1 < end_) {
      const char next = peek(1);
      if (next != '\n') {
        if (next != '"' && next != '\\' && next != '$' && next != '`') word.text += c;
        word.text += next;
      }
      i_ += 2;
    } else if (c == '$') {
      read_dollar(word, true);
    } else if (c == '`' && closer_ != '`') {
      read_backticks(word, true);
    } else {
      std::size_t end = i_ + 1;
      while (end < end_ && !ends_quoted_run(s_.text[end])) ++end;
      word.text += s_.text.substr(i_, end - i_);
      i_ = end;
    }
  }
  if (peek() == '"' && !at_end()) {
    ++i_;
  } else {
    s_.unbalanced(begin, '"');
  }
}

void Scanner::append_unknown(Word& word, sv source) {
  word.text += source;
  word.known = false;
}

void Scanner::use_variable(sv name, Word& word, bool quoted) {
  s_.out.reads.emplace(name);
  const auto* value = s_.value_of(name, block());
  if (value == nullptr) return append_unknown(word, fmt::format("${}", name));
  if (!value->known) return append_unknown(word, fmt::format("${}", name));
  if (!quoted && word.text.empty() && (is_space(peek()) || at_end() || peek() == ';'))
    word.fields = value->array;
  word.text += value->text;
}

void Scanner::read_dollar(Word& word, bool quoted) {
  const char next = peek(1);
  if (next == '(') {
    if (peek(2) == '(') {  // $(( ... ))
      const std::size_t begin = i_;
      int depth = 0;
      for (std::size_t j = i_ + 1; j < std::min(end_, i_ + kMaxExpansion) && s_.text[j] != '\n'; ++j) {
        if (s_.text[j] == '(') ++depth;
        if (s_.text[j] == ')' && --depth == 0) {
          shell::note_reads(s_, s_.text.substr(begin, j - begin));
          append_unknown(word, s_.text.substr(begin, j + 1 - begin));
          i_ = j + 1;
          return;
        }
      }
    }
    const std::size_t begin = i_;
    substitute(2);
    append_unknown(word, s_.text.substr(begin, std::min<std::size_t>(i_ - begin, 200)));
    return;
  }
  if (next == '{') return read_braced(word, quoted);
  if (next == '\'' && !quoted) return read_ansi(word);
  if (next == '"' && !quoted) {
    ++i_;
    return;
  }
  std::size_t j = i_ + 1;
  if (j < end_ && (is_digit(s_.text[j]) || sv("@*#?!-$").find(s_.text[j]) != sv::npos)) {
    append_unknown(word, s_.text.substr(i_, 2));
    i_ += 2;
    return;
  }
  while (j < end_ && is_name_char(s_.text[j])) ++j;
  if (j == i_ + 1) {
    word.text += '$';
    ++i_;
    return;
  }
  const sv name = s_.text.substr(i_ + 1, j - i_ - 1);
  i_ = j;
  use_variable(name, word, quoted);
}

// ${NAME}, ${NAME:-default}, ${NAME[@]}; everything else is not decided.
void Scanner::read_braced(Word& word, bool quoted) {
  const std::size_t begin = i_;
  int depth = 0;
  std::size_t j = i_ + 1;
  const std::size_t stop = std::min(end_, i_ + kMaxExpansion);
  for (; j < stop && s_.text[j] != '\n'; ++j) {
    if (s_.text[j] == '\\') {
      ++j;
    } else if (s_.text[j] == '{') {
      ++depth;
    } else if (s_.text[j] == '}' && --depth == 0) {
      break;
    }
  }
  if (j >= stop || s_.text[j] != '}') {
    s_.diagnose(begin, "'}' is missing");
    append_unknown(word, "$");
    ++i_;
    return;
  }
  const sv inner = s_.text.substr(begin + 2, j - begin - 2);
  std::size_t n = 0;
  while (n < inner.size() && is_name_char(inner[n])) ++n;
  const sv name = inner.substr(0, n);
  const sv rest = inner.substr(n);
  i_ = j + 1;
  if (name.empty()) return append_unknown(word, s_.text.substr(begin, i_ - begin));
  s_.out.reads.emplace(name);
  const auto* value = s_.value_of(name, block());
  const bool set = value != nullptr && value->known;
  if (rest.empty()) return use_variable(name, word, quoted);
  if (is_one_of(rest, {"[@]", "[*]"}) && set && !value->array.empty()) {
    word.fields = value->array;
    word.text += value->text;
    return;
  }
  const bool fallback =
      rest.starts_with(":-") || rest.starts_with(":=") || rest.starts_with('-') || rest.starts_with('=');
  if (!fallback) return append_unknown(word, s_.text.substr(begin, i_ - begin));
  if (set) {
    word.text += value->text;
    return;
  }
  sv text = rest.substr(rest.starts_with(':') ? 2 : 1);
  if (text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0])
    text = text.substr(1, text.size() - 2);
  if (text.find_first_of("$`") != sv::npos) return append_unknown(word, s_.text.substr(begin, i_ - begin));
  // An empty one hands on what was inherited: what that is, the text does not decide.
  if (text.empty()) return append_unknown(word, s_.text.substr(begin, i_ - begin));
  word.text += text;
  word.by_default = true;
  if (rest.starts_with(":=") || rest.starts_with('=')) assign_default(name, text, begin);
}

// ${NAME:=value} sets the shell's variable; `export NAME` may publish it.
void Scanner::assign_default(sv name, sv text, std::size_t at) {
  shell::Variable value;
  value.text = text;
  value.block = block();
  s_.remember(std::string(name), std::move(value));
  Setting one;
  one.name = name;
  one.value = text;
  one.at = s_.place(at);
  one.conditional = s_.conditional(block());
  s_.unexported.insert_or_assign(one.name, one);
}

// `skip` characters open it; everything up to the matching ")" is read as commands of its own.
void Scanner::substitute(std::size_t skip) {
  i_ += skip;
  if (depth_ >= kMaxNesting) {
    s_.diagnose(i_, "nested too deeply: read as plain text");
    i_ = std::min(s_.text.find('\n', i_), end_);
    return;
  }
  Scanner inner(s_, i_, end_, ')', depth_ + 1, s_.new_block(block(), false));
  i_ = inner.run();
}

void Scanner::read_backticks(Word& word, bool quoted) {
  const std::size_t begin = i_++;
  const std::size_t close = quote_end('`');
  if (close == sv::npos) {
    s_.unbalanced(begin, '`');
    word.text += '`';
    return;
  }
  if (depth_ < kMaxNesting) {
    Scanner inner(s_, i_, close, '\0', depth_ + 1, s_.new_block(block(), false));
    inner.run();
  }
  i_ = close + 1;
  append_unknown(word, s_.text.substr(begin, std::min<std::size_t>(i_ - begin, 200)));
  (void)quoted;
}

// NAME=( ... ): the words become the variable's fields.
void Scanner::read_array(Word& word) {
  ++i_;
  word.is_array = true;
  while (!at_end() && peek() != ')') {
    skip_blanks();
    if (peek() == '\n' || peek() == '\r') {
      ++i_;
    } else if (peek() == '#') {
      while (!at_end() && peek() != '\n') ++i_;
    } else if (!at_end() && peek() != ')') {
      const std::size_t before = i_;
      Word item = read_word();
      if (i_ == before) {
        ++i_;
        continue;
      }
      word.known = word.known && item.known;
      word.text += (word.fields.empty() ? "" : " ") + item.text;
      word.fields.push_back(std::move(item.text));
    }
  }
  if (!at_end()) ++i_;
}

// The characters up to the next one that ends a run; the one at hand is taken in any case.
void Scanner::plain_run(Word& word) {
  std::size_t end = i_ + 1;
  while (end < end_ && !kEndsPlainRun[static_cast<unsigned char>(s_.text[end])]) ++end;
  word.text += s_.text.substr(i_, end - i_);
  i_ = end;
}

// "{{ x }}" of a template is one word that the text does not decide.
bool Scanner::read_action(Word& word) {
  if (peek(2) != ' ' && peek(2) != '-') return false;
  const sv rest = s_.text.substr(i_, std::min(end_ - i_, kMaxExpansion));
  const auto close = rest.substr(0, rest.find('\n')).find("}}");
  if (close == sv::npos) return false;
  append_unknown(word, rest.substr(0, close + 2));
  i_ += close + 2;
  return true;
}

Word Scanner::read_word() {
  Word word;
  word.span.begin = i_;
  while (!at_end()) {
    const char c = peek();
    if (in_test_ && (c == '(' || c == ')' || c == '<' || c == '>' || c == '|' || c == '&')) {
      word.text += c;
      ++i_;
      continue;
    }
    if ((c == '<' || c == '>') && peek(1) == '(') {
      substitute(2);
      append_unknown(word, "/dev/fd");
      continue;
    }
    if (is_meta(c) || (c == '`' && closer_ == '`')) break;
    if (c == '\\') {
      if (peek(1) == '\n') {
        i_ += 2;
      } else {
        if (i_ + 1 < end_) word.text += peek(1);
        i_ = std::min(i_ + 2, end_);
      }
      word.quoted = true;
    } else if (c == '\'') {
      read_single(word);
    } else if (c == '"') {
      read_double(word);
    } else if (c == '`') {
      read_backticks(word, false);
    } else if (c == '$') {
      read_dollar(word, false);
    } else if (c == '{' && peek(1) == '{' && read_action(word)) {
      continue;
    } else if (c != '=') {
      plain_run(word);
    } else {
      word.text += c;
      ++i_;
      if (word.assignment == 0 && !word.quoted) {
        const sv raw = s_.text.substr(word.span.begin, i_ - word.span.begin - 1);
        const sv name = raw.ends_with('+') ? raw.substr(0, raw.size() - 1) : raw;
        if (is_variable_name(name)) {
          word.assignment = word.text.size();
          word.value_begin = i_;
          if (peek() == '(' && depth_ < kMaxNesting) {
            const std::string head = word.text;
            Word array;
            read_array(array);
            word.is_array = true;
            word.known = array.known;
            word.fields = std::move(array.fields);
            word.text = head + array.text;
            break;
          }
        }
      }
    }
  }
  word.span.end = i_;
  return word;
}

void Scanner::take_word() {
  if (words_.empty()) command_begin_ = i_;
  const std::size_t before = i_;
  Word word = read_word();
  if (i_ == before) {
    ++i_;  // a character that begins nothing
    return;
  }
  if (is_one_of(word.text, {"]]"}) && in_test_) in_test_ = false;
  if (words_.empty() && !word.quoted && word.known && reserved(word.text)) return;
  if (in_case_word_ && word.text == "in") {
    words_.clear();
    in_case_word_ = false;
    if (!open_.empty()) open_.back().pattern = true;
    return;
  }
  if (word.text == "[[" && words_.empty()) in_test_ = true;
  words_.push_back(std::move(word));
}

void Scanner::open_block(Open::Kind kind) {
  if (static_cast<int>(open_.size()) >= kMaxBlocks) return;
  const bool conditional = kind != Open::brace && kind != Open::paren && kind != Open::function;
  open_.push_back({kind, kind == Open::brace ? block() : s_.new_block(block(), conditional)});
}

void Scanner::close_block(Open::Kind kind) {
  for (std::size_t n = open_.size(); n > 0; --n) {
    if (open_[n - 1].kind != kind) continue;
    open_.resize(n - 1);
    // The braces of a function's body close the function.
    if (kind == Open::brace && !open_.empty() && open_.back().kind == Open::function) {
      open_.pop_back();
      function_.clear();
    }
    return;
  }
}

void Scanner::begin_loop(sv keyword) {
  loop_begin_ = in_pipeline_ ? pipeline_begin_ : i_ - keyword.size();
  reading_loop_ = static_cast<int>(s_.out.loops.size());
  s_.out.loops.push_back({"", "", s_.place(i_ - keyword.size())});
}

void Scanner::finish_loop_header(std::size_t end) {
  if (reading_loop_ < 0) return;
  auto& loop = s_.out.loops[static_cast<std::size_t>(reading_loop_)];
  loop.header = std::string(s_.text.substr(loop_begin_, std::min<std::size_t>(end - loop_begin_, 4096)));
  if (in_words_of_for_ && !words_.empty()) loop.variable = words_[0].text;
}

// Keywords at the beginning of a command. True: the word was one.
bool Scanner::reserved(sv word) {
  if (open_.size() && open_.back().kind == Open::case_ && open_.back().pattern && word != "esac")
    return false;
  if (word == "if") {
    open_block(Open::if_);
  } else if (is_one_of(word, {"then", "!", "coproc"}) ||
             (word == "time" && peek() == ' ' && peek(1) != '-')) {
    // The condition was read in the block that the branch keeps; the others modify the command that follows.
  } else if (is_one_of(word, {"else", "elif"})) {
    close_block(Open::if_);
    open_block(Open::if_);
  } else if (word == "fi") {
    close_block(Open::if_);
  } else if (is_one_of(word, {"for", "select"})) {
    begin_loop(word);
    in_words_of_for_ = true;
  } else if (is_one_of(word, {"while", "until"})) {
    begin_loop(word);
  } else if (word == "do") {
    finish_loop_header(i_ - 2);
    in_words_of_for_ = false;
    open_block(Open::loop);
    loops_.push_back(reading_loop_ >= 0 ? reading_loop_ : loop_);
    loop_ = loops_.back();
    reading_loop_ = -1;
  } else if (word == "done") {
    close_block(Open::loop);
    if (!loops_.empty()) {
      closed_loop_ = loops_.back();
      closed_loop_begin_ = i_;
      loops_.pop_back();
    }
    loop_ = loops_.empty() ? -1 : loops_.back();
  } else if (word == "case") {
    open_block(Open::case_);
    in_case_word_ = true;
  } else if (word == "esac") {
    close_block(Open::case_);
  } else if (word == "{") {
    open_block(Open::brace);
  } else if (word == "}") {
    close_block(Open::brace);
  } else if (word == "function") {
    skip_blanks();
    const Word name = read_word();
    s_.out.functions.insert(name.text);
    function_ = name.text;
    skip_blanks();
    if (peek() == '(' && peek(1) == ')') i_ += 2;
    open_block(Open::function);
  } else {
    return false;
  }
  return true;
}

void Scanner::redirect() {
  std::string op;
  if (!words_.empty() && !words_.back().text.empty() && words_.back().span.end == i_ &&
      std::ranges::all_of(words_.back().text, is_digit) && words_.size() > 1) {
    op = words_.back().text;  // 2>file
    words_.pop_back();
  }
  while (op.size() < 8 && (peek() == '<' || peek() == '>' || peek() == '&' || peek() == '|')) {
    op += peek();
    ++i_;
    if (op.ends_with("<<<")) break;
  }
  const bool here = op.ends_with("<<") && !op.ends_with("<<<");
  const bool strip = here && peek() == '-';
  if (strip) ++i_;
  skip_blanks();
  const std::size_t begin = i_;
  Word target;
  if (here) {  // the delimiter is not expanded
    while (!at_end() && !is_meta(peek())) {
      if (peek() != '\'' && peek() != '"' && peek() != '\\') target.text += peek();
      ++i_;
    }
  } else {
    target = read_word();
  }
  if (here && !target.text.empty()) {
    pending_.push_back({target.text, strip, s_.place(begin), -2});
    return;
  }
  redirects_.push_back({op, target.text});
}

void Scanner::end_command(sv terminator) {
  in_test_ = false;
  if (closed_loop_ >= 0 && i_ > closed_loop_begin_) {
    auto& loop = s_.out.loops[static_cast<std::size_t>(closed_loop_)];
    if (loop.header.size() < 8192)
      loop.header += s_.text.substr(closed_loop_begin_, std::min<std::size_t>(i_ - closed_loop_begin_, 2048));
    closed_loop_ = -1;
  }
  const bool pattern = !open_.empty() && open_.back().kind == Open::case_ && open_.back().pattern;
  const bool discard = in_words_of_for_ || in_case_word_ || pattern;
  if (in_words_of_for_) finish_loop_header(i_);
  const bool test =
      !words_.empty() && (is_one_of(words_[0].text, {"[", "[[", "test"}) || words_[0].text.starts_with("(("));
  const bool conditional = after_test_;
  if (!discard && (!words_.empty() || !redirects_.empty())) {
    shell::Simple command{std::move(words_),
                          std::move(redirects_),
                          command_begin_,
                          in_pipeline_,
                          terminator == "&",
                          conditional ? s_.new_block(block(), true) : block(),
                          loop_,
                          function_};
    const int index = shell::add_command(s_, std::move(command), depth_);
    for (auto& doc : pending_)
      if (doc.command == -2) doc.command = index;
  }
  if (discard && reading_loop_ >= 0 && !words_.empty()) {
    auto& loop = s_.out.loops[static_cast<std::size_t>(reading_loop_)];
    loop.variable = words_[0].text;
    s_.forget(loop.variable);
  }
  words_.clear();
  redirects_.clear();
  if (terminator == "|") {
    in_pipeline_ = true;
  } else if (!terminator.empty() && terminator != "(") {
    in_pipeline_ = false;
    pipeline_begin_ = i_ + (terminator == ";" ? 1 : terminator == "&&" || terminator == "||" ? 2 : 0);
  }
  if (terminator == "&&") {
    after_test_ = test || (after_test_ && conditional);
  } else if (terminator == "||") {
    after_test_ = true;
  } else if (terminator != "|") {
    after_test_ = false;
  }
}

// Reads the bodies of the here-documents that the line before asked for.
void Scanner::here_documents() {
  std::vector<HereDocument> docs;
  docs.swap(pending_);
  for (const auto& doc : docs) {
    const std::size_t begin = i_;
    std::size_t line = i_, indented = sv::npos, indented_next = 0;
    bool found = false;
    while (line < end_ && s_.open_documents < 8) {
      const std::size_t stop = std::min(s_.text.find('\n', line), end_);
      sv text = s_.text.substr(line, stop - line);
      if (text.ends_with('\r')) text.remove_suffix(1);
      const sv bare = trim(text);
      while (doc.strip_tabs && text.starts_with('\t')) text.remove_prefix(1);
      if (text == doc.delimiter) {
        feed(doc, begin, line);
        i_ = std::min(stop + 1, end_);
        found = true;
        break;
      }
      if (indented == sv::npos && bare == doc.delimiter) {
        indented = line;
        indented_next = std::min(stop + 1, end_);
      }
      line = stop + 1;
    }
    if (found) continue;
    ++s_.open_documents;
    s_.out.diagnostics.push_back({doc.at, fmt::format("the here-document <<{} has no end", doc.delimiter)});
    if (indented != sv::npos) {
      feed(doc, begin, indented);
      i_ = indented_next;
    }
  }
}

void Scanner::feed(const HereDocument& doc, std::size_t begin, std::size_t end) {
  if (doc.command < 0 || static_cast<std::size_t>(doc.command) >= s_.out.commands.size()) return;
  const auto use = shell::use_of_here_document(s_.out.commands, static_cast<std::size_t>(doc.command));
  if (!use) return;
  if (!use->own && depth_ < kMaxNesting) {
    Scanner inner(s_, begin, end, '\0', depth_ + 1, s_.new_block(block(), false));
    inner.run();
  } else if (use->own) {
    std::string body(s_.text.substr(begin, end - begin));
    for (auto at = body.find("\\$"); at != std::string::npos; at = body.find("\\$", at + 1))
      body.erase(at, 1);
    s_.out.embedded.push_back({use->kind, std::move(body), s_.place(begin), "here-document"});
  }
}

}  // namespace

namespace shell {

void scan(State& state, std::size_t begin, std::size_t end, int depth) {
  Scanner scanner(state, begin, end, '\0', depth, state.new_block(-1, false));
  scanner.run();
}

}  // namespace shell

namespace {

ConfigText scan_with(sv text, const LineIndex& lines, Span range, bool all_exported, bool line_limited) {
  ConfigText out;
  out.kind = ConfigKind::shell;
  State state(text, lines, out);
  state.all_exported = all_exported;
  state.line_limited = line_limited;
  // About one command and half a setting a line; what is not used costs address space only.
  const std::size_t expected = std::min<std::size_t>(static_cast<std::size_t>(lines.count()), 1u << 16);
  out.commands.reserve(expected);
  out.settings.reserve(expected / 2);
  shell::scan(state, range.begin, range.end, 0);
  state.finish();
  if (state.saw_unbalanced && !line_limited) return scan_with(text, lines, range, all_exported, true);
  return out;
}

}  // namespace

void scan_shell_range(sv text, const LineIndex& lines, Span range, bool all_exported, ConfigText& out) {
  ConfigText inner = scan_with(text, lines, range, all_exported, false);
  // Places are those of the whole text already; only the numbering of loops and pipelines has to move.
  ConfigText kept = std::move(inner);
  auto settings = std::move(kept.settings);
  std::vector<std::vector<Span>> spans;
  spans.reserve(kept.commands.size());
  for (auto& one : kept.commands) spans.push_back(one.word_spans);
  kept.settings.clear();
  const std::size_t first = out.commands.size();
  append_config(out, std::move(kept), {1, 1}, "");
  for (std::size_t n = 0; n < spans.size(); ++n) out.commands[first + n].word_spans = std::move(spans[n]);
  for (auto& one : settings) out.settings.push_back(std::move(one));
}

void scan_shell_string(sv text, Place at, sv caller, sv function, ConfigText& out) {
  const LineIndex lines(text);
  ConfigText inner = scan_with(text, lines, {0, text.size()}, false, false);
  for (auto& one : inner.commands) {
    one.caller = caller;
    if (one.function.empty()) one.function = function;
  }
  append_config(out, std::move(inner), at, "");
}

ConfigText scan_shell(sv text) {
  const LineIndex lines(text);
  ConfigText out = scan_with(text, lines, {0, text.size()}, false, false);
  if (const auto at = text.find("\r\n"); at != sv::npos && text.find("$env:") == sv::npos)
    out.diagnostics.push_back(
        {lines.place(at),
         "Windows line ends: the shell keeps the carriage return in each line's last value"});
  return out;
}

}  // namespace topotune::parse
