#pragma once

#include <string>
#include <string_view>

#include "model/measurement.h"

namespace topotune::emit {

// A table for people: each number with its spread, what it should be and why, and whether the data arrived
// intact.
std::string measurement_text(const model::MeasurementRun& run, bool color);

// Ends the text of a run that was interrupted.
inline constexpr std::string_view kInterruptedText =
    "interrupted: what is above was measured, the rest was not\n";

// One line a result, RFC 4180, with a head line. Samples are left out.
std::string measurement_csv(const model::MeasurementRun& run);

// "512 MiB", "8 B".
std::string size_text(double bytes);
// "396.1 GB/s", "1.368 us", "103.2 ns".
std::string value_text(double value, const std::string& unit);

}  // namespace topotune::emit
