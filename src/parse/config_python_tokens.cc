#include "parse/config_python_tokens.h"

#include <algorithm>

#include "base/text.h"

namespace topotune::parse::python {

namespace {

using sv = std::string_view;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Tokenizer {
 public:
  Tokenizer(sv text, const LineIndex& lines, ConfigText& out) : text_(text), lines_(lines), out_(out) {}

  std::vector<Token> run() {
    while (i_ < text_.size()) step();
    end_line();
    return std::move(tokens_);
  }

 private:
  char at(std::size_t offset) const { return offset < text_.size() ? text_[offset] : '\0'; }

  void step() {
    const char c = text_[i_];
    if (c == '\n') {
      line_end();
    } else if (is_space(c) || c == '\0') {
      ++i_;
    } else if (c == '\\' && (at(i_ + 1) == '\n' || at(i_ + 1) == '\r')) {
      i_ += at(i_ + 1) == '\r' && at(i_ + 2) == '\n' ? 3 : 2;
      line_begin_ = i_;
    } else if (c == '#') {
      comment();
    } else if (is_letter(c)) {
      word();
    } else if (is_digit(c)) {
      number();
    } else if (c == '"' || c == '\'') {
      string(i_, false, false);
    } else {
      operator_();
    }
  }

  void line_end() {
    ++i_;
    line_begin_ = i_;
    // A bracket that is still open when a statement begins at column 0 was forgotten.
    if (depth_ > 0 && begins_statement()) {
      out_.diagnostics.push_back({lines_.place(open_at_), "the bracket is not closed"});
      depth_ = 0;
    }
    if (depth_ == 0) end_line();
  }

  bool begins_statement() const {
    const sv rest = text_.substr(i_, 16);
    return std::ranges::any_of(std::initializer_list<sv>{"def ", "class ", "import ", "from ", "if ", "for ",
                                                         "while ", "with ", "@"},
                               [&](sv word) { return rest.starts_with(word); });
  }

  void end_line() {
    if (!tokens_.empty() && tokens_.back().kind != Kind::newline)
      tokens_.push_back({Kind::newline, "", {i_, i_}, {}, false, -1});
    first_ = true;
  }

  void comment() {
    const std::size_t begin = i_;
    i_ = std::min(text_.find('\n', i_), text_.size());
    const bool own = trim(text_.substr(line_begin_, begin - line_begin_)).empty();
    out_.comments.push_back(
        {lines_.place(begin).line, std::string(trim(text_.substr(begin + 1, i_ - begin - 1))), own});
  }

  void push(Kind kind, std::size_t begin, std::string what) {
    Token token;
    token.kind = kind;
    token.text = std::move(what);
    token.span = {begin, i_};
    add(std::move(token));
  }

  void add(Token token) {
    if (first_) token.indent = static_cast<int>(std::min<std::size_t>(token.span.begin - line_begin_, 10000));
    first_ = false;
    tokens_.push_back(std::move(token));
  }

  void word() {
    const std::size_t begin = i_;
    while (i_ < text_.size() && (is_letter(text_[i_]) || is_digit(text_[i_]))) ++i_;
    const sv name = text_.substr(begin, i_ - begin);
    const char quote = at(i_);
    const std::string prefix = to_lower(name);
    const bool is_prefix = name.size() <= 2 && prefix.find_first_not_of("rbuf") == std::string::npos;
    if (is_prefix && (quote == '"' || quote == '\''))
      string(begin, prefix.find('r') != std::string::npos, prefix.find('f') != std::string::npos);
    else
      push(Kind::name, begin, std::string(name));
  }

  void number() {
    const std::size_t begin = i_;
    while (i_ < text_.size() && (is_letter(text_[i_]) || is_digit(text_[i_]) || text_[i_] == '.')) ++i_;
    push(Kind::number, begin, std::string(text_.substr(begin, i_ - begin)));
  }

  // The text ends at the line's end when its quote is missing; three quotes may span lines.
  void string(std::size_t begin, bool raw, bool format) {
    const char quote = text_[i_];
    const bool three = at(i_ + 1) == quote && at(i_ + 2) == quote;
    i_ += three ? 3 : 1;
    Token token;
    token.kind = Kind::string;
    token.inner.begin = i_;
    bool closed = false;
    while (i_ < text_.size()) {
      const char c = text_[i_];
      if (c == quote && (!three || (at(i_ + 1) == quote && at(i_ + 2) == quote))) {
        closed = true;
        break;
      }
      if (c == '\n' && !three) break;
      if (c == '\\' && i_ + 1 < text_.size()) {
        escape(token, raw);
      } else if (format && c == '{') {
        field(token, quote);
      } else {
        if (format && c == '}' && at(i_ + 1) == '}') ++i_;
        token.text += c;
        ++i_;
      }
    }
    token.inner.end = i_;
    if (closed)
      i_ += three ? 3 : 1;
    else
      open_string(begin, three, token);
    token.span = {begin, i_};
    join(std::move(token));
  }

  void open_string(std::size_t begin, bool three, Token& token) {
    out_.diagnostics.push_back({lines_.place(begin), "the string is not closed"});
    if (!three) return;
    i_ = std::min(text_.find('\n', begin), text_.size());  // the rest of the file is read as code
    token.text.clear();
    token.inner = {begin, begin};
  }

  void escape(Token& token, bool raw) {
    const char next = text_[i_ + 1];
    if (raw) token.text += '\\';
    if (!raw && next == 'n')
      token.text += '\n';
    else if (!raw && next == 't')
      token.text += '\t';
    else if (raw || next != '\n')
      token.text += next;
    i_ += 2;
  }

  void field(Token& token, char quote) {
    if (at(i_ + 1) == '{') {
      token.text += '{';
      i_ += 2;
      return;
    }
    const std::size_t begin = ++i_;
    while (i_ < text_.size() && text_[i_] != '}' && text_[i_] != '\n' && text_[i_] != quote) ++i_;
    const sv inner = text_.substr(begin, i_ - begin);
    token.text += "$" + (is_variable_name(inner) ? std::string(inner) : "_");
    token.dynamic = true;
    if (at(i_) == '}') ++i_;
  }

  // "a" "b" is one string.
  void join(Token token) {
    if (!tokens_.empty() && !first_ && tokens_.back().kind == Kind::string) {
      Token& before = tokens_.back();
      before.text += token.text;
      before.dynamic = before.dynamic || token.dynamic;
      before.span.end = token.span.end;
      before.inner = {0, 0};
      return;
    }
    add(std::move(token));
  }

  void operator_() {
    static constexpr sv kLong[] = {"**=", "//=", ">>=", "<<=", "...", "==", "!=", "<=", ">=", "->",
                                   "+=",  "-=",  "*=",  "/=",  "|=",  "&=", "**", "//", ":="};
    const std::size_t begin = i_;
    const char c = text_[i_];
    if (c == '(' || c == '[' || c == '{') {
      if (depth_++ == 0) open_at_ = i_;
    } else if ((c == ')' || c == ']' || c == '}') && depth_ > 0) {
      --depth_;
    }
    const auto* found = std::ranges::find_if(kLong, [&](sv op) { return text_.substr(i_, op.size()) == op; });
    i_ += found == std::end(kLong) ? 1 : found->size();
    push(Kind::op, begin, std::string(text_.substr(begin, i_ - begin)));
  }

  sv text_;
  const LineIndex& lines_;
  ConfigText& out_;
  std::vector<Token> tokens_;
  std::size_t i_ = 0, line_begin_ = 0, open_at_ = 0;
  int depth_ = 0;
  bool first_ = true;
};

}  // namespace

std::vector<Token> tokens_of(sv text, const LineIndex& lines, ConfigText& out) {
  return Tokenizer(text, lines, out).run();
}

}  // namespace topotune::parse::python
