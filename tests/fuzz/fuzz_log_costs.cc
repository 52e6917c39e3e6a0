#include <cstddef>
#include <cstdint>

#include "parse/log_costs.h"

// Any bytes: no crash, no hang.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  (void)topotune::parse::looks_like_log_document(text);
  (void)topotune::parse::parse_log_costs(text);
  return 0;
}
