// Names: unknown, removed, PyTorch's, empty values, values that are no numbers, lines that nccl.conf does not
// take.
#include <algorithm>

#include "base/text.h"
#include "lint/context.h"

namespace topotune::lint {

namespace {

using model::Severity;
using parse::ConfigKind;
using parse::Setting;
using sv = std::string_view;

bool is_nccl(sv name) { return name.starts_with("NCCL_"); }

// The script reads the name itself: it is a variable of its own.
bool reads_it(const Context& context, sv name) { return context.input.facts.reads.count(name) > 0; }

bool pytorch_name(sv name) {
  return is_one_of(
      name, {"NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT", "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING"});
}

// Read by PyTorch with TORCH_ in front; without it NCCL reads none of them.
bool only_torch_name(sv name) {
  return is_one_of(name, {"NCCL_AVOID_RECORD_STREAMS", "NCCL_HEARTBEAT_TIMEOUT_SEC", "NCCL_DUMP_ON_TIMEOUT",
                          "NCCL_ENABLE_MONITORING", "NCCL_TRACE_BUFFER_SIZE", "NCCL_CUDA_EVENT_CACHE",
                          "NCCL_RETHROW_CUDA_ERRORS", "NCCL_PROPAGATE_ERROR", "NCCL_NAN_CHECK",
                          "NCCL_HIGH_PRIORITY", "NCCL_USE_COMM_NONBLOCKING", "NCCL_COORD_CHECK_MILSEC"});
}

void phantom(Context& context, const Setting& setting, const Phantom& known) {
  if (!known.certain && reads_it(context, setting.name)) return;
  Found& found = context.add("NCCL01", setting, "a variable that NCCL reads");
  if (!known.certain) found.finding.severity = Severity::warn;
  found.finding.title = fmt::format("NCCL does not know {}", setting.name);
  found.finding.remedy = std::string(known.instead);
  found.finding.action = "unset-" + setting.name;
  context.drop(found, setting);
}

void too_new(Context& context, const Setting& setting, const Variable& variable) {
  Found& found = context.add(
      "NCCL01", setting, fmt::format("NCCL {}.{} or newer", variable.first->major, variable.first->minor));
  found.finding.severity = Severity::warn;
  found.finding.title =
      fmt::format("NCCL {}.{} does not know {} yet", context.nccl->major, context.nccl->minor, setting.name);
  found.finding.remedy = fmt::format("a newer NCCL: {} came with {}.{}", setting.name, variable.first->major,
                                     variable.first->minor);
  found.finding.action = "unset-" + setting.name;
}

// Google's builds of NCCL for its TCP networks read names that NVIDIA's does not.
bool of_googles_build(const Context& context, sv name) {
  return name == "NCCL_DYNAMIC_CHUNK_SIZE" && context.mentions({"tcpx", "fastrak"});
}

// Where files lie: what images, charts and scripts hand to themselves. NCCL has no such name left unlisted.
bool names_a_file(sv name) {
  return std::ranges::any_of(
      std::initializer_list<sv>{"_PATH", "_DIR", "_HOME", "_ROOT", "_SCRIPT", "_IMAGE"},
      [&](sv end) { return name.ends_with(end); });
}

void unknown(Context& context, const Setting& setting) {
  if (reads_it(context, setting.name) || of_googles_build(context, setting.name)) return;
  const auto near = context.suggestions-- > 0 ? nearest_nccl(setting.name, context.nccl) : std::nullopt;
  if (!near && names_a_file(setting.name)) return;
  Found& found =
      context.add("NCCL01", setting, near ? fmt::format("{}", *near) : "a variable that NCCL reads");
  found.finding.severity = Severity::warn;
  found.finding.title = fmt::format("NCCL does not know {}", setting.name);
  found.finding.remedy = near ? fmt::format("did you mean {}?", *near) : "delete it";
  if (context.rccl()) {
    found.finding.severity = Severity::info;
    if (!near) found.finding.remedy = "delete it, unless RCCL knows it: its own names are not listed here";
  }
  found.finding.action = "unset-" + setting.name;
}

void removed(Context& context, const Setting& setting, const Renamed& row) {
  if (older(context.nccl, row.gone) || (row.still_read && context.rccl())) return;
  const bool group = row.name == "NCCL_LAUNCH_MODE";
  const std::string word = row.still_read ? "deprecated" : "removed";
  Found& found = context.add("NCCL03", setting, row.now.empty() ? "unset" : std::string(row.now));
  found.finding.title =
      fmt::format("{} was {} in NCCL {}.{}", setting.name, word, row.gone.major, row.gone.minor);
  if (row.still_read) found.finding.severity = Severity::info;
  found.finding.remedy = row.now.empty() ? "delete it" : fmt::format("{} does this now", row.now);
  if (row.name == "NCCL_IB_CUDA_SUPPORT")
    found.finding.remedy =
        "delete it; how far GPUDirect RDMA may reach is NCCL_NET_GDR_LEVEL (a path level, not a switch)";
  found.finding.action = "unset-" + setting.name;
  const bool same_values =
      is_one_of(row.name, {"NCCL_MNNVL", "NCCL_MAX_NRINGS", "NCCL_MIN_NRINGS", "NCCL_MAX_NCHANNELS",
                           "NCCL_MIN_NCHANNELS", "NCCL_NCCL_ALLOC_P2P_NET_LL_BUFFERS", "NCCL_GRAPH"});
  if (row.still_read || group) return;
  if (same_values)
    context.rename(found, setting, std::string(row.now));
  else
    context.drop_idle(found, setting);
}

// A row of the table that ended without a successor.
void ended(Context& context, const Setting& setting, const Variable& variable) {
  if (older(context.nccl, *variable.gone)) return;
  Found& found = context.add("NCCL03", setting, "unset");
  found.finding.title =
      fmt::format("{} was removed in NCCL {}.{}", setting.name, variable.gone->major, variable.gone->minor);
  if (!context.nccl && *variable.gone > since(2, 23)) found.finding.severity = Severity::info;
  found.finding.remedy = "delete it";
  found.finding.action = "unset-" + setting.name;
  if (found.finding.severity != Severity::info) context.drop_idle(found, setting);
}

void pytorch(Context& context, const Setting& setting) {
  Found& found = context.add("NCCL19", setting, "TORCH_" + setting.name);
  found.finding.title =
      fmt::format("{} belongs to PyTorch and is called TORCH_{}", setting.name, setting.name);
  if (only_torch_name(setting.name)) {
    found.finding.impact = "no effect: what the author wanted does not happen";
    found.finding.remedy = fmt::format("TORCH_{}, or delete it", setting.name);
  } else {
    found.finding.remedy = fmt::format(
        "TORCH_{} (PyTorch 2.2 and newer); it tears a hung job down, it does not heal NCCL", setting.name);
  }
  found.finding.action = "rename-" + setting.name;
  // What nobody read so far would begin to act.
  if (!only_torch_name(setting.name)) context.rename(found, setting, "TORCH_" + setting.name);
}

void check_name(Context& context, const Setting& setting) {
  if (pytorch_name(setting.name) || only_torch_name(setting.name)) return pytorch(context, setting);
  if (const auto* known = find_phantom(setting.name)) return phantom(context, setting, *known);
  const auto& library = context.options.library_names;
  if (library && library->count(setting.name) > 0) return;
  if (const auto* row = find_renamed(setting.name)) return removed(context, setting, *row);
  if (is_foreign(setting.name)) return;
  const Variable* variable = find_nccl(setting.name);
  if (variable != nullptr && variable->phantom)
    return phantom(context, setting, {variable->name, "delete it", true});
  if (variable == nullptr) return unknown(context, setting);
  if (variable->gone) return ended(context, setting, *variable);
  if (variable->core && variable->first && older(context.nccl, *variable->first))
    return too_new(context, setting, *variable);
}

void launch_mode(Context& context, const Setting& setting) {
  if (setting.name != "NCCL_LAUNCH_MODE" || !iequals(setting.value, "GROUP") ||
      older(context.nccl, since(2, 9)))
    return;
  Found& found = context.add("NCCL03", setting, "unset");
  found.finding.severity = Severity::info;
  found.finding.title = "NCCL_LAUNCH_MODE=GROUP is deprecated since NCCL 2.9";
  found.finding.remedy = "delete it";
}

// NCCL25. `NAME=` without anything behind it is taken as "not set".
void empty_value(Context& context, const Setting& setting) {
  const bool filter = setting.name == "NCCL_ALGO" || setting.name == "NCCL_PROTO";
  const bool switches_off = filter && older(context.nccl, since(2, 24));
  if (!setting.written && !switches_off) return;
  Found& found = context.add("NCCL25", setting, "unset");
  if (switches_off) found.finding.severity = Severity::error;
  if (filter && !context.nccl) found.finding.severity = Severity::warn;
  if (filter && (switches_off || !context.nccl)) {
    found.finding.title = fmt::format("An empty {} switches everything off up to NCCL 2.23", setting.name);
    found.finding.impact = "no algorithm or protocol is left: the first collective fails";
  }
  found.finding.observed = "empty";
  found.finding.remedy = "unset " + setting.name;
  found.finding.action = "unset-" + setting.name;
  context.drop_idle(found, setting);
}

// What was meant by "yes", "4M", "1e9"; nothing when that is not clear.
std::optional<std::string> meant(sv text) {
  text = trim(text);
  if (text.size() > 1 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0])
    text = text.substr(1, text.size() - 2);
  const std::string word = to_lower(text);
  if (is_one_of(word, {"yes", "true", "on", "y", "enable", "enabled"})) return "1";
  if (is_one_of(word, {"no", "false", "off", "n", "disable", "disabled"})) return "0";
  if (word.find('e') != std::string::npos && !word.starts_with("0x"))
    if (const auto number = parse_double(word); number && *number >= 0 && *number < 1e15)
      return fmt::format("{:.0f}", *number);
  if (const auto bytes = parse::parse_size(word); bytes && word.find('.') == std::string::npos) {
    const sv digits = sv(word).substr(0, word.find_first_not_of("0123456789"));
    if (digits.size() < word.size() || !digits.starts_with('0')) return fmt::format("{}", *bytes);
  }
  sv digits = word;
  while (digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
  if (!digits.empty() && std::ranges::all_of(digits, is_digit)) return std::string(digits);
  return std::nullopt;
}

// NCCL26: what strtoll makes of it.
void number_value(Context& context, const Setting& setting) {
  const IntegerReading reading = read_integer(setting.value);
  if (reading.whole && !reading.octal && !reading.range) return;
  const std::string taken = reading.range ? std::string("the default") : fmt::format("{}", reading.value);
  Found& found = context.add("NCCL26", setting, "a plain number");
  if (reading.whole && reading.octal) found.finding.severity = Severity::warn;
  found.finding.title =
      fmt::format("{}={}: NCCL takes {}", setting.name, printable(setting.value).substr(0, 40), taken);
  const auto right = meant(setting.value);
  found.finding.remedy = right ? fmt::format("{}={}", setting.name, *right) : "write a plain decimal number";
  found.finding.action = "fix-" + setting.name;
  if (right) context.set_value(found, setting, *right);
}

void check_value_type(Context& context, const Setting& setting) {
  if (setting.value.empty()) return empty_value(context, setting);
  const Variable* variable = find_nccl(setting.name);
  if (setting.literal && variable != nullptr && variable->type == ValueType::integer)
    number_value(context, setting);
}

// --- nccl.conf
// -------------------------------------------------------------------------------------------------

std::string without_export(sv text) {
  text = trim(text);
  for (const sv word : {"export ", "set ", "declare -x "})
    if (text.starts_with(word)) text = trim(text.substr(word.size()));
  return std::string(text);
}

// NAME=value as it was meant, or nothing.
std::optional<std::string> corrected(const parse::ConfLine& line) {
  const std::string text = without_export(line.raw);
  const auto equals = text.find('=');
  if (equals == std::string::npos) return std::nullopt;
  const sv name = trim(sv(text).substr(0, equals));
  sv value = trim(sv(text).substr(equals + 1));
  if (!parse::is_variable_name(name)) return std::nullopt;
  if (!value.empty() && (value[0] == '"' || value[0] == '\'')) {
    const auto close = value.find(value[0], 1);
    value = close == sv::npos ? value.substr(1) : value.substr(1, close - 1);
  } else if (const auto comment = value.find(" #"); comment != sv::npos) {
    value = trim(value.substr(0, comment));
  }
  return fmt::format("{}={}", name, value);
}

struct ConfFault {
  std::string what;
  Severity severity = Severity::error;
};

std::optional<ConfFault> fault_of_value(const parse::ConfLine& line) {
  const sv value = line.value;
  const sv bare = trim(value);
  const bool quotes = value.find_first_of("\"'") != sv::npos;
  if (!quotes && bare.size() == value.size() && bare.find(" #") == sv::npos) return std::nullopt;
  const Variable* variable = find_nccl(line.name);
  const sv word = bare.substr(0, bare.find_first_of(" \t#"));
  const bool number =
      variable != nullptr && variable->type == ValueType::integer && !quotes && read_integer(word).whole;
  if (number) return ConfFault{"a whole number, and what follows it is not read", Severity::info};
  if (value.ends_with('\r') && trim(value.substr(0, value.size() - 1)).size() + 1 == value.size() && !quotes)
    return ConfFault{"the value keeps the carriage return at its end", Severity::error};
  return ConfFault{quotes ? "the value keeps its quotes" : "the value keeps blanks or the comment",
                   Severity::error};
}

std::optional<ConfFault> fault_of(const parse::ConfLine& line) {
  if (!line.assignment) {
    if (line.raw.find("NCCL_") != std::string::npos)
      return ConfFault{"a line without = is not read", Severity::error};
    return ConfFault{"a line without = is not read", Severity::warn};
  }
  if (!parse::is_variable_name(line.name))
    return ConfFault{fmt::format("the name becomes \"{}\"", printable(line.name).substr(0, 60)),
                     Severity::error};
  return fault_of_value(line);
}

void conf_line(Context& context, const parse::ConfLine& line) {
  const auto fault = fault_of(line);
  if (!fault) return;
  const auto right = corrected(line);
  Found& found = context.add(
      "NCCL30", line.at, line.assignment ? std::string(trim(line.name)) : "nccl.conf",
      right.value_or("NAME=value"),
      line.assignment ? fmt::format("name \"{}\", value \"{}\"", line.name, line.value) : line.raw);
  found.finding.observed = printable(found.finding.observed).substr(0, 200);
  found.finding.severity = fault->severity;
  found.finding.title = fmt::format("nccl.conf: {}", fault->what);
  found.finding.remedy = right ? *right : "NAME=value from column 0, one a line";
  found.finding.action = "fix-nccl.conf";
  if (right && line.span.end > line.span.begin) found.edits.push_back({line.span, *right});
}

// --- NCCL21
// ----------------------------------------------------------------------------------------------------

void set_twice(Context& context) {
  for (const auto& one : context.input.facts.settings) {
    const bool concerns = is_nccl(one.name) || one.name.starts_with("UCX_");
    if (!concerns || !one.replaced_at || !one.replaced_by || *one.replaced_by == one.value) continue;
    Found& found = context.add("NCCL21", one, *one.replaced_by);
    found.finding.title = fmt::format("{} is set twice: line {} wins", one.name, *one.replaced_at);
    found.finding.remedy = "keep one of them";
    found.finding.evidence.push_back(
        {fmt::format("{}:{}", context.input.name, *one.replaced_at), *one.replaced_by});
    context.drop_idle(found, one);
  }
}

// Which place NCCL takes first: the environment, then the user's file, then /etc/nccl.conf.
int rank_of(const Input& input) {
  if (input.kind != ConfigKind::nccl_conf) return 0;
  const bool system = input.name.find("etc/nccl.conf") != std::string::npos;
  return system ? 2 : 1;
}

}  // namespace

void check_nccl_names(Context& context) {
  for (const auto* setting : context.settings()) {
    if (!is_nccl(setting->name)) {
      if (setting->name.starts_with("UCX_") && setting->value.empty()) empty_value(context, *setting);
      continue;
    }
    check_name(context, *setting);
    if (is_foreign(setting->name)) continue;
    check_value_type(context, *setting);
    launch_mode(context, *setting);
  }
  for (const auto& line : context.input.facts.conf_lines) conf_line(context, line);
  set_twice(context);
}

void check_places(std::vector<Context>& contexts) {
  struct Held {
    Context* context;
    const Setting* setting;
    int rank;
  };
  std::map<std::string, std::vector<Held>> all;
  for (auto& context : contexts)
    for (const auto* setting : context.settings())
      if (is_nccl(setting->name) && setting->scope.empty() && setting == context.last(setting->name))
        all[setting->name].push_back({&context, setting, rank_of(context.input)});
  for (auto& [name, held] : all) {
    std::ranges::stable_sort(held, {}, &Held::rank);
    for (std::size_t n = 1; n < held.size(); ++n) {
      const Held& winner = held.front();
      if (held[n].rank == winner.rank || held[n].setting->value == winner.setting->value) continue;
      Found& found = held[n].context->add("NCCL21", *held[n].setting, winner.setting->value);
      const std::string place = fmt::format("{}:{}", winner.context->input.name, winner.setting->at.line);
      found.finding.title = fmt::format("{} is set in two places: {} wins", name, place);
      found.finding.remedy = "keep one place";
      found.finding.evidence.push_back({place, fmt::format("{}={}", name, winner.setting->value)});
    }
  }
}

}  // namespace topotune::lint
