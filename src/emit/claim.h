#pragma once

#include <string>

#include "model/claim.h"

namespace topotune::emit {

// What `topotune explain --number` prints, for people and as `topotune.claim/1`
// (docs/formats/measurement.md).
std::string claim_text(const model::Claim& claim);
std::string claim_json(const model::Claim& claim);

}  // namespace topotune::emit
