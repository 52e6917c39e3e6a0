#pragma once

#include <optional>
#include <string>

#include "cli/bench_coll.h"

namespace topotune::cli {

struct MixedFlags {
  std::string profile = "dense-ddp";  // a known one, or a file
  double duration = 3;                // seconds of a phase
  std::optional<double> scale;        // of large sizes; nothing: by memory
  std::string checkpoint_dir;         // "": to host memory alone
};
void add_mixed_flags(CLI::App& verb, MixedFlags& flags);

// `bench mixed [GPU...]`: the profile's streams, each alone and all together; returns the exit status.
int bench_mixed(const BenchOptions& options, const MixedFlags& mixed, const CollFlags& coll,
                const JobFlags& job, const Globals& globals);

}  // namespace topotune::cli
