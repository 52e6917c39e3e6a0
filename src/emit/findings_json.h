#pragma once

#include <string>

#include "model/finding.h"
#include "model/topology.h"

namespace topotune::emit {

// `topotune.findings/1` (CLI contract), one line end at its end.
std::string findings_json(const model::Diagnosis& diagnosis, const model::Source& source);

}  // namespace topotune::emit
