#pragma once

#include <string_view>

#include "base/result.h"
#include "model/topology.h"

namespace topotune::parse {

// hwloc's XML of one machine, versions 1 to 3 (`lstopo --of xml`).
bool looks_like_hwloc_xml(std::string_view text);

// What can be read of it: NUMA nodes, packages, the PCI tree, GPUs, NICs, NVSwitches and NVLinks. A file that
// is cut off gives `source.complete` false and a warning. Errors: malformed (nothing can be read), too_large.
Result<model::Topology> parse_hwloc_xml(std::string_view text);

}  // namespace topotune::parse
