#include "model/claim.h"

#include <array>

namespace topotune::model {

const char* name_of(ClaimVerdict verdict) {
  constexpr std::array<const char*, 6> names{
      "possible", "low", "sum of both directions", "ring equivalent", "units mixed up", "impossible"};
  return names[static_cast<std::size_t>(verdict)];
}

bool is_wrong(ClaimVerdict verdict) {
  return verdict == ClaimVerdict::units || verdict == ClaimVerdict::impossible ||
         verdict == ClaimVerdict::sum;
}

}  // namespace topotune::model
