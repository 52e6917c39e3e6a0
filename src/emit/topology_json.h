#pragma once

#include <string>

#include "model/topology.h"

namespace topotune::emit {

// The document `topotune.topology/1`, paths included, with a final newline. Same topology, same bytes. Text
// that is not UTF-8 appears with U+FFFD.
std::string topology_json(const model::Topology& topology);

}  // namespace topotune::emit
