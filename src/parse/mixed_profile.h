#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::parse {

// A stream of equal work beside others, as training makes it.
struct MixedStream {
  std::string name;                // "small"
  std::string op;                  // "all_reduce", ..., or "checkpoint"
  std::vector<std::size_t> bytes;  // of the operations, in turns
  double every_seconds = 0;        // from burst to burst; 0: as fast as it goes
  int burst = 1;                   // operations that are due together
};

struct MixedProfile {
  std::string name;  // "dense-ddp"
  std::vector<MixedStream> streams;
};

// The text format of docs/formats/mixed-profile.md. Errors: malformed with the line.
Result<MixedProfile> parse_mixed_profile(std::string_view text);

}  // namespace topotune::parse
