// UCX variables, and traffic classes of both libraries.
#include <algorithm>

#include "base/text.h"
#include "lint/context.h"
#include "parse/config_shell.h"

namespace topotune::lint {

namespace {

using model::Severity;
using parse::Setting;
using sv = std::string_view;

bool plugin_mode(const Context& context) {
  const auto* mode = context.last("NCCL_PLUGIN_P2P");
  return mode != nullptr && is_one_of(mode->value, {"ucx", "ucx_rma", "ucx_uct", "ucx_uct_read"});
}

bool nccl_in_use(const Context& context) {
  if (context.job.starts_training) return true;
  return std::ranges::any_of(context.settings(), [](const Setting* one) {
    return one->name.starts_with("NCCL_") && !is_foreign(one->name);
  });
}

// --- UCX01
// -----------------------------------------------------------------------------------------------------

// mpirun, srun --mpi=...: every rank may call MPI, which may use UCX for its own messages.
bool mpi_starts(const Context& context) {
  return std::ranges::any_of(context.input.facts.commands, [](const parse::Command& command) {
    const std::size_t at = parse::program_index(command.words);
    if (at >= command.words.size()) return false;
    const sv program = parse::base_name(command.words[at]);
    if (program.starts_with("mpi") || is_one_of(program, {"orterun", "prun"})) return true;
    if (program != "srun") return false;
    const std::string plugin = option_value(command, {"--mpi"});
    return !plugin.empty() && plugin != "none";
  });
}

// Builds and images have names of their own that begin so: UCX_HOME, UCX_VERSION.
bool is_ucx_variable(sv name) {
  if (!name.starts_with("UCX_")) return false;
  if (find_ucx(name) != nullptr) return true;
  return std::ranges::none_of(
      std::initializer_list<sv>{"_PATH", "_DIR", "_HOME", "_ROOT", "_PREFIX", "_VERSION", "_VER", "_COMMIT",
                                "_BRANCH", "_TAG", "_REPO", "_URL", "_SRC", "_LIB", "_IMAGE"},
      [&](sv end) { return name.ends_with(end); });
}

void no_effect(Context& context, const Setting& setting, bool mpi) {
  const bool own = setting.name.starts_with("NCCL_UCX_");
  if (!setting.literal || (!own && (!is_ucx_variable(setting.name) || !nccl_in_use(context)))) return;
  if (plugin_mode(context)) {
    if (!setting.name.ends_with("UCX_NET_DEVICES")) return;
    Found& found = context.add("UCX01", setting, "unset");
    found.finding.severity = Severity::info;
    found.finding.title = fmt::format("{} is overridden: the plugin sets the device itself", setting.name);
    return;
  }
  if (context.job.mpi && !context.job.starts_training && !own) return;
  Found& found = context.add("UCX01", setting, "NCCL_PLUGIN_P2P=ucx, or unset");
  const bool also_others = context.job.mpi || mpi || context.job.uses_ucx || !context.job.starts_training;
  found.finding.severity = !own && also_others ? Severity::info : Severity::warn;
  found.finding.title = fmt::format("{} has no effect on NCCL", setting.name);
  found.finding.remedy =
      !own && also_others
          ? "nothing to do: NCCL does not read it, others of this job may"
          : "delete it, or use NCCL_IB_*; NCCL takes UCX only through the nccl-rdma-sharp plugin with "
            "NCCL_PLUGIN_P2P=ucx";
  found.finding.action = "unset-" + setting.name;
}

// --- UCX02
// -----------------------------------------------------------------------------------------------------

bool names_gpu(sv list) {
  for (const sv item : split(list, ','))
    if (item.starts_with("cuda") || item.starts_with("gdr") || item.starts_with("rocm") ||
        item.starts_with("ze_"))
      return true;
  return false;
}

void transports(Context& context, const Setting& setting) {
  const bool own = setting.name == "NCCL_UCX_TLS";
  if ((!own && setting.name != "UCX_TLS") || setting.value.empty() || setting.value.starts_with('^') ||
      !setting.literal)
    return;
  if (plugin_mode(context)) {
    if (!names_gpu(setting.value)) return;
    std::string rest;
    for (const sv item : split(setting.value, ','))
      if (!names_gpu(item)) rest += (rest.empty() ? "" : ",") + std::string(item);
    Found& found = context.add("UCX02", setting, rest.empty() ? "unset" : rest);
    found.finding.title = "The NCCL UCX plugin refuses cuda and gdr transports";
    found.finding.remedy = fmt::format("{}={}", setting.name, rest);
    found.finding.action = "fix-" + setting.name;
    context.set_value(found, setting, rest);
    return;
  }
  const bool gpu_application = context.job.gpu_application && (context.job.mpi || context.job.uses_ucx) &&
                               !context.job.starts_training;
  const bool everything =
      std::ranges::any_of(split(setting.value, ','), [](sv item) { return item == "all" || item == "gpu"; });
  // Where NCCL moves the GPU buffers, MPI over UCX carries host memory only.
  if (own || !gpu_application || names_gpu(setting.value) || everything || nccl_in_use(context)) return;
  Found& found = context.add("UCX02", setting, setting.value + ",cuda");
  found.finding.severity = Severity::warn;  // that the buffers are on the GPU is likely, not proven
  found.finding.title = "UCX_TLS has no cuda: GPU pointers are not recognised";
  found.finding.remedy = fmt::format("UCX_TLS={},cuda, or unset it", setting.value);
  found.finding.action = "fix-UCX_TLS";
}

// --- UCX03
// -----------------------------------------------------------------------------------------------------

bool allocation_method(sv item) {
  return item.starts_with("md:") || is_one_of(item, {"thp", "huge", "mmap", "heap"});
}

bool log_level(sv word) {
  return std::ranges::any_of(
      std::initializer_list<sv>{"fatal", "error", "warn", "diag", "info", "debug", "trace", "trace_req",
                                "trace_data", "trace_async", "trace_func", "trace_poll", "req", "data",
                                "async", "func", "poll", "print"},
      [&](sv one) { return iequals(one, word); });
}

// Of any of UCX's parsers for switches (src/ucs/config/parser.c: bool, ternary, on_off, each with auto):
// which one a variable has, its default does not tell.
bool switch_word(sv word) {
  return is_one_of(to_lower(word), {"y", "n", "yes", "no", "1", "0", "on", "off", "try", "maybe", "auto"});
}

struct Illegal {
  std::string value, legal;
};

std::optional<Illegal> illegal_value(const Setting& setting) {
  const sv name = setting.name;
  if (name == "UCX_ALLOC_PRIO" || name.ends_with("_ALLOC")) {
    const Variable* row = find_ucx(name);
    if (name != "UCX_ALLOC_PRIO" && (row == nullptr || row->default_value.find("mmap") == sv::npos))
      return std::nullopt;
    for (const sv item : split(setting.value, ','))
      if (!allocation_method(trim(item)) && trim(item) != "md")
        return Illegal{std::string(item), "md:<name>, thp, huge, mmap, heap"};
  } else if (name == "UCX_RNDV_SCHEME") {
    const auto& value = setting.value;  // UCX looks enums up without regard to case
    if (!is_one_of(to_lower(value),
                   {"auto", "get_zcopy", "put_zcopy", "get_ppln", "put_ppln", "am", "rkey_ptr"}))
      return Illegal{value, "auto, get_zcopy, put_zcopy, get_ppln, put_ppln, am, rkey_ptr"};
  } else if (name == "UCX_LOG_LEVEL" || name == "UCX_MEM_LOG_LEVEL") {
    if (!log_level(setting.value))
      return Illegal{setting.value, "fatal, error, warn, diag, info, debug, trace, ..."};
  } else if (const Variable* row = find_ucx(name)) {
    const sv fallback = row->default_value;
    if (is_one_of(fallback, {"y", "n", "yes", "no", "try"}) && !switch_word(setting.value))
      return Illegal{setting.value, fallback == "try" ? "y, n, try" : "y, n"};
  }
  return std::nullopt;
}

void rejected(Context& context, const Setting& setting) {
  if (!setting.name.starts_with("UCX_") || setting.value.empty() || !setting.literal) return;
  const auto illegal = illegal_value(setting);
  if (!illegal) return;
  Found& found = context.add("UCX03", setting, illegal->legal);
  found.finding.title =
      fmt::format("{}: \"{}\" is not a legal value", setting.name, printable(illegal->value).substr(0, 40));
  found.finding.remedy = fmt::format("unset it, or one of: {}", illegal->legal);
  found.finding.action = "unset-" + setting.name;
  context.drop(found, setting);
}

// --- UCX04, UCX05
// ----------------------------------------------------------------------------------------------

void one_rail(Context& context, const Setting& setting) {
  if (setting.name != "UCX_NET_DEVICES" || setting.value.empty() || !setting.literal ||
      setting.value == "all")
    return;
  if (setting.value.find(',') != std::string::npos || setting.value.find(':') == std::string::npos) return;
  if (context.job.ranks_per_node.value_or(1) < 2 || context.job.starts_training) return;
  Found& found = context.add("UCX04", setting, "unset, or the near device of each rank");
  found.finding.severity = Severity::info;  // how many rails there are, the text does not tell
}

void thresholds(Context& context, const Setting& setting) {
  const std::string comment = context.comments_at(setting.at.line);
  if (setting.name == "UCX_BCOPY_THRESH" && setting.value == "0") {
    const bool meant_off =
        icontains(comment, "bcopy") && (icontains(comment, "disable") || icontains(comment, "off") ||
                                        icontains(comment, "avoid") || icontains(comment, "no "));
    Found& found = context.add("UCX05", setting, "unset (auto)");
    if (!meant_off) found.finding.severity = Severity::info;
    found.finding.title = "UCX_BCOPY_THRESH=0 uses bcopy from 0 bytes on";
    found.finding.action = "unset-UCX_BCOPY_THRESH";
  }
  if (setting.name == "UCX_RNDV_THRESH" && setting.literal &&
      parse::parse_size(setting.value).value_or(0) > 0) {
    const bool meant_small =
        icontains(comment, "small") &&
        (icontains(comment, "force") || icontains(comment, "rendezvous") || icontains(comment, "rndv") ||
         icontains(comment, "rdma") || icontains(comment, "zero"));
    if (!meant_small) return;
    Found& found = context.add("UCX05", setting, "unset (auto)");
    found.finding.title = fmt::format(
        "UCX_RNDV_THRESH={}: larger messages go by rendezvous, smaller ones do not", setting.value);
    found.finding.action = "unset-UCX_RNDV_THRESH";
  }
}

// --- QOS05
// -----------------------------------------------------------------------------------------------------

// The text speaks of that DSCP: "DSCP 26", or a traffic class that holds it.
bool dscp_named(const Context& context, long long dscp, const Setting& self) {
  for (const auto* one : context.settings()) {
    if (one == &self || !is_one_of(one->name, {"UCX_IB_TRAFFIC_CLASS", "NCCL_IB_TC", "NCCL_IB_FIFO_TC"}))
      continue;
    const IntegerReading reading = read_integer(one->value);
    if (reading.whole && reading.value >= 0 && reading.value / 4 == dscp) return true;
  }
  const std::string number = fmt::format("{}", dscp);
  for (const auto& comment : context.input.facts.comments) {
    const std::string lower = to_lower(comment.text);
    for (auto at = lower.find("dscp"); at != std::string::npos; at = lower.find("dscp", at + 4)) {
      std::size_t n = at + 4;
      while (n < lower.size() && !is_digit(lower[n]) && n < at + 10) ++n;
      std::size_t end = n;
      while (end < lower.size() && is_digit(lower[end])) ++end;
      if (end > n && lower.substr(n, end - n) == number) return true;
    }
  }
  return false;
}

void traffic_class(Context& context, const Setting& setting) {
  if (!is_one_of(setting.name, {"NCCL_IB_TC", "UCX_IB_TRAFFIC_CLASS", "NCCL_IB_FIFO_TC"}) || !setting.literal)
    return;
  const IntegerReading reading = read_integer(setting.value);
  if (!reading.whole || reading.value <= 0 || reading.value > 63) return;
  const long long value = reading.value;
  const bool proven = dscp_named(context, value, setting);
  if (!proven && (value % 4 == 0 || value == 41)) return;
  Found& found = context.add("QOS05", setting, fmt::format("{} for DSCP {}", value * 4, value));
  if (!proven) found.finding.severity = Severity::info;
  found.finding.title = fmt::format("{}={} is DSCP {}", setting.name, value, value / 4);
  found.finding.remedy =
      fmt::format("{}={} for DSCP {} (the traffic class is DSCP x 4)", setting.name, value * 4, value);
  found.finding.action = "fix-" + setting.name;
  if (proven) context.set_value(found, setting, fmt::format("{}", value * 4));
}

}  // namespace

void check_ucx(Context& context) {
  const bool mpi = mpi_starts(context);
  for (const auto* setting : context.settings()) {
    no_effect(context, *setting, mpi);
    transports(context, *setting);
    rejected(context, *setting);
    one_rail(context, *setting);
    thresholds(context, *setting);
    traffic_class(context, *setting);
  }
}

}  // namespace topotune::lint
