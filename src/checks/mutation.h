#pragma once

#include <functional>
#include <string_view>

#include "checks/rule.h"

namespace topotune::checks {

// For scripts/mutate_rules.py: turns one rule's outcome round, so that it is seen whether the tests notice. A
// program that does not define `topotune_test_mutation` (every program but the tests) mutates nothing. Its
// text is "suppress:RULE" (what the rule finds is lost) or "fire:RULE" (where it finds nothing, it finds
// something).
bool is_suppressed(std::string_view rule);
bool is_fired(std::string_view rule);

// Applied to what one rule decided; a rule that was not evaluated stays so.
void mutate(std::string_view rule, Outcome& outcome);
// The same for a diagnosis that comes from a whole.
void mutate(model::Diagnosis& diagnosis);

}  // namespace topotune::checks
