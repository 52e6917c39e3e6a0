#include "parse/nccl_log_blank.h"

#include <cstring>

#include "parse/nccl_log_scan.h"

namespace topotune::parse {
namespace {

constexpr std::size_t kLongestFront = 1024;  // of what may stand before "NCCL INFO"

bool is_statement(std::string_view line) {
  line = line.substr(0, kLongestFront);
  for (auto at = find_from(line, "CCL ", 0); at != std::string_view::npos;
       at = find_from(line, "CCL ", at + 4)) {
    const auto word = line.substr(at + 4);
    const bool named = at >= 2 && (line[at - 1] == 'N' || line[at - 1] == 'R') && line[at - 2] == ' ';
    if (named && (word.starts_with("INFO") || word.starts_with("WARN"))) return true;
  }
  return false;
}

}  // namespace

std::string without_nccl_lines(std::string_view text) {
  if (find_from(text, "CCL ", 0) == std::string_view::npos) return std::string(text);  // the usual case
  std::string out;
  while (!text.empty()) {
    const void* found = std::memchr(text.data(), '\n', text.size());
    const auto length = found == nullptr
                            ? text.size()
                            : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    const auto line = text.substr(0, length);
    if (!is_statement(line)) out.append(line);
    if (found != nullptr) out.push_back('\n');
    text.remove_prefix(length + (found == nullptr ? 0 : 1));
  }
  return out;
}

}  // namespace topotune::parse
