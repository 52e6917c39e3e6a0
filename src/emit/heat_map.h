#pragma once

#include <string>

#include "model/measurement.h"

namespace topotune::emit {

// Bandwidths between pairs (results with the parameters a and b, "gbytes_per_s", the later one of two), from
// the row to the column: the darker, the slower against the 75th percentile. Empty where there is none.
std::string heat_map_svg(const model::MeasurementRun& run);

}  // namespace topotune::emit
