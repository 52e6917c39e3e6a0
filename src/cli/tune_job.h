#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "tune/measurer.h"

namespace topotune::cli {

// Sizes that differ by less than this factor are measured as one.
inline constexpr double kSameSize = 1.2;

// What a job does, from its profiles (topotune-profile-*.ttprof) or from its NCCL log
// (NCCL_DEBUG_SUBSYS=COLL): the collectives and sizes that take its time, ascending in size. Sizes of little
// weight are left out (half a percent in all), and at most 24 of a collective are kept.
Result<std::vector<tune::Cell>> cells_of_job(const std::vector<std::string>& files);

}  // namespace topotune::cli
