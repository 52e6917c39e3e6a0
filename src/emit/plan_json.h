#pragma once

#include <string>

#include "model/plan.h"

namespace topotune::emit {

// `topotune.plan/1` (docs/formats/plan.md), one line end at its end.
std::string plan_json(const model::Plan& plan);

}  // namespace topotune::emit
