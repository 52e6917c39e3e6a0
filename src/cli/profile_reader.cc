#include "cli/profile_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <tuple>

#include "base/text.h"
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
  return out;
}

std::vector<std::size_t> join_doubles(std::vector<parse::NcclProfile>& profiles) {
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t>, std::size_t> known;
  std::vector<parse::NcclProfile> kept;
  std::vector<std::size_t> doubles;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    auto& p = profiles[i];
    const auto [found, fresh] = known.try_emplace({p.host, p.pid, p.began_ns, p.began_unix_ns}, kept.size());
    if (!fresh) doubles.push_back(i);
    if (fresh)
      kept.push_back(std::move(p));
    else if (p.events > kept[found->second].events)
      kept[found->second] = std::move(p);
  }
  profiles = std::move(kept);
  return doubles;
}

void say_doubles(const std::vector<std::size_t>& doubles, const std::vector<std::string>& names) {
  for (const auto i : doubles)
    fmt::print(stderr, "topotune: {}: a communicator's rank that another file tells too: counted once\n",
               printable(names[i]));
}

Error not_so(const std::string& name) {
  return {Errc::unsupported,
          "a profile is read from its file alone: not from standard input, packed, compared or among logs",
          name,
          {},
          {},
          "topotune log FILE.ttprof…"};
}

void by_rank(std::vector<parse::NcclProfile>& profiles) {
  std::ranges::stable_sort(profiles, {}, [](const parse::NcclProfile& p) {
    return std::tuple(p.communicator.value_or(0), p.rank.value_or(-1));
  });
}

}  // namespace topotune::cli
