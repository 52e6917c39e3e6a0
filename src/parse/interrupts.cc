#include "parse/interrupts.h"

#include "base/cpuset.h"
#include "base/text.h"

namespace topotune::parse {

namespace {

constexpr std::size_t kMostText = 64u << 20;

Result<std::vector<int>> cpus_in(std::string_view head) {
  std::vector<int> out;
  for (const auto word : words(head)) {
    const auto cpu = word.starts_with("CPU") ? parse_int<int>(word.substr(3)) : std::nullopt;
    if (!cpu || *cpu < 0 || *cpu >= CpuSet::kMaxCpu)
      return fail_at(1, "'{}' is no column CPU<n>", printable(word.substr(0, 40)));
    out.push_back(*cpu);
  }
  if (out.empty()) return fail_at(1, "no column CPU<n>");
  return out;
}

Result<InterruptLine> line_from(std::string_view line, std::size_t columns, int number) {
  const auto colon = line.find(':');
  const auto id = trim(line.substr(0, colon));
  if (colon == std::string_view::npos || id.empty() || id.size() > 32)
    return fail_at(number, "a line begins with the interrupt and a colon");
  InterruptLine out;
  out.id = printable(id);
  const auto parts = words(line.substr(colon + 1));
  std::size_t i = 0;
  for (; i < parts.size() && i < columns; ++i) {
    const auto count = parse_int<std::uint64_t>(parts[i]);
    if (!count) break;
    out.counts.push_back(*count);
  }
  if (out.counts.empty()) return fail_at(number, "interrupt {} has no count", out.id);
  // ERR and MIS have one count for the machine; any other line has one a CPU.
  if (out.counts.size() < columns && (i < parts.size() || out.counts.size() > 1))
    return fail_at(number, "interrupt {} has {} counts for {} CPUs", out.id, out.counts.size(), columns);
  if (i < parts.size()) out.name = printable(parts.back().substr(0, 256));
  return out;
}

}  // namespace

Result<InterruptTable> parse_interrupts(std::string_view text) {
  if (text.size() > kMostText) return fail(Errc::too_large, "a table of interrupts is at most 64 MiB");
  InterruptTable table;
  int number = 0;
  for (const auto line : lines(text)) {
    ++number;
    if (number == 1) {
      auto cpus = cpus_in(line);
      if (!cpus) return tl::unexpected(cpus.error());
      table.cpus = std::move(*cpus);
      continue;
    }
    if (trim(line).empty()) continue;
    auto one = line_from(line, table.cpus.size(), number);
    if (!one) return tl::unexpected(one.error());
    table.lines.push_back(std::move(*one));
  }
  if (number == 0) return fail_at(1, "no column CPU<n>");
  return table;
}

}  // namespace topotune::parse
