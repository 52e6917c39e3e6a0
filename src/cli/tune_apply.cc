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

// nothing: not known.
std::optional<bool> several_nodes(const std::optional<launch::Rank>& rank) {
  if (!rank || !rank->size || !rank->local_size) return std::nullopt;
  return *rank->size > *rank->local_size;
}

// TOPOTUNE_TUNER_HASH. What this node reads from its own file says nothing of other nodes, so that only the
// job's own variable lets ranks on several nodes use a table.
Result<std::string> hash_for(const TuningTable& loaded, bool fits, std::optional<bool> several,
                             std::vector<std::string>& notes) {
  const auto whole_job = variable("TOPOTUNE_TUNER_HASH");
  if (whole_job.empty() || whole_job.starts_with(tune::kHashOfNode)) {
    if (several.value_or(false))
      notes.push_back(
          fmt::format("several nodes: NCCL decides as ever, unless TOPOTUNE_TUNER_HASH={} is set for "
                      "all ranks where the job is submitted",
                      loaded.hash));
    return std::string(tune::kHashOfNode) + loaded.hash;
  }
  const auto refuse = [](std::string why) {
    return tl::unexpected(
        Error{Errc::unsupported,
              std::move(why),
              {},
              {},
              {},
              "ranks that decide differently hang: give every node the same table and the same kind of "
              "GPUs, or start all of them without --tuned"});
  };
  if (whole_job != loaded.hash)
    return refuse(fmt::format("{}: its hash is {}, and TOPOTUNE_TUNER_HASH, what all ranks must have, is {}",
                              printable(loaded.path), loaded.hash, printable(whole_job)));
  if (!fits && several.value_or(true))
    return refuse(fmt::format(
        "{}: it was not measured on this kind of machine, and TOPOTUNE_TUNER_HASH tells all ranks to use it",
        printable(loaded.path)));
  return whole_job;
}

}  // namespace

Result<std::vector<launch::EnvironmentChange>> tuned_changes(const std::string& table,
                                                             const std::optional<launch::Rank>& rank,
                                                             std::vector<std::string>& notes) {
  const auto loaded = load_tuning_table(table);
  if (!loaded) return tl::unexpected(loaded.error());
  const auto plugin = find_plugin("", "libnccl-tuner-topotune.so");
  if (!plugin) return tl::unexpected(plugin.error());
  const auto machine = tune::machine_fingerprint();
  const bool fits =
      machine == loaded->table.machine || tune::accepts(variable("TOPOTUNE_TUNER_ACCEPT"), "machine");
  const auto several = several_nodes(rank);
  const auto hash = hash_for(*loaded, fits, several, notes);
  if (!hash) return tl::unexpected(hash.error());
  std::vector<launch::EnvironmentChange> out{
      {"NCCL_TUNER_PLUGIN", *plugin}, {"TOPOTUNE_TUNER_TABLE", loaded->path}, {"TOPOTUNE_TUNER_HASH", *hash}};
  if (const auto other = variable("NCCL_TUNER_PLUGIN"); !other.empty() && other != *plugin)
    notes.push_back(fmt::format("NCCL_TUNER_PLUGIN was {}", printable(other)));
  if (!fits)
    notes.push_back(fmt::format("the table was measured on {}, this machine has {}: the plugin will be off",
                                loaded->table.machine,
                                machine.empty() ? "no GPU that can be read" : machine));
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"})
    if (const auto value = variable(name); !value.empty())
      notes.push_back(fmt::format("{}={} narrows what the table may choose", name, printable(value)));
  if (variable("NCCL_CTA_POLICY") == "1")
    notes.push_back("NCCL_CTA_POLICY=1: NCCL prefers NVLS for registered buffers only without a tuner plugin");
  // Without the table what it sets is of no use.
  if (several.value_or(false) && hash->starts_with(tune::kHashOfNode)) return out;
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

Result<std::vector<launch::EnvironmentChange>> profiled_changes() {
  const auto plugin = find_plugin("", "libnccl-profiler-topotune.so");
  if (!plugin) return tl::unexpected(plugin.error());
  return std::vector<launch::EnvironmentChange>{{"NCCL_PROFILER_PLUGIN", *plugin}};
}

}  // namespace topotune::cli
