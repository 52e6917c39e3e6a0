// Monitoring commands and alarms.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "lint/context.h"
#include "parse/config_shell.h"

namespace topotune::lint {

namespace {

using parse::Command;
using sv = std::string_view;

bool any_icontains(sv text, std::initializer_list<sv> words) {
  return std::ranges::any_of(words, [&](sv word) { return icontains(text, word); });
}

// --- MON01, MON02
// ----------------------------------------------------------------------------------------------

void dmon_group(Context& context, const Command& command) {
  const std::size_t at = tool_index(command, "nvidia-smi");
  if (at >= command.words.size() || !has_word(command, "dmon")) return;
  const std::string group = option_value(command, {"-s", "--select"});
  if (group.empty() || group.find('t') != std::string::npos) {
    const std::string label = context.label_of(command);
    if (group != "t" || !icontains(label, "nvlink") || icontains(label, "pcie")) return;
    Found& found = context.add("MON01", command, "nvidia-smi nvlink -gt d");
    found.finding.title = "dmon -s t shows PCIe throughput, not NVLink";
    return;
  }
  const bool violations = group.find('v') != std::string::npos;
  const std::string label = context.label_of(command);
  if (!violations || !any_icontains(label, {"pcie", "rxpci", "txpci", "rx_util", "tx_util", "throughput",
                                            "bandwidth", "nvlink"}))
    return;
  Found& found = context.add("MON01", command, "-s t");
  found.finding.title = "dmon -s v shows power and thermal violations, no traffic";
  for (std::size_t n = at; n + 1 < command.words.size(); ++n)
    if (command.words[n] == "-s" && command.words[n + 1] == "v")
      context.replace_word(found, command, n + 1, "t");
}

void nvlink_totals(Context& context, const Command& command) {
  const auto& words = command.words;
  if (tool_index(command, "nvidia-smi") >= words.size() || !has_word(command, "nvlink")) return;
  for (std::size_t n = 0; n < words.size(); ++n) {
    if (words[n] != "-gt" && words[n] != "--getthroughput") continue;
    const sv kind = n + 1 < words.size() ? sv(words[n + 1]) : sv();
    if (is_one_of(kind, {"d", "r", "dr"}) || (n + 1 < command.known.size() && !command.known[n + 1])) return;
    Found& found =
        context.add("MON02", command, "nvidia-smi nvlink -gt d, two samples and the time between them");
    found.finding.title = "nvlink -gt needs d or r, and prints totals in KiB, not a rate";
    context.replace_word(found, command, n, words[n] + " d");
    return;
  }
}

// --- MON03
// -----------------------------------------------------------------------------------------------------

struct Field {
  int id;
  sv name, meaning;
};
constexpr Field kFields[] = {
    {1001, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "graphics engine active"},
    {1002, "DCGM_FI_PROF_SM_ACTIVE", "SM active"},
    {1003, "DCGM_FI_PROF_SM_OCCUPANCY", "SM occupancy"},
    {1004, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tensor pipe active"},
    {1005, "DCGM_FI_PROF_DRAM_ACTIVE", "device memory active"},
    {1006, "DCGM_FI_PROF_PIPE_FP64_ACTIVE", "FP64 pipe active"},
    {1007, "DCGM_FI_PROF_PIPE_FP32_ACTIVE", "FP32 pipe active"},
    {1008, "DCGM_FI_PROF_PIPE_FP16_ACTIVE", "FP16 pipe active"},
    {1009, "DCGM_FI_PROF_PCIE_TX_BYTES", "PCIe sent bytes"},
    {1010, "DCGM_FI_PROF_PCIE_RX_BYTES", "PCIe received bytes"},
    {1011, "DCGM_FI_PROF_NVLINK_TX_BYTES", "NVLink sent bytes"},
    {1012, "DCGM_FI_PROF_NVLINK_RX_BYTES", "NVLink received bytes"},
};

// What the label promises and no field delivers: "PCIe", "NVLink", ...; "" when all is well.
std::string missing_meaning(sv label, const std::vector<int>& ids) {
  const auto has = [&](std::initializer_list<int> wanted) {
    return std::ranges::any_of(wanted, [&](int id) { return std::ranges::find(ids, id) != ids.end(); });
  };
  if (icontains(label, "pcie") && !has({1009, 1010})) return "PCIe is 1009 and 1010";
  if (icontains(label, "nvlink") && !has({1011, 1012})) return "NVLink is 1011 and 1012";
  if (icontains(label, "occupancy") && !has({1003})) return "SM occupancy is 1003";
  if (any_icontains(label, {"sm activity", "sm active", "sm util"}) && !has({1002}))
    return "SM activity is 1002";
  return "";
}

void dcgm_fields(Context& context, const Command& command) {
  if (tool_index(command, "dcgmi") >= command.words.size() || !has_word(command, "dmon")) return;
  std::vector<int> ids;
  std::string meanings;
  const std::string list = option_value(command, {"-e", "--field-id"});
  for (const sv item : split(list, ',')) {
    const auto id = parse_int<int>(trim(item));
    const auto* field = std::ranges::find(kFields, id.value_or(0), &Field::id);
    if (field == std::end(kFields)) return;  // a field that this table does not hold
    ids.push_back(*id);
    meanings += fmt::format("{}{} {}", meanings.empty() ? "" : ", ", *id, field->meaning);
  }
  const std::string missing = ids.empty() ? "" : missing_meaning(context.label_of(command), ids);
  if (missing.empty()) return;
  Found& found = context.add("MON03", command, missing);
  found.finding.title = "These DCGM fields are " + meanings;
}

// A field's name beside a label: alerts and exporter lists (FIELD, type, help).
void dcgm_label(Context& context, parse::Place at, sv text, sv label) {
  for (const auto& field : kFields) {
    if (text.find(field.name) == sv::npos) continue;
    const bool pcie = icontains(label, "pcie") && field.id != 1009 && field.id != 1010;
    const bool nvlink = icontains(label, "nvlink") && field.id != 1011 && field.id != 1012;
    if (!pcie && !nvlink) continue;
    Found& found = context.add("MON03", at, std::string(field.name), std::string(field.meaning),
                               std::string(label.substr(0, 200)));
    found.finding.title = fmt::format("The field {} is {}", field.name, field.meaning);
    return;
  }
}

// --- MON04
// -----------------------------------------------------------------------------------------------------

bool is_error_counter(sv expression) {
  return any_icontains(expression, {"symbol_error",
                                    "link_downed",
                                    "link_error_recovery",
                                    "port_rcv_errors",
                                    "port_xmit_discards",
                                    "port_rcv_remote_physical_errors",
                                    "local_link_integrity_errors",
                                    "excessive_buffer_overrun",
                                    "out_of_sequence",
                                    "packet_seq_err",
                                    "local_ack_timeout_err",
                                    "rnr_nak_retry_err",
                                    "pcie_replay",
                                    "xid_errors_total",
                                    "nvlink_crc",
                                    "nvlink_replay",
                                    "nvlink_recovery",
                                    "nvlink_error",
                                    "ecc_sbe_volatile_total",
                                    "ecc_dbe_volatile_total",
                                    "infiniband_port_errors",
                                    "_errors_total",
                                    "roce_adp_retrans",
                                    "rx_icrc_encapsulated"});
}

bool takes_difference(sv expression) {
  return any_icontains(expression, {"rate(", "increase(", "delta(", "irate(", "idelta(", "changes(", "deriv(",
                                    "resets(", " offset "});
}

void alarms(Context& context) {
  for (const auto& alert : context.input.facts.alerts) {
    dcgm_label(context, alert.at, alert.expression, alert.name + " " + alert.summary);
    const bool boot = icontains(alert.summary + alert.name, "boot");
    if (!is_error_counter(alert.expression) || takes_difference(alert.expression) || boot) continue;
    Found& found = context.add("MON04", alert.at, alert.name.empty() ? "alert" : alert.name,
                               "increase(counter[1h]) > 0", alert.expression.substr(0, 200));
    found.finding.title = "The alarm compares a lifetime counter";
  }
}

void exporter_list(Context& context) {
  if (context.input.text.find("DCGM_FI_PROF_") == sv::npos || !context.input.facts.alerts.empty()) return;
  int number = context.input.first_line - 1;
  for (const sv line : lines(context.input.text)) {
    ++number;
    if (!trim(line).starts_with("DCGM_FI_PROF_")) continue;
    const auto comma = line.find(',');
    if (comma != sv::npos) dcgm_label(context, {number, 1}, line.substr(0, comma), line.substr(comma));
  }
}

}  // namespace

void check_tools(Context& context) {
  for (const auto& command : context.input.facts.commands) {
    if (command.words.empty()) continue;
    dmon_group(context, command);
    nvlink_totals(context, command);
    dcgm_fields(context, command);
  }
  alarms(context);
  exporter_list(context);
}

}  // namespace topotune::lint
