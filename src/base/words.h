#pragma once

#include <string>
#include <string_view>

#include "base/text.h"

namespace topotune {

// Takes the next word, of what is between white space, from the front of `rest`; empty when there is none.
inline std::string_view next_word(std::string_view& rest) {
  std::size_t begin = 0;
  while (begin < rest.size() && is_space(rest[begin])) ++begin;
  std::size_t end = begin;
  while (end < rest.size() && !is_space(rest[end])) ++end;
  const auto word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

// For a shell: one word, whatever is in it.
inline std::string single_quoted(std::string_view word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace topotune
