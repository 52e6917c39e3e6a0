#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/start.h"

namespace topotune::cli {

// The variables that make NCCL use a tuning table: the plugin, the file, its hash, and what the table sets
// for whole communicators. `notes` says what the environment already decides otherwise.
Result<std::vector<launch::EnvironmentChange>> tuned_changes(const std::string& table,
                                                             std::vector<std::string>& notes);

// The same as text: "NAME=value" lines for a shell or nccl.conf (NCCL_* alone are read from there).
std::string tuned_lines(const std::vector<launch::EnvironmentChange>& changes);

// The profiler plugin with its default settings.
Result<std::vector<launch::EnvironmentChange>> profiled_changes();

}  // namespace topotune::cli
