#include <cstdint>
#include <string_view>

#include "parse/nvml_probe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)topotune::parse::parse_nvml_probe({reinterpret_cast<const char*>(data), size});
  return 0;
}
