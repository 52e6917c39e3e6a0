#include <cstddef>
#include <cstdint>

#include "parse/step_log.h"

// Any bytes: no crash, no hang.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)topotune::parse::parse_step_log({reinterpret_cast<const char*>(data), size});
  return 0;
}
