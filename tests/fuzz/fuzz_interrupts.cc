#include <cstddef>
#include <cstdint>

#include "parse/interrupts.h"

// Any bytes: no crash, no hang.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)topotune::parse::parse_interrupts({reinterpret_cast<const char*>(data), size});
  return 0;
}
