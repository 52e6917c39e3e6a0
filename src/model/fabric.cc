#include "model/fabric.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace topotune::model {

namespace {

std::unordered_map<std::string_view, std::size_t> gpu_places(const Topology& topology) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < topology.gpus.size(); ++i) {
    places.emplace(topology.gpus[i].id, i);
    if (topology.gpus[i].bdf) places.emplace(*topology.gpus[i].bdf, i);
  }
  return places;
}

std::unordered_set<std::string_view> switch_ids(const Topology& topology) {
  std::unordered_set<std::string_view> ids{"NVSwitch"};
  for (const auto& device : topology.pci) {
    if (device.kind == PciKind::nvswitch) ids.insert(device.id);
  }
  for (const auto& one : topology.switches) {
    if (one.kind == "nvswitch") ids.insert({one.id, one.bdf});
  }
  ids.erase("");
  return ids;
}

std::optional<double> rate_of(const NvLinkGroup& group) {
  return group.per_link ? std::optional(group.per_link->value) : std::nullopt;
}

}  // namespace

Fabric::Fabric(const Topology& topology) : ends_(topology.gpus.size()) {
  const auto places = gpu_places(topology);
  const auto switches = switch_ids(topology);
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    auto& ends = ends_[i];
    for (const auto& group : topology.gpus[i].links) {
      if (group.count <= 0) continue;
      const auto gpu = places.find(group.to);
      if (gpu != places.end()) {
        if (gpu->second != i)
          ends.direct.push_back({gpu->second, group.count, group.xgmi, group.counted, rate_of(group)});
      } else if (switches.contains(group.to)) {
        ends.to_switch += group.count;
        ends.switch_counted &= group.counted;
        ends.switch_rate = rate_of(group);
      } else if (group.to.empty()) {
        ends.unknown = true;
      }
    }
    std::ranges::stable_sort(ends.direct, {}, &Direct::to);
  }
}

const Fabric::Direct* Fabric::find(const Ends& ends, std::size_t to) {
  const auto at = std::ranges::lower_bound(ends.direct, to, {}, &Direct::to);
  return at != ends.direct.end() && at->to == to ? &*at : nullptr;
}

std::optional<FabricPath> Fabric::between(std::size_t a, std::size_t b) const {
  const auto* there = find(ends_[a], b);
  const auto* back = find(ends_[b], a);
  if (there != nullptr || back != nullptr) {
    const auto& one = there != nullptr ? *there : *back;
    const int links = there != nullptr && back != nullptr ? std::min(there->count, back->count) : one.count;
    return FabricPath{one.xgmi ? PathType::xgmi : PathType::nvl,
                      one.counted ? std::optional(links) : std::nullopt, one.rate};
  }
  const int through = std::min(ends_[a].to_switch, ends_[b].to_switch);
  if (through == 0) return std::nullopt;
  const bool counted = ends_[a].switch_counted && ends_[b].switch_counted;
  return FabricPath{PathType::nvl, counted ? std::optional(through) : std::nullopt, ends_[a].switch_rate};
}

bool Fabric::undecided(std::size_t a, std::size_t b) const { return ends_[a].unknown && ends_[b].unknown; }

bool Fabric::has_switch() const {
  return std::ranges::any_of(ends_, [](const Ends& e) { return e.to_switch > 0; });
}

std::optional<double> link_rate(std::optional<int> sm, bool xgmi) {
  if (!sm) return std::nullopt;
  if (xgmi) return *sm == 910 ? 36.0 : *sm >= 940 ? 48.0 : *sm >= 900 ? 24.0 : std::optional<double>();
  if (*sm >= 100) return *sm < 120 ? std::optional(40.1) : std::nullopt;
  if (*sm >= 90) return 20.6;
  if (*sm == 86) return 12.0;
  return *sm >= 70 ? 20.0 : *sm >= 60 ? 18.0 : std::optional<double>();
}

}  // namespace topotune::model
