#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "host/child.h"

namespace topotune::host {

// Standard output of a program found on PATH: no shell, empty standard input, LC_ALL=C. Errors: not_found,
// denied, timed_out (it and its children are killed), too_large (over Host::kMaxRead), io with the first line
// of its standard error for a status other than 0.
Result<std::string> run_command(std::span<const std::string> argv, Milliseconds limit);

}  // namespace topotune::host
