#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "peers/peers.h"

namespace topotune::coll {

// All processes' numbers by rank of the process, or the error of the first that had one, with its place.
Result<std::vector<std::vector<double>>> share(peers::Peers& peers, const Result<std::vector<double>>& mine,
                                               const std::string& what, double limit_seconds);

}  // namespace topotune::coll
