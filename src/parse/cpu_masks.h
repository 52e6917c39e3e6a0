#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpuset.h"
#include "model/topology.h"

namespace topotune::parse {

// A CPU mask as an input writes it, and whose it is.
struct WrittenMask {
  std::string owner;  // "node 0"
  std::string_view text;
  std::optional<CpuSet> cpus;  // nothing: it cannot be read
  int line = 0;
};

// What cannot be true of the masks of one machine: unreadable ones ("affinity-malformed"), words shorter than
// the same words of the others ("affinity-short-word"), sets that overlap ("affinity-overlap").
std::vector<model::Warning> doubts_about(const std::vector<WrittenMask>& masks);

}  // namespace topotune::parse
