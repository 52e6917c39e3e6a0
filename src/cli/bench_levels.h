#pragma once

#include <optional>
#include <string>

#include "cli/bench_coll.h"

namespace topotune::cli {

struct LevelsFlags {
  std::string train;             // a command line, run by sh
  std::string launch;            // before `topotune bench coll`: "mpirun -n 4"
  std::optional<double> expect;  // GB/s of bus bandwidth
  double train_limit = 300;      // seconds
};
void add_levels_flags(CLI::App& verb, LevelsFlags& flags);

// `bench levels --train CMD`: the collective alone, a training step, its profile and the ports in one report.
int bench_levels(const BenchOptions& options, const LevelsFlags& levels, const CollFlags& coll,
                 const Globals& globals);

}  // namespace topotune::cli
