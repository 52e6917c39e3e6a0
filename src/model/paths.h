#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/topology.h"

namespace topotune::model {

// Paths of more devices than this are not listed: 512 GPUs and NICs make 130 816 pairs.
inline constexpr std::size_t kMaxPathDevices = 512;

// Every unordered pair of GPUs and NICs once, in document order (GPUs, then NICs): the stated matrix where there is
// one, otherwise derived from the PCI tree and the NVLinks by nvidia-smi's classes (NCCL's for NCCL XML).
// Only the first kMaxPathDevices devices take part; `paths_limit` says so.
std::vector<Path> paths_of(const Topology& topology);

// The warning "too-many-devices" when `paths_of` leaves devices out.
std::optional<Warning> paths_limit(const Topology& topology);

// Connected groups over NVLink/xGMI, groups of one left out; ids in document order.
std::vector<std::vector<std::string>> islands_of(const Topology& topology, const std::vector<Path>& paths);

struct GpuNics {
  std::string gpu;
  std::vector<std::string> nics;
  PathType type;
};
// For each GPU all NICs of its best path class (PIX, PXB, PHB, NODE, SYS) and no others.
std::vector<GpuNics> pairs_of(const Topology& topology, const std::vector<Path>& paths);

// "full mesh", "NVSwitch", "ring", "hybrid cube mesh", "bridged pairs", "none" ...: one word for people, and why.
struct Shape {
  std::string name;
  std::string why;
};
Shape shape_of(const Topology& topology, const std::vector<Path>& paths);

}  // namespace topotune::model
