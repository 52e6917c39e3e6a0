#pragma once

#include <string>

#include "base/result.h"
#include "model/finding.h"
#include "model/topology.h"

namespace topotune::cli {

// Whether a file is a `topotune.measurement/1` document, by its beginning.
bool is_measurement_file(const std::string& name);

// The rules about measurements (BENCH) for the file `name`. `topology`: of the machine that was measured;
// null: of the capture in the document where it holds one, else no links are known. Errors: unreadable or
// malformed.
Result<model::Diagnosis> check_measurement(const std::string& name, const model::Topology* topology);

}  // namespace topotune::cli
