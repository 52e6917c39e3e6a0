#pragma once

#include <string>

#include "model/topology.h"

namespace topotune::emit {

// NUMA node -> host bridge -> switches -> devices, each link with its current speed and width, and what it is capable of
// where that differs. Without a PCI tree the devices stand below their NUMA nodes.
std::string tree_text(const model::Topology& topology, bool color);

}  // namespace topotune::emit
