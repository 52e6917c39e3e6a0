// topotune's own variables and plugins: a plugin that is set up wrongly is silently off.
#include <algorithm>

#include "base/text.h"
#include "lint/context.h"

namespace topotune::lint {

namespace {

using model::Severity;
using parse::Setting;
using sv = std::string_view;

// ---- NCCL34: names and values

bool is_hash(sv text) {
  if (text.starts_with("node:")) text.remove_prefix(5);
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == sv::npos;
}

bool is_accept(sv text) {
  return std::ranges::all_of(split(text, ','), [](sv word) {
    return is_one_of(trim(word), {"machine", "nccl"});
  });
}

template <long long kLeast, long long kMost>
bool is_number(sv text) {
  const auto value = parse_int<long long>(text);
  return value && *value >= kLeast && *value <= kMost;
}

struct Value {
  sv name;
  bool (*fits)(sv);
  sv expected;
};
// As src/plugins reads them.
constexpr Value kValues[] = {
    {"TOPOTUNE_TUNER_HASH", is_hash, "16 hexadecimal digits, or node: and these"},
    {"TOPOTUNE_TUNER_ACCEPT", is_accept, "machine, nccl, or machine,nccl"},
    {"TOPOTUNE_PROFILER_KERNELS", is_number<0, 1>, "0 or 1"},
    {"TOPOTUNE_PROFILER_RECORDS", is_number<16, 1 << 20>, "a number from 16 to 1048576"},
    {"TOPOTUNE_PROFILER_MASK", is_number<0, 32767>, "a number from 0 to 32767"},
};

void check_name(Context& context, const Setting& setting) {
  if (context.input.facts.reads.count(setting.name) > 0) return;  // the script's own
  const auto near = context.suggestions-- > 0 ? nearest_topotune(setting.name) : std::nullopt;
  const bool of_a_plugin =
      setting.name.starts_with("TOPOTUNE_TUNER_") || setting.name.starts_with("TOPOTUNE_PROFILER_");
  if (!near && !of_a_plugin) return;
  Found& found = context.add("NCCL34", setting, near ? std::string(*near) : "a variable that topotune reads");
  found.finding.title = fmt::format("topotune does not know {}", setting.name);
  found.finding.remedy = near ? fmt::format("did you mean {}?", *near) : "delete it";
}

void check_value(Context& context, const Setting& setting) {
  const auto* row = std::ranges::find(kValues, sv(setting.name), &Value::name);
  if (row == std::end(kValues) || !setting.literal || setting.value.empty() || row->fits(setting.value))
    return;
  Found& found = context.add("NCCL34", setting, std::string(row->expected));
  found.finding.title =
      fmt::format("{}={} is not understood", setting.name, printable(setting.value).substr(0, 40));
}

// ---- NCCL35: plugins and table

sv file_of(sv path) { return path.substr(path.rfind('/') + 1); }

struct Plugin {
  sv variable, library;
};
constexpr Plugin kPlugins[] = {{"NCCL_TUNER_PLUGIN", "libnccl-tuner-topotune"},
                               {"NCCL_PROFILER_PLUGIN", "libnccl-profiler-topotune"},
                               {"NCCL_ENV_PLUGIN", "libnccl-env-topotune"}};

void exchanged(Context& context, const Setting& setting) {
  const auto* asked = std::ranges::find(kPlugins, sv(setting.name), &Plugin::variable);
  if (asked == std::end(kPlugins)) return;
  for (const auto& other : kPlugins) {
    if (other.variable == asked->variable || !file_of(setting.value).starts_with(other.library)) continue;
    Found& found = context.add("NCCL35", setting, fmt::format("{}.so", asked->library));
    found.finding.severity = Severity::error;
    found.finding.title = fmt::format("{} names the library of {}", asked->variable, other.variable);
    found.finding.remedy = fmt::format("{}=/path/{}.so", asked->variable, asked->library);
  }
}

bool is_topotunes(const Setting* setting, sv kind) {
  return setting != nullptr && setting->value.find("topotune") != std::string::npos &&
         (file_of(setting->value).starts_with(kind) || setting->value == "topotune");
}

const Setting* named_plugin(const Context& context) {
  for (const sv name : {"NCCL_TUNER_PLUGIN", "NCCL_ENV_PLUGIN"})
    if (const auto* one = context.last(name);
        is_topotunes(one, name == "NCCL_TUNER_PLUGIN" ? "libnccl-tuner-" : "libnccl-env-"))
      return one;
  return nullptr;
}

// `topotune run --tuned TABLE` sets what is missing.
bool run_sets_it(const Context& context) {
  return std::ranges::any_of(context.input.facts.commands, [](const parse::Command& command) {
    return tool_index(command, "topotune") < command.words.size() &&
           !option_value(command, {"--tuned"}).empty();
  });
}

void no_table(Context& context, const Setting& plugin) {
  Found& found = context.add("NCCL35", plugin, "TOPOTUNE_TUNER_TABLE names a table");
  found.finding.severity = Severity::info;  // another file, or whoever starts the job, may name it
  found.finding.title = "topotune's plugin is named, and no table";
  found.finding.remedy = "TOPOTUNE_TUNER_TABLE=/path/node.table for every rank, or `topotune run --tuned`";
}

void relative_table(Context& context, const Setting& table) {
  if (!table.literal || table.value.empty() || table.value.starts_with('/') || table.value.starts_with('~'))
    return;
  Found& found = context.add("NCCL35", table, "an absolute path");
  found.finding.title = "The tuning table's path is relative";
  found.finding.impact = "a rank that runs in another folder has no table, and the plugin is off";
  found.finding.remedy = "the absolute path of a file that every rank sees";
}

void several_nodes(Context& context, const Setting& table) {
  if (context.job.nodes.value_or(1) < 2) return;
  const auto* hash = context.last("TOPOTUNE_TUNER_HASH");
  if (hash != nullptr && (!hash->literal || !hash->value.starts_with("node:"))) return;
  if (hash == nullptr && context.mentions({"TOPOTUNE_TUNER_HASH"})) return;  // exported as it came
  Found& found =
      context.add("NCCL35", hash != nullptr ? *hash : table, "TOPOTUNE_TUNER_HASH=HASH for all ranks");
  found.finding.title =
      fmt::format("{} nodes, and nothing says that all have this table", *context.job.nodes);
  found.finding.impact = "the plugin is off for communicators of several nodes";
  found.finding.remedy =
      "export TOPOTUNE_TUNER_HASH=HASH where the job is submitted; HASH stands behind \"node:\" in `topotune "
      "run "
      "--tuned TABLE --dry-run`";
}

}  // namespace

bool uses_tuning_table(const Context& context) {
  return named_plugin(context) != nullptr && context.last("TOPOTUNE_TUNER_TABLE") != nullptr;
}

void check_topotune(Context& context) {
  for (const auto* setting : context.settings()) {
    exchanged(context, *setting);
    if (!setting->name.starts_with("TOPOTUNE_")) continue;
    if (find_topotune(setting->name) == nullptr)
      check_name(context, *setting);
    else
      check_value(context, *setting);
  }
  const auto* table = context.last("TOPOTUNE_TUNER_TABLE");
  if (table == nullptr || run_sets_it(context)) return;
  relative_table(context, *table);
  if (named_plugin(context) != nullptr) several_nodes(context, *table);
}

void check_tables(std::vector<Context>& contexts) {
  if (std::ranges::any_of(contexts, [](const Context& c) {
        return c.last("TOPOTUNE_TUNER_TABLE") != nullptr || run_sets_it(c);
      }))
    return;
  for (auto& context : contexts)
    if (const auto* plugin = named_plugin(context)) no_table(context, *plugin);
}

}  // namespace topotune::lint
