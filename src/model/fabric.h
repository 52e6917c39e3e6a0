#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/topology.h"

namespace topotune::model {

// What the NVLinks or xGMI links of two GPUs say about their pair.
struct FabricPath {
  PathType type = PathType::nvl;
  std::optional<int> links;    // of the narrower hop
  std::optional<double> rate;  // GB/s of one link, one direction, where the input tells
};

// Links between GPUs: direct ones and those that meet in NVSwitches, which count as one fabric.
class Fabric {
 public:
  explicit Fabric(const Topology& topology);
  // GPUs by their place in `topology.gpus`; nothing when no link joins them.
  std::optional<FabricPath> between(std::size_t a, std::size_t b) const;
  // Both have links whose far end is unknown: whether they are joined cannot be told.
  bool undecided(std::size_t a, std::size_t b) const;
  bool has_switch() const;

 private:
  struct Direct {
    std::size_t to;
    int count;
    bool xgmi, counted;
    std::optional<double> rate;
  };
  struct Ends {
    std::vector<Direct> direct;  // sorted by `to`
    int to_switch = 0;
    bool switch_counted = true, unknown = false;
    std::optional<double> switch_rate;
  };
  static const Direct* find(const Ends& ends, std::size_t to);
  std::vector<Ends> ends_;
};

// GB/s that NCCL (src/graph/topo.h) or RCCL (src/graph/topo.h) count for one link of this GPU, one direction.
// `sm` is the compute capability, or the gfx number with `xgmi`.
std::optional<double> link_rate(std::optional<int> sm, bool xgmi);

}  // namespace topotune::model
