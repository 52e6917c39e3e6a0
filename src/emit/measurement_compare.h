#pragma once

#include <string>

#include "model/measurement.h"

namespace topotune::emit {

// One line a result: both medians, their ratio with its interval, and the verdict; changes first.
std::string compared_text(const model::ComparedRuns& compared, const std::string& before,
                          const std::string& after);
// `topotune.measurement-compare/1` (docs/formats/measurement.md).
std::string compared_json(const model::ComparedRuns& compared, const std::string& before,
                          const std::string& after);

}  // namespace topotune::emit
