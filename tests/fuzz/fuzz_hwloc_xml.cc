// hwloc XML: read and derive the paths.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/paths.h"
#include "parse/hwloc_xml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  topotune::parse::looks_like_hwloc_xml(text);
  const auto topology = topotune::parse::parse_hwloc_xml(text);
  if (!topology) return 0;
  for (const auto& path : topotune::model::paths_of(*topology)) {
    if (path.a == path.b) std::abort();
  }
  return 0;
}
