#include "emit/path_table.h"

#include <algorithm>

namespace topotune::emit {

using model::PathType;

PathTable::PathTable(const std::vector<model::Path>& paths) {
  for (const auto& path : paths) table_.emplace(std::minmax<std::string_view>(path.a, path.b), &path);
}

const model::Path* PathTable::find(std::string_view a, std::string_view b) const {
  const auto at = table_.find(std::minmax(a, b));
  return at == table_.end() ? nullptr : at->second;
}

std::string cell_of(const model::Path* path) {
  if (path == nullptr || !path->type) return "?";
  if (*path->type == PathType::nvl) return path->nvlinks ? "NV" + std::to_string(*path->nvlinks) : "NV?";
  if (*path->type == PathType::xgmi && path->nvlinks) return "XGMI" + std::to_string(*path->nvlinks);
  return name_of(*path->type);
}

std::string_view meaning_of(PathType type) {
  switch (type) {
    case PathType::nvl:
      return "NVLink; the number is how many links are bonded";
    case PathType::xgmi:
      return "xGMI (AMD Infinity Fabric) links";
    case PathType::c2c:
      return "NVLink chip-to-chip";
    case PathType::pix:
      return "one PCIe switch";
    case PathType::pxb:
      return "several PCIe switches, no CPU";
    case PathType::phb:
      return "a PCIe host bridge: through the CPU";
    case PathType::node:
      return "two host bridges of one NUMA node";
    case PathType::sys:
      return "the link between CPUs (UPI, Infinity Fabric)";
  }
  return "";
}

std::string label_of(const model::Nic& nic) { return nic.name ? *nic.name : nic.bdf.value_or(""); }

}  // namespace topotune::emit
