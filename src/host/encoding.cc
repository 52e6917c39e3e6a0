#include "host/encoding.h"

#include <fmt/format.h>

#include "base/text.h"

namespace topotune::host {

bool is_plain_text(std::string_view text) { return printable(text) == text; }

static bool must_escape(char c, bool plain, bool word) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f || c == '%' || (word && c == ' ') || (byte >= 0x80 && !plain);
}

static std::string escape_as(std::string_view text, bool word) {
  const bool plain = is_plain_text(text);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (must_escape(c, plain, word)) {
      out += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string escape(std::string_view text) { return escape_as(text, false); }
std::string escape_word(std::string_view text) { return text.empty() ? "%" : escape_as(text, true); }

std::optional<std::string> unescape(std::string_view text) {
  if (text == "%") return std::string();
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto byte = parse_int<unsigned char>(text.substr(i + 1, 2), 16);
    if (!byte || i + 2 >= text.size()) return std::nullopt;
    out += static_cast<char>(*byte);
    i += 2;
  }
  return out;
}

std::string join_names(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += escape(name) + "\n";
  return out;
}

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    out.push_back(unescape(line).value_or(std::string(line)));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string command_name(std::span<const std::string> argv) {
  std::string out;
  for (const auto& word : argv) out += (out.empty() ? "" : " ") + escape_word(word);
  return out;
}

std::vector<std::string> command_words(std::string_view name) {
  std::vector<std::string> out;
  for (const auto word : split(name, ' ')) out.push_back(unescape(word).value_or(std::string(word)));
  return out;
}

}  // namespace topotune::host
