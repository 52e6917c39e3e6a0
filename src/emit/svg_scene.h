#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/paths.h"

namespace topotune::emit {

// What the drawing shows, before any place is given. GPUs and NICs are indices into the Topology.

// Devices below one PCI switch; without one (`switched` false) a single GPU, or NICs, at the host bridge.
struct SceneGroup {
  bool switched = false;
  std::string bridge;                   // id of the topmost switch, "" unknown
  std::optional<model::PathType> type;  // PIX, or PXB where several switches lie between
  std::vector<std::size_t> gpus, nics;
};

// A NUMA node, or devices that are near each other where no node is told.
struct SceneNode {
  std::vector<int> numa;
  std::string cpus;                       // "0-31"; "" unknown
  std::optional<model::PathType> inside;  // the class between its groups
  std::vector<SceneGroup> groups;
};

// GPUs joined by NVLink or xGMI.
struct SceneIsland {
  std::vector<std::size_t> gpus;
  bool hub = false;        // drawn as a bar: a switch, or every pair of more than four GPUs alike
  std::string label;       // of the bar: "NVSwitch", "full mesh"
  std::vector<int> links;  // of each GPU towards the bar, 0 unknown
};

struct SceneEdge {
  std::size_t a = 0, b = 0;
  int links = 0;  // 0 unknown
  model::PathType type = model::PathType::nvl;
};

struct Scene {
  std::vector<SceneNode> nodes;
  std::vector<SceneIsland> islands;
  std::vector<SceneEdge> edges;    // of islands that are not hubs
  std::size_t gpus = 0, nics = 0;  // drawn
};

// At most `limit` GPUs and as many NICs.
Scene scene_of(const model::Topology& topology, const std::vector<model::Path>& paths, std::size_t limit);

}  // namespace topotune::emit
