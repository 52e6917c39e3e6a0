#pragma once

#include <string>

#include "act/apply.h"
#include "cli/cli.h"

namespace topotune::cli {

// The tree that apply, undo and verify act on: --root, else the machine (""). --sysroot names a recorded
// machine, on which nothing is ever done.
Result<std::string> acting_root(const std::string& root, const Globals& globals);
void add_root_option(CLI::App& verb, std::string& root);

// One line an action, or `topotune.apply/1` / `topotune.undo/1`.
std::string accounts_text(const act::ApplyReport& report);
std::string accounts_json(const act::ApplyReport& report, const std::string& schema);

}  // namespace topotune::cli
