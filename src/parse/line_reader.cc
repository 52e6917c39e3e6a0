#include "parse/line_reader.h"

#include <algorithm>

#include "base/text.h"

namespace topotune::parse {

bool LineReader::next() {
  if (rest_.empty()) return false;
  if (feed_ == nullptr || feed_ < rest_.data()) {
    const auto at = rest_.find('\n');
    feed_ = rest_.data() + std::min(at, rest_.size());
  }
  const auto upto = static_cast<std::size_t>(feed_ - rest_.data());
  const auto at = std::min(rest_.substr(0, upto).find('\r'), upto);
  line_ = rest_.substr(0, at);
  ++number_;
  ended_ = at < rest_.size();
  if (!ended_) {
    rest_ = {};
    return true;
  }
  const bool pair = rest_[at] == '\r' && at + 1 < rest_.size() && rest_[at + 1] == '\n';
  rest_.remove_prefix(at + (pair ? 2 : 1));
  return true;
}

std::optional<KeyValue> key_value(std::string_view line, char separator) {
  const auto at = line.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const KeyValue out{trim(line.substr(0, at)), trim(line.substr(at + 1))};
  if (out.key.empty()) return std::nullopt;
  return out;
}

int indent_of(std::string_view line) {
  int columns = 0;
  for (const char c : line) {
    if (c == ' ') {
      ++columns;
    } else if (c == '\t') {
      columns = (columns / 8 + 1) * 8;
    } else {
      break;
    }
    if (columns > 1000) break;
  }
  return columns;
}

std::optional<std::string_view> after(std::string_view text, std::string_view prefix) {
  const auto at = text.find(prefix);
  if (at == std::string_view::npos) return std::nullopt;
  return text.substr(at + prefix.size());
}

std::string_view leading_digits(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  return text.substr(0, n);
}

std::optional<double> leading_number(std::string_view text) {
  std::size_t n = leading_digits(text).size();
  if (n < text.size() && n > 0 && text[n] == '.') {
    const auto fraction = leading_digits(text.substr(n + 1)).size();
    if (fraction > 0) n += 1 + fraction;
  }
  return parse_double(text.substr(0, n));
}

tl::unexpected<Error> not_a(std::string_view kind) {
  return fail(Errc::unrecognised, "not a text of {}", kind);
}

tl::unexpected<Error> too_many(std::string_view what, int line) {
  auto error = fail_at(line, "more than {} {}: no machine has that", kMaxRecords, what);
  error.value().code = Errc::too_large;
  return error;
}

}  // namespace topotune::parse
