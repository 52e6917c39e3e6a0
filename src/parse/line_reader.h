#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"

namespace topotune::parse {

// No text of one machine holds more devices, links or lines of a kind than this; more is refused, not
// truncated.
inline constexpr std::size_t kMaxRecords = 65536;

// Walks over the lines of a text without a copy; ends are "\n", "\r\n" or a lone "\r".
class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) {}

  bool next();                                     // false when no line is left
  std::string_view line() const { return line_; }  // without its end
  int number() const { return number_; }           // from 1
  bool last() const { return rest_.empty(); }
  bool ended() const { return ended_; }  // this line has an end: it is not cut off

 private:
  std::string_view rest_, line_;
  const char* feed_ =
      nullptr;  // the next line feed, as far as it was looked for; the end where there is none
  int number_ = 0;
  bool ended_ = true;
};

struct KeyValue {
  std::string_view key, value;  // both trimmed; the value may be empty
};
// "Key : Value" at the first separator; nothing without a separator or with an empty key.
std::optional<KeyValue> key_value(std::string_view line, char separator = ':');

// Number of blanks at the beginning; a tab counts to the next multiple of 8.
int indent_of(std::string_view line);

// What follows `prefix` in `text` (anywhere), or nothing.
std::optional<std::string_view> after(std::string_view text, std::string_view prefix);
// The digits at the beginning of a text: "16x" -> "16".
std::string_view leading_digits(std::string_view text);
// The number at the beginning of a text, with or without a fraction: "25.781 GB/s" -> 25.781.
std::optional<double> leading_number(std::string_view text);

// The error of a text that is not of the kind that it was taken for.
tl::unexpected<Error> not_a(std::string_view kind);
tl::unexpected<Error> too_many(std::string_view what, int line);

}  // namespace topotune::parse
