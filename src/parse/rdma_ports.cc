#include "parse/rdma_ports.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {

namespace {

constexpr std::size_t kMaxPortLine = 4096;

}  // namespace

bool has_port_line(std::string_view text, ReadPortLine read) {
  for (LineReader reader(text); reader.next();) {
    if (reader.line().size() < kMaxPortLine && read(reader.line())) return true;
  }
  return false;
}

Result<RdmaPorts> read_port_lines(std::string_view text, std::string_view kind, ReadPortLine read) {
  RdmaPorts out;
  for (LineReader reader(text); reader.next();) {
    if (reader.line().size() >= kMaxPortLine) continue;
    auto record = read(reader.line());
    if (!record) continue;
    if (out.ports.size() >= kMaxRecords) return too_many("ports", reader.number());
    record->line = reader.number();
    out.devices.push_back(record->port.device);
    out.ports.push_back(std::move(*record));
  }
  if (out.ports.empty()) return not_a(kind);
  return out;
}

}  // namespace topotune::parse

namespace topotune::parse::rdma {
namespace {

// "PORT_ACTIVE (4)", "4: ACTIVE", "Active" -> "active"; also without '_' and blanks.
std::string bare(std::string_view text) {
  text = trim(text);
  if (const auto colon = text.find(':'); colon != std::string_view::npos && colon <= 2)
    text = trim(text.substr(colon + 1));
  if (const auto bracket = text.find('('); bracket != std::string_view::npos)
    text = trim(text.substr(0, bracket));
  std::string out;
  for (const char c : to_lower(text)) {
    if (c != '_' && c != ' ') out += c;
  }
  if (out.starts_with("port") && out != "portconfigurationtraining") out.erase(0, 4);
  return out;
}

using Groups = std::array<std::uint16_t, 8>;

std::optional<std::uint32_t> ipv4(std::string_view text) {
  const auto fields = split(text, '.');
  if (fields.size() != 4) return std::nullopt;
  std::uint32_t out = 0;
  for (const auto field : fields) {
    const auto byte = parse_int<std::uint8_t>(field);
    if (!byte) return std::nullopt;
    out = out << 8 | *byte;
  }
  return out;
}

// The groups of one side of "::"; nothing when one is no hexadecimal word.
std::optional<std::vector<std::uint16_t>> groups_of(std::string_view text) {
  std::vector<std::uint16_t> out;
  if (text.empty()) return out;
  for (const auto field : split(text, ':')) {
    if (out.size() > 8) return std::nullopt;
    if (const auto v4 = ipv4(field)) {
      out.push_back(static_cast<std::uint16_t>(*v4 >> 16));
      out.push_back(static_cast<std::uint16_t>(*v4 & 0xffff));
      continue;
    }
    const auto word = parse_int<std::uint16_t>(field, 16);
    if (!word || field.size() > 4) return std::nullopt;
    out.push_back(*word);
  }
  return out;
}

std::optional<Groups> address_of(std::string_view text) {
  Groups out{};
  const auto gap = text.find("::");
  if (gap == std::string_view::npos) {
    const auto all = groups_of(text);
    if (!all || all->size() != 8) return std::nullopt;
    std::ranges::copy(*all, out.begin());
    return out;
  }
  const auto head = groups_of(text.substr(0, gap));
  const auto tail = groups_of(text.substr(gap + 2));
  if (!head || !tail || head->size() + tail->size() > 7) return std::nullopt;
  std::ranges::copy(*head, out.begin());
  std::ranges::copy(*tail, out.end() - static_cast<std::ptrdiff_t>(tail->size()));
  return out;
}

}  // namespace

std::optional<std::string> port_state(std::string_view text) {
  const auto word = bare(text);
  if (word == "active") return "ACTIVE";
  if (word == "down") return "DOWN";
  if (word == "init" || word == "initialize" || word == "initializing") return "INIT";
  if (word == "armed") return "ARMED";
  return std::nullopt;
}

std::optional<std::string> phys_state(std::string_view text) {
  static constexpr std::array kStates = {
      "LinkUp", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkErrorRecovery", "PhyTest"};
  const auto word = bare(text);
  for (const auto* state : kStates) {
    if (iequals(word, state)) return state;
  }
  return std::nullopt;
}

std::optional<std::string> link_layer(std::string_view text) {
  text = trim(text);
  if (iequals(text, "InfiniBand") || iequals(text, "IB")) return "InfiniBand";
  if (iequals(text, "Ethernet")) return "Ethernet";
  return std::nullopt;
}

std::optional<std::string> guid(std::string_view text) {
  text = trim(text);
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::string digits;
  for (const char c : to_lower(text)) {
    if (c == ':') continue;
    if (!is_hex_digit(c) || digits.size() >= 16) return std::nullopt;
    digits += c;
  }
  if (digits.size() != 16 || digits.find_first_not_of('0') == std::string::npos) return std::nullopt;
  return fmt::format("{}:{}:{}:{}", digits.substr(0, 4), digits.substr(4, 4), digits.substr(8, 4),
                     digits.substr(12));
}

std::optional<std::string> gid(std::string_view text) {
  const auto groups = text.size() <= 64 ? address_of(trim(text)) : std::nullopt;
  if (!groups || std::ranges::all_of(*groups, [](std::uint16_t g) { return g == 0; })) return std::nullopt;
  std::string out;
  for (const auto group : *groups) out += fmt::format("{}{:04x}", out.empty() ? "" : ":", group);
  return out;
}

std::optional<int> mtu(std::string_view text) {
  const auto value = parse_int<int>(leading_digits(trim(text)));
  return value && *value >= 256 && *value <= 65536 ? value : std::nullopt;
}

std::optional<int> lid(std::string_view text) {
  text = trim(text);
  if (text.starts_with("0x")) {
    const auto value = parse_hex(text);
    return value && *value <= 0xffff ? std::optional(static_cast<int>(*value)) : std::nullopt;
  }
  const auto value = parse_int<int>(leading_digits(text));
  return value && *value <= 0xffff ? value : std::nullopt;
}

std::optional<double> rate(std::string_view text) {
  const auto value = leading_number(trim(text));
  return value && *value > 0 && *value <= 10000 ? value : std::nullopt;
}

}  // namespace topotune::parse::rdma
