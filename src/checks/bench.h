#pragma once

#include <functional>
#include <optional>
#include <string>

#include "checks/rule.h"
#include "model/measurement.h"

namespace topotune::checks {

// What the links of the machine give for one result; gbytes_per_s, one direction.
struct LinkLimit {
  std::optional<model::Expected> expected;  // computed from the links
  std::optional<double> link_rate;          // what the links carry at all
  std::string why;                          // "18 links x 26.562 GB/s"
};
// Nothing: the links behind this result are not known.
using LimitOf = std::function<std::optional<LinkLimit>(const model::Measurement&)>;

// Whether the numbers of a measurement mean what they seem to: ACS05 and BENCH01-06, in the catalogue's order.
// `limit_of` may be empty: no machine is known. `name`: the file.
model::Diagnosis judge_measurement(const model::MeasurementRun& run, const std::string& name,
                                   const LimitOf& limit_of = {});

}  // namespace topotune::checks
