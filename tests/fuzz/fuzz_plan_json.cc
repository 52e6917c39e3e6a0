#include <cstddef>
#include <cstdint>

#include "parse/plan_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)topotune::parse::looks_like_plan_json(text);
  (void)topotune::parse::parse_plan_json(text);
  return 0;
}
