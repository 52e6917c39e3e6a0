#pragma once

#include <optional>

#include "launch/rank.h"
#include "peers/tcp.h"

namespace topotune::launch {

// Rank 0 opens a port and tells it through the launcher's own exchange; the others learn it there. PMIx
// (PMIX_RANK in the environment; libpmix.so.2 is loaded) or PMI-1 (PMI_FD, the wire protocol of MPICH's
// process managers). Nothing: the launcher has neither, or its library is not here. Each wait has a limit.
Result<std::optional<peers::Meeting>> exchange_address(const Environment& environment, int rank,
                                                       double limit_seconds);

// This host's IPv4 addresses but the loopback's, with commas between; 127.0.0.1 where it has no other.
std::string reachable_names();

}  // namespace topotune::launch
