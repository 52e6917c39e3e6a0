#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/topology.h"

namespace topotune::parse {

struct NumactlNode {
  model::NumaNode node;
  std::optional<std::uint64_t> free_bytes;
  int line = 0;
};

struct Numactl {
  std::optional<int> nodes;  // "available: 2 nodes (0-1)"
  int nodes_line = 0, distances_line = 0;
  std::vector<NumactlNode> list;  // by id
  std::optional<CpuSet> allowed;  // physcpubind of --show
  int allowed_line = 0;
};

// `numactl --hardware` (-H) and `numactl --show` (-s), also both in one text.
bool looks_like_numactl(std::string_view text);
Result<Numactl> parse_numactl(std::string_view text);

}  // namespace topotune::parse
