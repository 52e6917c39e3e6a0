#pragma once

#include <string>
#include <vector>

#include "model/paths.h"

namespace topotune::emit {

// A drawing of one machine, complete in itself (SVG 1.1, no scripts, no outside fonts or images): NUMA nodes
// as boxes, PCI switches with the GPUs and NICs below them, NVLink or xGMI as a bar where every GPU of an
// island reaches every other one (NVSwitch, large meshes), otherwise as arcs with the number of links. The
// classes of path keep their colours throughout; a legend names them. Devices beyond kMaxDrawn are counted,
// not drawn.
std::string topology_svg(const model::Topology& topology, const std::vector<model::Path>& paths);

inline constexpr std::size_t kMaxDrawn = 128;  // GPUs and NICs each

}  // namespace topotune::emit
