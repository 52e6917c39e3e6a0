#pragma once

#include <optional>
#include <string>

#include "cli/cli.h"

namespace topotune::cli {

// Would NCCL read `file`, and does it describe the machine of `input` (nothing: only the file is judged)?
// Prints what is wrong and returns 0, 1 (NCCL reads it and loses something), 2 (NCCL gives up, or it
// describes another machine), 3.
int check_nccl_xml(const std::string& file, const std::optional<std::string>& input, const Globals& globals);

}  // namespace topotune::cli
