#pragma once

#include <string>

#include "model/plan.h"

namespace topotune::emit {

struct PlanTextOptions {
  bool color = false;
  bool verbose = false;  // every action with its precondition, read-back and undo
};

// The plan on about one screen: who does what, from what to what, and why; actions that are alike stand once.
std::string plan_text(const model::Plan& plan, const PlanTextOptions& options);

}  // namespace topotune::emit
