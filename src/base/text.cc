#include "base/text.h"

#include <algorithm>
#include <cmath>

#include "base/words.h"

namespace topotune {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

static char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower);
  return out;
}

bool iequals(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

bool icontains(std::string_view text, std::string_view needle) {
  return std::search(text.begin(), text.end(), needle.begin(), needle.end(),
                     [](char x, char y) { return lower(x) == lower(y); }) != text.end() ||
         needle.empty();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (;;) {
    const auto at = text.find(separator);
    out.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  for (auto word = next_word(text); !word.empty(); word = next_word(text)) out.push_back(word);
  return out;
}

std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const auto at = text.find_first_of("\r\n");
    out.push_back(text.substr(0, at));
    if (at == std::string_view::npos) break;
    const bool pair = text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    text.remove_prefix(at + (pair ? 2 : 1));
  }
  return out;
}

// Length of the escape sequence that begins at text[i] (an ESC), at least 1.
static std::size_t escape_length(std::string_view text, std::size_t i) {
  if (i + 1 >= text.size()) return 1;
  const char kind = text[i + 1];
  std::size_t j = i + 2;
  if (kind == '[') {  // CSI: parameters, then one final byte 0x40..0x7e
    while (j < text.size() && (text[j] < 0x40 || text[j] > 0x7e) && text[j] != '\n') ++j;
    return std::min(text.size(), j + (j < text.size() && text[j] != '\n' ? 1 : 0)) - i;
  }
  if (kind == ']') {  // OSC: up to BEL or ESC backslash
    while (j < text.size() && text[j] != '\a' && text[j] != '\x1b' && text[j] != '\n') ++j;
    if (j < text.size() && text[j] == '\a') return j + 1 - i;
    if (j + 1 < text.size() && text[j] == '\x1b' && text[j + 1] == '\\') return j + 2 - i;
    return j - i;
  }
  if (kind == '(' || kind == ')') return std::min<std::size_t>(3, text.size() - i);
  return kind == '\n' ? 1 : 2;
}

std::string strip_ansi(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\x1b') {
      i += escape_length(text, i);
    } else {
      if (text[i] != '\0') out += text[i];
      ++i;
    }
  }
  return out;
}

// Length of the valid UTF-8 sequence at text[i], or 0 (RFC 3629: no overlong forms, no surrogates).
static std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(i);
  const std::size_t n = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (n == 0 || i + n > text.size()) return 0;
  for (std::size_t k = 1; k < n; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  }
  if (n == 3 && ((first == 0xe0 && byte(i + 1) < 0xa0) || (first == 0xed && byte(i + 1) > 0x9f))) return 0;
  if (n == 4 && ((first == 0xf0 && byte(i + 1) < 0x90) || (first == 0xf4 && byte(i + 1) > 0x8f))) return 0;
  return n;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = utf8_length(text, i);
    const auto c = static_cast<unsigned char>(text[i]);
    if (n == 0) {
      out += "\xef\xbf\xbd";
      ++i;
    } else if (n == 1 && ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)) {
      out += '?';
      ++i;
    } else {
      out += text.substr(i, n);
      i += n;
    }
  }
  return out;
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size() || text.empty() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<unsigned long long> parse_hex(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return parse_int<unsigned long long>(text, 16);
}

}  // namespace topotune
