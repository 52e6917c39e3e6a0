#pragma once

#include <memory>

#include "coll/backend.h"
#include "coll/lane.h"
#include "peers/peers.h"

struct TopotuneMpi;  // module_api.h

namespace topotune::mpi {

// MPI libraries are not compatible with each other in binary form: a module for each.
enum class Flavour { any, openmpi, mpich };

// A stream of one collective: all_reduce, all_gather, reduce_scatter, broadcast or all_to_all.
struct LaneRequest {
  coll::Op op = coll::Op::all_reduce;
  std::size_t bytes = 0;  // at most
};

struct Job {
  std::unique_ptr<coll::Backend> backend;  // collectives in host memory; one rank a process
  std::unique_ptr<peers::Peers> peers;     // exchanges by MPI; their limits are the watchdog's
  // Streams beside each other; once. The backend outlives them.
  Result<std::vector<std::unique_ptr<coll::Lane>>> make_lanes(const std::vector<LaneRequest>& requests) const;
  const TopotuneMpi* module = nullptr;
};

// Loads libtopotune-mpi.so or libtopotune-mpich.so from beside the program or the folder in
// TOPOTUNE_MODULES and starts MPI. Errors: not_found (no module, no MPI library), io (MPI's own words),
// unsupported (a process of another version of this program).
Result<Job> start(Flavour flavour, std::size_t buffer_bytes);

}  // namespace topotune::mpi
