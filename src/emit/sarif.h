#pragma once

#include <string>

#include "model/finding.h"

namespace topotune::emit {

// SARIF 2.1.0, one run: what code-review systems show beside the lines. error, warn and info become error,
// warning and note. Rules that appear in findings are listed with title, impact and remedy.
std::string findings_sarif(const model::Diagnosis& diagnosis);

}  // namespace topotune::emit
