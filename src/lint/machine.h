#pragma once

#include "checks/rule.h"
#include "lint/lint.h"

namespace topotune::lint {

// What the machine of a job decides for the rules about its texts, whose paths are in `evidence`.
void know_machine(Options& known, const checks::Evidence& evidence);

}  // namespace topotune::lint
