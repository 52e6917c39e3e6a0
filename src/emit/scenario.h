#pragma once

#include <string>

namespace topotune::emit {

// The decision table: cards, nodes and models against NUMA, algorithm, protocol, network, each cell with its
// reason. A table of rules of thumb; `topotune plan` works out the same for one machine.
std::string scenario_text();
// `topotune.scenario/1`.
std::string scenario_json();

}  // namespace topotune::emit
