#pragma once

#include <cstdint>
#include <vector>

#include "model/nccl_log.h"

namespace topotune::model {

struct PeerBytes {
  int src = 0, dst = 0;  // ranks of the main communicator
  std::uint64_t bytes = 0;
};

// Fills `traffic` and `traffic_basis`: the bytes that each rank of the main communicator sends to each other,
// modelled from the collectives, the algorithm that TUNING lines name (a ring where they name none), and the
// rings and trees of the log. Per rank and direction, S bytes in n ranks: ring all-reduce 2(n-1)/n S, ring
// all-gather and reduce-scatter (n-1)/n S, tree all-reduce S over each edge in each direction, all-to-all S/n
// to each rank. PAT with one rank a node: S/n blocks over distances 1, 2, 4, ...; CollNet direct: S/heads
// between each rank and each head of its node (the network's part goes to a switch, no rank). What moved by
// CollNet chain, or by PAT over several ranks a node, is left out and named in `traffic_without`. NVLink
// SHARP is told as the S/n that each rank gets from and gives to each other. `peers`: bytes of Send and Recv.
// Nothing without them.
void model_traffic(NcclLog& log, const std::vector<PeerBytes>& peers);

}  // namespace topotune::model
