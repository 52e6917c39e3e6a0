#include "cli/tune_apply.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "cli/job_nodes.h"
#include "cli/nccl_settings.h"
#include "cli/tune_setup.h"
#include "cli/tune_table.h"
#include "tune/machine.h"

namespace topotune::cli {

namespace {

bool kept(const PluginJob& job, const char* name) {
  return std::ranges::find(job.keep, name) != job.keep.end();
}

// What a variable is already: the environment's, then a job's file's, then nccl.conf's.
class Already {
 public:
  explicit Already(const PluginJob& job)
      : job_(job), environment_(launch::process_environment()), nccl_(nccl_settings(environment_)) {}
  std::optional<NcclSetting> operator()(const std::string& name) const {
    if (!environment_(name)) {
      const auto of_file =
          std::ranges::find_if(job_.settings, [&](const plan::Setting& s) { return s.name == name; });
      if (of_file != job_.settings.end() && !of_file->value.empty())
        return NcclSetting{of_file->value, of_file->where};
    }
    return nccl_(name);
  }
  std::string value(const std::string& name) const {
    const auto set = (*this)(name);
    return set ? set->value : "";
  }
  const launch::Environment& environment() const { return environment_; }

 private:
  const PluginJob& job_;
  launch::Environment environment_;
  std::function<std::optional<NcclSetting>(const std::string&)> nccl_;
};

void say_what_was(const std::vector<launch::EnvironmentChange>& changes, const Already& already,
                  std::vector<std::string>& notes) {
  for (const auto& change : changes)
    if (const auto was = already(change.name); was && was->value != change.value)
      notes.push_back(fmt::format("{} was {}{}", change.name, printable(was->value),
                                  was->file.empty() ? "" : " (" + printable(was->file) + ")"));
}

// TOPOTUNE_TUNER_HASH. What this node reads from its own file says nothing of other nodes, so that only the
// job's own variable lets ranks on several nodes use a table.
Result<std::string> hash_for(const TuningTable& loaded, bool fits, const JobNodes& nodes,
                             const std::string& whole_job, std::vector<std::string>& notes) {
  if (whole_job.empty() || whole_job.starts_with(tune::kHashOfNode)) {
    if (nodes.several.value_or(false))
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
  if (!fits && nodes.several.value_or(true))
    return refuse(fmt::format(
        "{}: it was not measured on this kind of machine, and TOPOTUNE_TUNER_HASH tells all ranks to use it",
        printable(loaded.path)));
  // What the launcher does not pass on, other nodes do not have.
  return nodes.forgets.empty() ? whole_job : std::string(tune::kHashOfNode) + loaded.hash;
}

// The plugin opens the file by its name, in every rank.
Result<void> is_file(const std::string& table) {
  std::error_code error;
  if (table != "-" && (std::filesystem::is_regular_file(table, error) ||
                       !std::filesystem::exists(table, error) || std::filesystem::is_directory(table, error)))
    return {};
  return tl::unexpected(Error{Errc::usage,
                              fmt::format("run: --tuned {}: the plugin reads a table from a regular file, in "
                                          "every rank",
                                          printable(table)),
                              {},
                              {},
                              {},
                              "write it to a file first"});
}

// Why the table's thread blocks are left out; "": they are not. Ranks that differ in them hang. `ours`: the
// hash is this node's own word.
std::string left_out(const TuningTable& loaded, bool fits, const JobNodes& nodes, bool ours) {
  std::vector<std::string> names;
  for (const auto& s : loaded.table.settings) names.push_back(fmt::format("{}={}", s.name, s.value));
  const auto all = fmt::format("{}", fmt::join(names, ", "));
  if (!fits) return all + " left out";
  if (!nodes.forgets.empty())
    return fmt::format(
        "{} left out: {} passes no variables on to other nodes; put `topotune run --tuned` behind it", all,
        nodes.forgets);
  if (!ours || nodes.several == false) return "";
  return fmt::format(
      "{} left out: the number of nodes is not known; put `topotune run --tuned` behind the launcher, or set "
      "TOPOTUNE_TUNER_HASH={} for all ranks",
      all, loaded.hash);
}

void add_settings(const TuningTable& loaded, const PluginJob& job, const Already& already,
                  std::vector<launch::EnvironmentChange>& out, std::vector<std::string>& notes) {
  bool whole = true;
  for (const char* name : {"NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"}) {
    const auto setting = std::ranges::find(loaded.table.settings, name, &tune::Setting::name);
    const bool tables = setting != loaded.table.settings.end();
    const auto measured = tables ? fmt::format("with {}", setting->value) : std::string("without it");
    const auto is = already(name);
    if (is && !(tables && is->value == std::to_string(setting->value))) {
      notes.push_back(
          fmt::format("{} is kept, the table was measured {}", printable(is->text(name)), measured));
      whole = whole && std::string_view(name).find("NCHANNELS") != std::string_view::npos;
    } else if (tables && kept(job, name)) {
      notes.push_back(fmt::format("--keep {}: the table was measured {}", name, measured));
      whole = false;
    }
  }
  // Least and most belong together.
  if (!whole) return;
  for (const auto& s : loaded.table.settings) out.push_back({s.name, std::to_string(s.value)});
}

}  // namespace

Result<std::vector<launch::EnvironmentChange>> tuned_changes(const std::string& table, const PluginJob& job,
                                                             std::vector<std::string>& notes) {
  if (const auto ok = is_file(table); !ok) return tl::unexpected(ok.error());
  const auto loaded = load_tuning_table(table);
  if (!loaded) return tl::unexpected(loaded.error());
  for (const char* name : {"NCCL_TUNER_PLUGIN", "TOPOTUNE_TUNER_TABLE", "TOPOTUNE_TUNER_HASH"}) {
    if (!kept(job, name)) continue;
    notes.push_back(fmt::format("--keep {}: the table is not used", name));
    return std::vector<launch::EnvironmentChange>();
  }
  const auto plugin = find_plugin("", "libnccl-tuner-topotune.so");
  if (!plugin) return tl::unexpected(plugin.error());
  const Already already(job);
  const auto machine = tune::machine_fingerprint(job.sysroot);
  const bool elsewhere = machine.empty() && job.dry_run;  // where jobs are submitted
  const bool fits = elsewhere || machine == loaded->table.machine ||
                    tune::accepts(already.value("TOPOTUNE_TUNER_ACCEPT"), "machine");
  const auto nodes = nodes_of(job.rank, job.command, already.environment());
  const auto hash = hash_for(*loaded, fits, nodes, already.value("TOPOTUNE_TUNER_HASH"), notes);
  if (!hash) return tl::unexpected(hash.error());
  std::vector<launch::EnvironmentChange> out{
      {"NCCL_TUNER_PLUGIN", *plugin}, {"TOPOTUNE_TUNER_TABLE", loaded->path}, {"TOPOTUNE_TUNER_HASH", *hash}};
  say_what_was(out, already, notes);
  if (!fits || elsewhere)
    notes.push_back(fmt::format(
        "the table was measured on {}, this machine has {}{}", printable(loaded->table.machine),
        machine.empty() ? "no GPU that can be read" : machine, elsewhere ? "" : ": the plugin will be off"));
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"})
    if (const auto set = already(name))
      notes.push_back(fmt::format("{} narrows what the table may choose", printable(set->text(name))));
  if (already.value("NCCL_CTA_POLICY") == "1")
    notes.push_back(
        "NCCL_CTA_POLICY=1: NCCL prefers NVLS for registered buffers only without a tuner plugin");
  // What hash_for() said of several nodes is enough.
  const bool ours = hash->starts_with(tune::kHashOfNode);
  if (loaded->table.settings.empty() ||
      (fits && ours && nodes.several.value_or(false) && nodes.forgets.empty()))
    return out;
  if (const auto why = left_out(*loaded, fits, nodes, ours); !why.empty())
    notes.push_back(why);
  else
    add_settings(*loaded, job, already, out, notes);
  return out;
}

Result<std::vector<launch::EnvironmentChange>> profiled_changes(const PluginJob& job,
                                                                std::vector<std::string>& notes) {
  const auto plugin = find_plugin("", "libnccl-profiler-topotune.so");
  if (!plugin) return tl::unexpected(plugin.error());
  std::vector<launch::EnvironmentChange> out;
  if (!kept(job, "NCCL_PROFILER_PLUGIN")) out.push_back({"NCCL_PROFILER_PLUGIN", *plugin});
  say_what_was(out, Already(job), notes);
  return out;
}

}  // namespace topotune::cli
