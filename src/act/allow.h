#pragma once

#include <optional>
#include <string>

#include "model/plan.h"

namespace topotune::act {

// Why an action is not done by this program, whoever wrote the plan; nothing: it may be done. What is not in
// the table of docs/plan.md is refused: nothing here can take a device from its driver, remove a package or
// run another program.
std::optional<std::string> refused(const model::Action& action);

// "pci:0000:22:00.0/ACSCtl" -> address and field; nothing for another form.
struct ConfigTarget {
  std::string bdf;
  std::string field;  // "ACSCtl", "MaxReadReq"
};
std::optional<ConfigTarget> config_target(const std::string& target);

}  // namespace topotune::act
