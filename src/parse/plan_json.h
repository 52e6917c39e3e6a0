#pragma once

#include <string_view>

#include "base/result.h"
#include "model/plan.h"

namespace topotune::parse {

bool looks_like_plan_json(std::string_view text);

// `topotune.plan/1` as emit::plan_json writes it. Fields that are not named in docs/formats/plan.md are
// ignored; a field that is missing or of another type is an error that names it ("actions[2].target:
// missing").
Result<model::Plan> parse_plan_json(std::string_view text);

}  // namespace topotune::parse
