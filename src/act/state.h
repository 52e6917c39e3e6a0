#pragma once

#include <optional>
#include <string>

#include "act/journal.h"
#include "act/system.h"
#include "model/plan.h"

namespace topotune::act {

// Where an action's value lives: the path itself, or the configuration space of a PCI function.
std::string path_of(model::ActionKind kind, const std::string& target);

// What is there now, as plans write it: the chosen word of "default [performance] powersave", a value without
// its line end, a register's field, the bytes of a file. Nothing: there is no such file (kind file), or the
// command's effect is absent (kind command; "" when present or not to be told).
Result<std::optional<std::string>> observe(const System& system, model::ActionKind kind,
                                           const std::string& target);

// The same setting, perhaps written otherwise: "0-3" and "0,1,2,3" of an affinity; registers by number.
bool same_value(model::ActionKind kind, const std::string& a, const std::string& b);

// The action holds: its value is there.
Result<bool> holds(const System& system, const model::Action& action);

}  // namespace topotune::act
