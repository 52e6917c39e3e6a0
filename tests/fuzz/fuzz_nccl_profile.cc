#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "parse/nccl_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto profile = topotune::parse::parse_nccl_profile({reinterpret_cast<const char*>(data), size});
  if (!profile) return 0;
  const std::vector<topotune::parse::NcclProfile> all{*profile, *profile};
  (void)topotune::parse::log_of(all);
  return 0;
}
