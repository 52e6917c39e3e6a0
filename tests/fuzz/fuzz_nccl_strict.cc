#include <cstddef>
#include <cstdint>
#include <string_view>

#include "parse/nccl_strict.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& problem : topotune::parse::nccl_problems(text))
    if (problem.line < 1 || problem.column < 1) __builtin_trap();
  return 0;
}
