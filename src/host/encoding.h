#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace topotune::host {

// How names, lists of names and command lines become one line of text (docs/formats/capture.md).

// "%XX" for '%', control characters and, where the text is not UTF-8, every byte from 0x80.
std::string escape(std::string_view text);
// As `escape`, blanks too: one word. The empty text is "%" alone.
std::string escape_word(std::string_view text);
// Nothing where a '%' is not followed by two hexadecimal digits ("%" alone is the empty text).
std::optional<std::string> unescape(std::string_view text);

// One escaped name a line, each line ended: "eth0\nib0\n".
std::string join_names(const std::vector<std::string>& names);
std::vector<std::string> split_names(std::string_view text);

// An argument vector as escaped words between single blanks.
std::string command_name(std::span<const std::string> argv);
std::vector<std::string> command_words(std::string_view name);

// UTF-8 without control characters other than \n and \t.
bool is_plain_text(std::string_view text);

}  // namespace topotune::host
