#include "cli/tune_apply.h"

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "cli/tune_setup.h"
#include "cli/tune_table.h"
#include "tune/machine.h"

namespace topotune::cli {

namespace {

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

}  // namespace

Result<std::vector<launch::EnvironmentChange>> tuned_changes(const std::string& table,
                                                             std::vector<std::string>& notes) {
  const auto loaded = load_tuning_table(table);
  if (!loaded) return tl::unexpected(loaded.error());
  const auto plugin = find_plugin("", "libnccl-tuner-topotune.so");
  if (!plugin) return tl::unexpected(plugin.error());
  std::vector<launch::EnvironmentChange> out{{"NCCL_TUNER_PLUGIN", *plugin},
                                             {"TOPOTUNE_TUNER_TABLE", loaded->path},
                                             {"TOPOTUNE_TUNER_HASH", loaded->hash}};
  if (const auto other = variable("NCCL_TUNER_PLUGIN"); !other.empty() && other != *plugin)
    notes.push_back(fmt::format("NCCL_TUNER_PLUGIN was {}", printable(other)));
  if (const auto machine = tune::machine_fingerprint(); machine != loaded->table.machine)
    notes.push_back(fmt::format("the table was measured on {}, this machine has {}: the plugin will be off",
                                loaded->table.machine,
                                machine.empty() ? "no GPU that can be read" : machine));
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"})
    if (const auto value = variable(name); !value.empty())
      notes.push_back(fmt::format("{}={} narrows what the table may choose", name, printable(value)));
  for (const auto& setting : loaded->table.settings) {
    const auto value = variable(setting.name);
    if (value.empty() || value == std::to_string(setting.value))
      out.push_back({setting.name, std::to_string(setting.value)});
    else
      notes.push_back(fmt::format("{}={} is kept, the table was measured with {}", setting.name,
                                  printable(value), setting.value));
  }
  return out;
}

std::string tuned_lines(const std::vector<launch::EnvironmentChange>& changes) {
  std::string out;
  for (const auto& change : changes)
    if (change.value) out += fmt::format("{}={}\n", change.name, *change.value);
  return out;
}

Result<std::vector<launch::EnvironmentChange>> profiled_changes() {
  const auto plugin = find_plugin("", "libnccl-profiler-topotune.so");
  if (!plugin) return tl::unexpected(plugin.error());
  return std::vector<launch::EnvironmentChange>{{"NCCL_PROFILER_PLUGIN", *plugin}};
}

}  // namespace topotune::cli
