#pragma once

#include <memory>

#include "coll/backend.h"
#include "peers/peers.h"

namespace topotune::mpi {

// MPI libraries are not compatible with each other in binary form: a module for each.
enum class Flavour { any, openmpi, mpich };

struct Job {
  std::unique_ptr<coll::Backend> backend;  // collectives in host memory; one rank a process
  std::unique_ptr<peers::Peers> peers;     // exchanges by MPI; their limits are the watchdog's
};

// Loads libtopotune-mpi.so or libtopotune-mpich.so from beside the program or the folder in
// TOPOTUNE_MODULES and starts MPI. Errors: not_found (no module, no MPI library), io (MPI's own words).
Result<Job> start(Flavour flavour, std::size_t buffer_bytes);

}  // namespace topotune::mpi
