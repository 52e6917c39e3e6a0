#pragma once

#include <string>

#include "model/finding.h"
#include "model/language.h"

namespace topotune::emit {

// For a ticket: a verdict line, a table of the findings, then each one with its evidence and its remedy. `name` is the
// input's name. What could not be checked is listed last.
std::string findings_markdown(const model::Diagnosis& diagnosis, const std::string& name,
                              model::Language language = model::Language::en);

}  // namespace topotune::emit
