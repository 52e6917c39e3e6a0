#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/rank.h"
#include "launch/start.h"
#include "plan/plan.h"

namespace topotune::cli {

// The process that plugins are set for.
struct PluginJob {
  std::optional<launch::Rank> rank;
  std::vector<std::string> command, keep;  // keep: variables that are left alone
  std::vector<plan::Setting> settings;     // of the job's files; the environment is read here
  std::string sysroot;
  bool dry_run = false;
};

// The variables that make NCCL use a tuning table: the plugin, the file, its hash, and what the table sets
// for whole communicators: only where the machine fits and all ranks surely get it, as ranks that differ in
// it hang. `notes` says what is left out and why, and what was set otherwise. An error where ranks on several
// nodes would not decide alike.
Result<std::vector<launch::EnvironmentChange>> tuned_changes(const std::string& table, const PluginJob& job,
                                                             std::vector<std::string>& notes);

// The profiler plugin with its default settings.
Result<std::vector<launch::EnvironmentChange>> profiled_changes(const PluginJob& job,
                                                                std::vector<std::string>& notes);

}  // namespace topotune::cli
