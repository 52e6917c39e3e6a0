// What the words of nvidia-smi mean: nvml.h of CUDA 13 (nvmlGpuFabricInfoV, nvmlReturn_t, clocks event
// reasons).
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "parse/line_reader.h"
#include "parse/nvidia_smi_q.h"

namespace topotune::parse::smi {
namespace {

template <class Value, std::size_t N>
std::optional<Value> find_in(const std::array<std::pair<std::string_view, Value>, N>& table,
                             std::string_view name) {
  for (const auto& [key, value] : table) {
    if (iequals(key, name)) return value;
  }
  return std::nullopt;
}

// "HW Slowdown", "clocks_event_reason_hw_slowdown" -> "hwslowdown"
std::string bare_name(std::string_view name) {
  std::string out;
  for (const char c : to_lower(name)) {
    if (c != ' ' && c != '_' && c != '-') out += c;
  }
  for (const std::string_view prefix : {"clockseventreason", "clocksthrottlereason"}) {
    if (out.starts_with(prefix)) out.erase(0, prefix.size());
  }
  if (out.starts_with("gpu")) out.erase(0, 3);
  return out;
}

struct HealthField {
  std::string_view name;
  int shift;
};
constexpr std::array kHealthFields = {
    HealthField{"bandwidth", 0},
    HealthField{"routerecoveryinprogress", 2},
    HealthField{"routerecovery", 2},
    HealthField{"routeunhealthy", 4},
    HealthField{"accesstimeoutrecovery", 6},
};
constexpr std::array<std::pair<std::string_view, std::uint32_t>, 9> kIncorrectConfiguration = {{
    {"None", 1},
    {"Incorrect SysGuid", 2},
    {"Incorrect Chassis Serial Number", 3},
    {"Incorrect Chassis SN", 3},
    {"No Partition", 4},
    {"Insufficient Nvlinks", 5},
    {"Insufficient NVLink", 5},
    {"Incompatible GPU FW", 6},
    {"Invalid Location", 7},
}};

// 1: true (or degraded), 2: false (or full), nothing else is told.
std::optional<std::uint32_t> health_flag(std::string_view value) {
  for (const std::string_view word : {"True", "Yes", "Degraded"}) {
    if (iequals(value, word)) return 1;
  }
  for (const std::string_view word : {"False", "No", "Full", "Healthy", "OK"}) {
    if (iequals(value, word)) return 2;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> gts_of_generation(int generation) {
  constexpr std::array kGts = {2.5, 5.0, 8.0, 16.0, 32.0, 64.0};
  if (generation < 1 || generation > static_cast<int>(kGts.size())) return std::nullopt;
  return kGts[static_cast<std::size_t>(generation - 1)];
}

std::optional<int> fabric_state(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, int>, 4> kStates = {
      {{"Not Supported", 0}, {"Not Started", 1}, {"In Progress", 2}, {"Completed", 3}}};
  return find_in(kStates, text);
}

std::optional<int> fabric_status(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, int>, 12> kStatus = {
      {{"Success", 0},
       {"Uninitialized", 1},
       {"Invalid Argument", 2},
       {"Not Supported", 3},
       {"Insufficient Permissions", 4},
       {"Not Found", 6},
       {"Timeout", 10},
       {"GPU is lost", 15},
       {"GPU requires reset", 16},
       {"Reset Required", 16},
       {"In use by another client", 19},
       {"Unknown Error", 999}}};
  if (const auto known = find_in(kStatus, text)) return known;
  return value_of(text) ? std::optional(999) : std::nullopt;
}

std::optional<std::uint64_t> clock_event_bit(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 11> kBits = {
      {{"idle", 0x1},
       {"applicationsclockssetting", 0x2},
       {"userdefinedclocks", 0x2},
       {"swpowercap", 0x4},
       {"swpowercapping", 0x4},
       {"hwslowdown", 0x8},
       {"syncboost", 0x10},
       {"swthermalslowdown", 0x20},
       {"hwthermalslowdown", 0x40},
       {"hwpowerbrakeslowdown", 0x80},
       {"displayclocksetting", 0x100}}};
  auto bare = bare_name(name);
  if (bare == "displayclockssetting") bare = "displayclocksetting";
  return find_in(kBits, bare);
}

bool says_lost(std::string_view text) {
  text = trim(text);
  if (text.starts_with("[") && text.ends_with("]")) text = text.substr(1, text.size() - 2);
  return iequals(text, "GPU is lost");
}

std::optional<std::uint64_t> bytes_of(std::string_view text) {
  text = trim(text);
  const auto digits = leading_digits(text);
  const auto number = parse_int<std::uint64_t>(digits);
  const auto unit = trim(text.substr(digits.size()));
  if (!number || *number > (1ull << 43)) return std::nullopt;
  if (unit == "MiB" || unit == "MB") return *number << 20;
  if (unit == "GiB") return *number << 30;
  return std::nullopt;
}

std::optional<std::string> value_of(std::string_view text) {
  text = trim(text);
  if (text.starts_with("[") && text.ends_with("]")) text = text.substr(1, text.size() - 2);
  if (text.empty()) return std::nullopt;
  for (const std::string_view none :
       {"N/A", "Not Supported", "Not Available", "Unknown Error", "ERR!", "Unknown", "GPU is lost",
        "Insufficient Permissions", "Requested functionality has been deprecated"}) {
    if (iequals(text, none)) return std::nullopt;
  }
  return std::string(text);
}

bool add_fabric_health(std::string_view key, std::string_view value, std::optional<std::uint32_t>& mask) {
  const auto bare = bare_name(key);
  if (bare == "incorrectconfiguration") {
    if (const auto code = find_in(kIncorrectConfiguration, value)) mask = mask.value_or(0) | *code << 8;
    return true;
  }
  for (const auto& field : kHealthFields) {
    if (bare != field.name) continue;
    if (const auto flag = health_flag(value)) mask = mask.value_or(0) | *flag << field.shift;
    return true;
  }
  return false;
}

void set_pci_ids(std::string_view text, std::optional<std::uint16_t>& vendor,
                 std::optional<std::uint16_t>& device) {
  const auto both = parse_hex(trim(text));
  if (!both || *both > 0xffffffffu || *both == 0) return;
  vendor = static_cast<std::uint16_t>(*both & 0xffff);
  device = static_cast<std::uint16_t>(*both >> 16);
}

}  // namespace topotune::parse::smi
