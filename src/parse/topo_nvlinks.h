#pragma once

#include "model/topology.h"

namespace topotune::parse::topo {

// Fills `nvlinks` and `links` of every GPU from the stated paths, only where the counts can mean one thing.
// NV# between two GPUs is a bonded set of links. Behind an NVSwitch the same links serve every peer, so a GPU
// has as many as one cell says; on direct links it has their sum. No GPU has more than 18 links (NVLink 4 and
// 5), so a larger sum is a switch's. Equal counts of 6 and more with a sum up to 18 can be both: left
// unknown.
void add_nvlinks(model::Topology& topology);

}  // namespace topotune::parse::topo
