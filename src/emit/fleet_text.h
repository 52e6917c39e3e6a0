#pragma once

#include <string>

#include "model/fleet.h"

namespace topotune::emit {

// One table a person can act on: node, what differs, its value, the majority's, where it was read. At most `rows` rows;
// the rest is counted.
std::string fleet_text(const model::FleetReport& report, std::size_t rows = 60);

}  // namespace topotune::emit
