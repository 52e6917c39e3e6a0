#include <cstddef>
#include <cstdint>
#include <string_view>

#include "parse/host_probes.h"
#include "parse/nvml_probe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  topotune::parse::parse_nvml_probe(text);
  topotune::parse::parse_process_probe(text);
  topotune::parse::parse_statvfs_probe(text);
  topotune::parse::parse_libraries_probe(text);
  return 0;
}
