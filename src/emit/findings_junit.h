#pragma once

#include <string>

#include "model/finding.h"

namespace topotune::emit {

// JUnit XML as CI systems read it: one test case a rule; warnings and errors are failures, what could not be checked is
// skipped with its reason, an info passes and is quoted in system-out. `name` is the input's name.
std::string findings_junit(const model::Diagnosis& diagnosis, const std::string& name);

}  // namespace topotune::emit
