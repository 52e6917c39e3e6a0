#pragma once

#include <string>

#include "model/finding.h"
#include "model/language.h"

namespace topotune::emit {

struct FindingsTextOptions {
  bool color = false;
  bool verbose = false;  // all subjects and evidence, and each rule that was not checked with its reason
  model::Language language = model::Language::en;  // of the labels; the findings come translated
};

// A diagnosis on one screen: a verdict line, then one block a rule, the most harmful first, with its subjects, what was
// read, and the remedy beside it. `name` is the input's name.
std::string findings_text(const model::Diagnosis& diagnosis, const std::string& name,
                          const FindingsTextOptions& options = {});

}  // namespace topotune::emit
