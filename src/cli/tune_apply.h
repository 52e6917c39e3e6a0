#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/rank.h"
#include "launch/start.h"

namespace topotune::cli {

// The variables that make NCCL use a tuning table: the plugin, the file, its hash, and what the table sets
// for whole communicators. `notes` says what the environment already decides otherwise. An error where ranks
// on several nodes would not decide alike: NCCL would hang.
Result<std::vector<launch::EnvironmentChange>> tuned_changes(const std::string& table,
                                                             const std::optional<launch::Rank>& rank,
                                                             std::vector<std::string>& notes);

// The profiler plugin with its default settings.
Result<std::vector<launch::EnvironmentChange>> profiled_changes();

}  // namespace topotune::cli
