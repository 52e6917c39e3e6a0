#include "parse/ulimit.h"

#include <algorithm>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// "unlimited" or a number, times `unit`; nothing for other words.
std::optional<std::optional<std::uint64_t>> amount_of(std::string_view word, std::uint64_t unit) {
  if (word == "unlimited") return std::optional<std::uint64_t>{};
  const auto value = parse_int<std::uint64_t>(word);
  if (!value) return std::nullopt;
  if (*value > UINT64_MAX / unit) return std::optional<std::uint64_t>{};  // RLIM_INFINITY in other units
  return std::optional(*value * unit);
}

std::optional<LimitLine> limit_of(std::string_view soft, std::string_view hard, std::uint64_t unit) {
  const auto a = amount_of(soft, unit);
  const auto b = amount_of(hard, unit);
  if (!a || !b) return std::nullopt;
  LimitLine out;
  out.value = {*a, *b};
  return out;
}

// bash: "max locked memory (kbytes, -l) 64"; dash: "locked memory(kbytes) 64"; zsh: "-l: locked-in-memory
// size (kb) 64".
std::optional<LimitLine> shell_line(std::string_view line, std::string_view name, std::uint64_t unit) {
  if (!has(line, name)) return std::nullopt;
  const auto all = words(line);
  return limit_of(all.back(), all.back(), unit);
}

// /proc/PID/limits: "Max locked memory   65536   65536   bytes"; prlimit: "MEMLOCK … 65536 65536 bytes"
std::optional<LimitLine> two_columns(std::string_view line, std::string_view unit_word) {
  const auto all = words(line);
  if (all.size() < 4 || all.back() != unit_word) return std::nullopt;
  return limit_of(all[all.size() - 3], all[all.size() - 2], 1);
}

std::optional<LimitLine> memlock_of(std::string_view line) {
  if (line.starts_with("Max locked memory ") || line.starts_with("MEMLOCK "))
    return two_columns(line, "bytes");
  for (const std::string_view name :
       {"max locked memory ", "locked memory(kbytes)", "locked-in-memory size"}) {
    if (const auto found = shell_line(line, name, 1024)) return found;
  }
  return std::nullopt;
}

std::optional<LimitLine> nofile_of(std::string_view line) {
  if (line.starts_with("Max open files ") || line.starts_with("NOFILE ")) return two_columns(line, "files");
  for (const std::string_view name : {"open files  ", "nofiles ", "file descriptors "}) {
    if (const auto found = shell_line(line, name, 1)) return found;
  }
  return std::nullopt;
}

// "ulimit -l", "ulimit -Sl": the one limit that is asked for, or 0.
char letter_of(std::string_view command) {
  const auto all = words(command);
  if (all.size() != 2 || all[0] != "ulimit" || !all[1].starts_with("-")) return '\0';
  const char letter = all[1].back();
  return letter == 'l' || letter == 'n' ? letter : '\0';
}

void read_single(std::string_view text, char letter, Limits& out) {
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    if (line.empty()) continue;
    auto limit = limit_of(line, line, letter == 'l' ? 1024 : 1);
    if (!limit) return;
    limit->line = reader.number();
    limit->text = fmt::format("ulimit -{}: {}", letter, line);
    (letter == 'l' ? out.memlock : out.nofile) = std::move(limit);
    return;
  }
}

void keep(std::optional<LimitLine>& to, std::optional<LimitLine> found, std::string_view line, int number) {
  if (!found || to) return;
  found->line = number;
  found->text = std::string(line);
  to = std::move(found);
}

}  // namespace

bool looks_like_ulimit(std::string_view text, std::string_view command) {
  if (letter_of(command) != '\0') return true;
  return has(text, "max locked memory ") || has(text, "Max locked memory ") ||
         has(text, "locked memory(kbytes)") || has(text, "locked-in-memory size") || has(text, "MEMLOCK ") ||
         has(text, "open files  ");
}

Result<Limits> parse_ulimit(std::string_view text, std::string_view command) {
  Limits out;
  if (const char letter = letter_of(command)) read_single(text, letter, out);
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    if (line.empty() || line.size() > 200) continue;
    keep(out.memlock, memlock_of(line), line, reader.number());
    keep(out.nofile, nofile_of(line), line, reader.number());
  }
  if (!out.memlock && !out.nofile) return not_a("ulimit -a");
  return out;
}

}  // namespace topotune::parse
