#include <cstddef>
#include <cstdint>

#include "parse/measurement_run.h"

// Any bytes: no crash, no hang.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)topotune::parse::parse_measurement_run({reinterpret_cast<const char*>(data), size});
  return 0;
}
