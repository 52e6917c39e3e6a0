#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cli.h"

namespace topotune::cli {

// `log FILE…` on files of the profiler plugin: what each communicator did, and who sent to whom.
int explain_profiles(const std::vector<std::string>& files, bool matrix, const Globals& globals);

// How often: each `seconds`, or, where these are 0, as soon as the busiest communicator has had at least
// `calls` events more.
struct Every {
  double seconds = 0;
  std::uint64_t calls = 0;
};
Result<Every> every_from(const std::string& text);  // "10s", "500"

// The same again and again, each time of what happened since the last, until the job is over or Ctrl-C.
int follow_profiles(const std::vector<std::string>& files, const Every& every, bool matrix,
                    const Globals& globals);

}  // namespace topotune::cli
