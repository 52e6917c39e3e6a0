#pragma once

#include <vector>

#include "parse/nccl_log_state.h"

namespace topotune::parse::log {

// For each site the one that it is in truth. A line that was glued to another, or lost its beginning, names a
// host that does not exist ("node0node001", "ode001") with the process of one that does; such a site has few
// lines beside the real one's many. -1: it could be several.
std::vector<int> true_sites(const State& state);

}  // namespace topotune::parse::log
