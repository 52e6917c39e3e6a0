#include "parse/topo_nvlinks.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace topotune::parse::topo {
namespace {

constexpr int kMostLinks = 18;   // of one GPU: H100, H200, B200
constexpr int kFewestLinks = 6;  // of a GPU behind an NVSwitch: V100

struct Peers {
  std::vector<model::NvLinkGroup> links;
  bool known = true;  // every pair with another GPU is
};

enum class Wiring { none, direct, switched, unknown };

Wiring wiring_of(const Peers& peers) {
  if (!peers.known) return Wiring::unknown;
  if (peers.links.empty()) return Wiring::none;
  int sum = 0;
  for (const auto& link : peers.links) sum += link.count;
  const int first = peers.links.front().count;
  const bool equal = std::ranges::all_of(peers.links, [&](const auto& link) { return link.count == first; });
  if (sum > kMostLinks) return Wiring::switched;
  if (equal && peers.links.size() > 1 && first >= kFewestLinks) return Wiring::unknown;
  return Wiring::direct;
}

std::map<std::string, Peers> peers_of(const model::Topology& topology) {
  std::map<std::string, Peers> out;
  for (const auto& gpu : topology.gpus) out[gpu.id];
  for (const auto& path : topology.stated) {
    const auto a = out.find(path.a), b = out.find(path.b);
    if (a == out.end() || b == out.end()) continue;
    const bool nvlink = path.type == model::PathType::nvl;
    if (!path.type || (nvlink && !path.nvlinks)) {
      a->second.known = b->second.known = false;
    } else if (nvlink) {
      a->second.links.push_back({path.b, *path.nvlinks, false, {}});
      b->second.links.push_back({path.a, *path.nvlinks, false, {}});
    }
  }
  return out;
}

int most_of(const Peers& peers) {
  return std::ranges::max(peers.links, {}, &model::NvLinkGroup::count).count;
}

void fill(model::Gpu& gpu, const Peers& peers, bool any_switch) {
  auto wiring = wiring_of(peers);
  // Two GPUs of one machine are not wired in two ways.
  if (any_switch && (wiring == Wiring::direct || wiring == Wiring::unknown) && peers.known)
    wiring = Wiring::switched;
  if (wiring == Wiring::switched) {
    gpu.nvlinks = most_of(peers);
    gpu.links = {{"NVSwitch", *gpu.nvlinks, false, {}}};
  } else if (wiring == Wiring::direct) {
    gpu.links = peers.links;
    gpu.nvlinks = 0;
    for (const auto& link : peers.links) *gpu.nvlinks += link.count;
  }
}

}  // namespace

void add_nvlinks(model::Topology& topology) {
  const auto peers = peers_of(topology);
  const bool any_switch =
      std::ranges::any_of(peers, [](const auto& p) { return wiring_of(p.second) == Wiring::switched; });
  for (auto& gpu : topology.gpus) fill(gpu, peers.at(gpu.id), any_switch);
}

}  // namespace topotune::parse::topo
