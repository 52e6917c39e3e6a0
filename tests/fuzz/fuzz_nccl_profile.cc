#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "parse/nccl_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto profile = topotune::parse::parse_nccl_profile({reinterpret_cast<const char*>(data), size});
  if (!profile) return 0;
  std::vector<topotune::parse::NcclProfile> all{*profile, *profile, *profile};
  all[1].rank = 1 - profile->rank.value_or(0), all[1].steps = true;
  all[2].events /= 2, all[2].kept.resize(all[2].kept.size() / 2), all[2].sent.clear(), all[2].totals.clear();
  all[2] = topotune::parse::since(all[2], *profile);
  (void)topotune::parse::log_of(all);
  return 0;
}
