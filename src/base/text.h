#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topotune {

// Small text tools shared by the parsers. None allocates more than its result.
bool is_space(char c);  // blank, tab, CR, LF, VT, FF
bool is_digit(char c);
bool is_hex_digit(char c);
std::string_view trim(std::string_view text);
std::string to_lower(std::string_view text);
bool iequals(std::string_view a, std::string_view b);            // ASCII case
bool icontains(std::string_view text, std::string_view needle);  // ASCII case

// Fields between separators, empty ones kept: split("a,,b", ',') has three.
std::vector<std::string_view> split(std::string_view text, char separator);
// Words between runs of white space.
std::vector<std::string_view> words(std::string_view text);
// Lines without their "\n" or "\r\n" (or lone "\r"); a last line without an end counts.
std::vector<std::string_view> lines(std::string_view text);

// Removes terminal escape sequences (CSI, OSC, single shifts) and NUL bytes.
std::string strip_ansi(std::string_view text);
// Replaces what is not valid UTF-8 by U+FFFD and control characters other than \n and \t by '?': safe to print.
std::string printable(std::string_view text);

// The whole of `text` as a number, or nothing. `base` as in std::from_chars; no sign, no blanks, no prefix.
template <class T>
std::optional<T> parse_int(std::string_view text, int base = 10) {
  T value{};
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (ec != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// The whole of `text` as a finite decimal number, or nothing.
std::optional<double> parse_double(std::string_view text);
// "0x10de", "10de" -> 0x10de.
std::optional<unsigned long long> parse_hex(std::string_view text);

}  // namespace topotune
