#pragma once

#include <string>

#include "model/measurement.h"

namespace topotune::emit {

// `topotune.measurement/1` (CLI contract, docs/formats/measurement.md), one line end at its end.
std::string measurement_json(const model::MeasurementRun& run);

}  // namespace topotune::emit
