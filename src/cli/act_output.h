#pragma once

#include <string>

#include "act/apply.h"

namespace topotune::cli {

// One line an action, or `topotune.apply/1` / `topotune.undo/1`.
std::string accounts_text(const act::ApplyReport& report);
std::string accounts_json(const act::ApplyReport& report, const std::string& schema);

}  // namespace topotune::cli
