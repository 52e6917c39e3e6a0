#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lint/fix.h"
#include "lint/lint.h"

namespace topotune {

// Places lie inside the text, and a correction can be written down. Judging takes ten times as long as reading: one length
// in eight is judged.
inline int fuzz_config(const std::uint8_t* data, std::size_t size, parse::ConfigKind kind) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto input = lint::read_input("fuzz", text, kind);
  if (!input) return 0;
  for (const auto& one : input->facts.diagnostics)
    if (one.at.line < 1) std::abort();
  if (size % 8 != 0) return 0;
  const auto report = lint::judge(std::span(&*input, 1), {});
  for (const auto& one : report.found)
    if (one.finding.line.value_or(0) < 1 || one.finding.column.value_or(0) < 1) std::abort();
  lint::unified_diff("fuzz", text, lint::fixed_text(text, report.found, 0));
  return 0;
}

}  // namespace topotune
