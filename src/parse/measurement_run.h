#pragma once

#include <string_view>

#include "base/result.h"
#include "model/measurement.h"

namespace topotune::parse {

// Reads a `topotune.measurement/1` document. Fields that are missing or of another type are left at
// "unknown"; another schema, or no JSON, is an error. At most 1 000 000 results and samples in all.
Result<model::MeasurementRun> parse_measurement_run(std::string_view text);

}  // namespace topotune::parse
