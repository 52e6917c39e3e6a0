#include "cli/profile_reader.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <tuple>

#include "cli/input.h"

namespace topotune::cli {

bool is_profile_file(const std::string& name) {
  if (name == "-") return false;
  std::ifstream in(name, std::ios::binary);
  char start[8] = {};
  return in.read(start, sizeof start) && parse::is_nccl_profile(std::string_view(start, sizeof start));
}

Result<parse::NcclProfile> read_profile(const std::string& name) {
  const auto bytes = read_input(name);
  if (!bytes) return about(name, bytes.error());
  auto profile = parse::parse_nccl_profile(*bytes);
  if (!profile) return about(name, profile.error());
  std::ifstream in(name, std::ios::binary);
  char next[8] = {};
  std::uint64_t number = 0;
  if (in.seekg(parse::kProfileNextOffset) && in.read(next, sizeof next)) {
    std::memcpy(&number, next, sizeof number);
    parse::drop_overwritten(*profile, number);
  }
  return std::move(*profile);
}

Result<std::vector<parse::NcclProfile>> read_profiles(const std::vector<std::string>& names) {
  std::vector<parse::NcclProfile> out;
  for (const auto& name : names) {
    auto profile = read_profile(name);
    if (!profile) return tl::unexpected(profile.error());
    out.push_back(std::move(*profile));
  }
  std::ranges::stable_sort(out, {}, [](const parse::NcclProfile& p) {
    return std::tuple(p.communicator.value_or(0), p.rank.value_or(-1));
  });
  return out;
}

}  // namespace topotune::cli
