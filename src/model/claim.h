#pragma once

#include <string>

namespace topotune::model {

// What somebody said about a speed, and what the link can carry.
enum class ClaimVerdict {
  possible,    // below the limit
  low,         // below half of it
  sum,         // only as the sum of both directions
  equivalent,  // a ring-equivalent figure (busbw with in-switch reduction), not bytes on a link
  units,       // bits and bytes mixed up
  impossible
};
const char* name_of(ClaimVerdict verdict);

struct Claim {
  double claimed = 0;  // GB/s (1e9 bytes); seconds for a latency
  double limit = 0;    // likewise: the most a link carries one way, the least time
  bool latency = false;
  std::string medium;  // "100 Gb/s RoCE", "18 NVLinks of H100"
  std::string why;     // the arithmetic of the limit
  ClaimVerdict verdict = ClaimVerdict::possible;
  std::string text;  // one or two sentences for a person
  double share() const { return latency ? limit / claimed : claimed / limit; }
};

// A claim that the link cannot carry as it was said.
bool is_wrong(ClaimVerdict verdict);

}  // namespace topotune::model
