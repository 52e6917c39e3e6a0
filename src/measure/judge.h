#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/measurement.h"

namespace topotune::measure {

// Links that should be equal and are not. Results of one name and size whose expected ranges are equal are
// cells of one group. In a group of four or more a cell is slow when it lies under the group's median by 1 %
// and by five robust standard deviations (at least 0.2 %); in a smaller one when it lies under the best
// by 1.2 %. The whole interval of the cell's median must lie there.
std::vector<model::Judgement> judge_equal_links(std::span<const model::Measurement> results);

// Medians under (warn) or over (info) their expected range. A range that nobody measured says nothing.
std::vector<model::Judgement> judge_expected(std::span<const model::Measurement> results);

// GPUs that were slowed down, or used by others, while they were measured.
std::vector<model::Judgement> judge_moments(std::span<const model::GpuMoment> before,
                                            std::span<const model::GpuMoment> after);

// `worse` and `better`: the ratio differs from 1 by more than `tolerance`, and so does its whole 95 %
// interval from 1; `unclear`: the interval is wider than the tolerance on either side.
model::ComparedRuns compare_runs(const model::MeasurementRun& before, const model::MeasurementRun& after,
                                 double tolerance = 0.01);

// The baseline of a fleet: of each result the median of the runs' medians; samples are those medians, or the
// samples of the one run.
model::MeasurementRun fleet_median(std::span<const model::MeasurementRun> runs);

}  // namespace topotune::measure
