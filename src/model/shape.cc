#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "model/fabric.h"
#include "model/paths.h"

namespace topotune::model {

namespace {

// The most NVLinks any GPU has (NVIDIA: 18 on H100 and B200): more than that in a row of the matrix is a
// switch.
constexpr int kMostLinks = 18;

struct Degrees {
  std::unordered_map<std::string, int> peers, links;
  std::size_t joined = 0;  // pairs of GPUs with links
};

Degrees degrees_of(const std::vector<Path>& paths) {
  Degrees out;
  for (const auto& path : paths) {
    if (path.type != PathType::nvl && path.type != PathType::xgmi) continue;
    ++out.joined;
    for (const auto* id : {&path.a, &path.b}) {
      ++out.peers[*id];
      out.links[*id] += path.nvlinks.value_or(0);
    }
  }
  return out;
}

bool all_have(const Degrees& degrees, int peers) {
  return std::ranges::all_of(degrees.peers, [&](const auto& one) { return one.second == peers; });
}

int most_links(const Degrees& degrees) {
  int most = 0;
  for (const auto& [id, links] : degrees.links) most = std::max(most, links);
  return most;
}

Shape of_one_island(std::size_t gpus, std::size_t joined, const Degrees& degrees) {
  if (joined == gpus * (gpus - 1) / 2)
    return {gpus == 2 ? "bridged pair" : "full mesh",
            fmt::format("each of {} GPUs has links to every other", gpus)};
  if (all_have(degrees, 2)) return {"ring", fmt::format("each of {} GPUs has links to two others", gpus)};
  if (gpus == 8 && all_have(degrees, 4))
    return {"hybrid cube mesh", "each of 8 GPUs has links to four others, none to all"};
  return {"partial mesh", fmt::format("{} of {} pairs have links", joined, gpus * (gpus - 1) / 2)};
}

// Every pair of GPUs is among the paths, and of each it is known whether links join it.
bool all_told(const Topology& topology, const std::vector<Path>& paths) {
  const auto gpus = topology.gpus.size();
  const auto told = static_cast<std::size_t>(std::ranges::count_if(paths, &Path::links_told));
  return told >= gpus * (gpus - std::min<std::size_t>(gpus, 1)) / 2;
}

}  // namespace

Shape shape_of(const Topology& topology, const std::vector<Path>& paths) {
  const auto degrees = degrees_of(paths);
  const auto islands = islands_of(topology, paths);
  if (islands.empty() && !all_told(topology, paths))
    return {"unknown", "the input does not tell whether NVLink or xGMI joins the GPUs"};
  if (islands.empty()) return {"none", "no two GPUs are joined by NVLink or xGMI"};
  if (Fabric(topology).has_switch()) return {"NVSwitch", "the links end at NVSwitches"};
  if (most_links(degrees) > kMostLinks)
    return {"NVSwitch", fmt::format("the links of one GPU to its peers add up to {}, more than a GPU has",
                                    most_links(degrees))};
  if (islands.size() == 1) return of_one_island(islands[0].size(), degrees.joined, degrees);
  if (std::ranges::all_of(islands, [](const auto& island) { return island.size() == 2; }))
    return {"bridged pairs", fmt::format("{} pairs of GPUs, no links between the pairs", islands.size())};
  return {"islands", fmt::format("{} groups of GPUs, no links between the groups", islands.size())};
}

}  // namespace topotune::model
