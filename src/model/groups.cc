#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "model/paths.h"

namespace topotune::model {

namespace {

std::size_t leader(std::vector<std::size_t>& parent, std::size_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

bool for_pairs(const Path& path) { return path.type && *path.type >= PathType::pix; }

}  // namespace

std::vector<std::vector<std::string>> islands_of(const Topology& topology, const std::vector<Path>& paths) {
  std::unordered_map<std::string_view, std::size_t> place;
  for (std::size_t i = 0; i < topology.gpus.size(); ++i) place.emplace(topology.gpus[i].id, i);
  std::vector<std::size_t> parent(topology.gpus.size());
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  for (const auto& path : paths) {
    if (path.type != PathType::nvl && path.type != PathType::xgmi) continue;
    const auto a = place.find(path.a), b = place.find(path.b);
    if (a != place.end() && b != place.end()) parent[leader(parent, a->second)] = leader(parent, b->second);
  }
  std::map<std::size_t, std::size_t> group;  // leader -> place in `out`
  std::vector<std::vector<std::string>> out;
  for (std::size_t i = 0; i < topology.gpus.size(); ++i) {
    const auto [at, fresh] = group.emplace(leader(parent, i), out.size());
    if (fresh) out.emplace_back();
    out[at->second].push_back(topology.gpus[i].id);
  }
  std::erase_if(out, [](const auto& island) { return island.size() < 2; });
  return out;
}

std::vector<GpuNics> pairs_of(const Topology& topology, const std::vector<Path>& paths) {
  std::unordered_map<std::string_view, std::size_t> gpus, nics;
  for (std::size_t i = 0; i < topology.gpus.size(); ++i) gpus.emplace(topology.gpus[i].id, i);
  for (std::size_t i = 0; i < topology.nics.size(); ++i) nics.emplace(topology.nics[i].id, i);
  std::vector<GpuNics> best(topology.gpus.size());
  for (const auto& path : paths) {
    const auto gpu = gpus.find(path.a);
    if (gpu == gpus.end() || !nics.contains(path.b) || !for_pairs(path)) continue;
    auto& one = best[gpu->second];
    if (!one.nics.empty() && *path.type > one.type) continue;
    if (one.nics.empty() || *path.type < one.type) one = {path.a, {}, *path.type};
    one.nics.push_back(path.b);
  }
  std::erase_if(best, [](const GpuNics& one) { return one.nics.empty(); });
  return best;
}

}  // namespace topotune::model
