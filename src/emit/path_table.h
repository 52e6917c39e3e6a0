#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/topology.h"

namespace topotune::emit {

// Paths by their two ends, either way round.
class PathTable {
 public:
  explicit PathTable(const std::vector<model::Path>& paths);
  const model::Path* find(std::string_view a, std::string_view b) const;  // null: no such pair

 private:
  std::map<std::pair<std::string_view, std::string_view>, const model::Path*> table_;
};

// nvidia-smi's word for a path: "NV18", "PIX"; "NV?" when the number of links is unknown, "?" when nothing is.
std::string cell_of(const model::Path* path);

// What a class means, in one line (nvidia-smi's legend, in our words); "" for unknown words.
std::string_view meaning_of(model::PathType type);

// "mlx5_0", else "0000:1b:00.0", else "".
std::string label_of(const model::Nic& nic);

}  // namespace topotune::emit
