#pragma once

#include "nccl/api.h"
#include "peers/peers.h"

namespace topotune::nccl {

// Where this process's ranks stand among all.
struct Place {
  int first_rank = 0;  // its GPUs are this rank and the following ones
  int ranks = 0;       // of all processes
  api::UniqueId id;    // made by one process, known to all
};

// Ranks follow each other by process, each with its number of GPUs. The id is still to be made.
Result<Place> place_among(peers::Peers& peers, std::size_t gpus, double limit_seconds);

}  // namespace topotune::nccl
