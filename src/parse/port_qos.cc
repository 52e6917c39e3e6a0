#include "parse/port_qos.h"

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

using sv = std::string_view;

constexpr int kPriorities = 8, kDscps = 64;

std::optional<int> below(sv text, int limit) {
  const auto value = parse_int<int>(text);
  return value && *value >= 0 && *value < limit ? value : std::nullopt;
}

// The word after "dev" or "-i", "--interface": the interface of a command.
std::string interface_of(sv command) {
  const auto parts = words(command.substr(0, 512));
  for (std::size_t i = 0; i + 1 < parts.size(); ++i)
    if (parts[i] == "dev" || parts[i] == "-i" || parts[i] == "--interface") return std::string(parts[i + 1]);
  return {};
}

// "prio:3 dscp:31,30,29,": mlnx_qos
void take_mapping(sv line, PortQos& to) {
  const auto prio = after(line, "prio:"), list = after(line, "dscp:");
  if (!prio || !list) return;
  const auto priority = below(leading_digits(*prio), kPriorities);
  if (!priority) return;
  for (const auto item : split(*list, ','))
    if (const auto dscp = below(trim(item), kDscps)) to.dscp_priority[*dscp] = *priority;
}

// "enabled 0 0 0 1 0 0 0 0": mlnx_qos, below "PFC configuration:"
void take_enabled(const std::vector<sv>& line, PortQos& to) {
  if (line.size() < 1 + kPriorities) return;
  unsigned mask = 0;
  for (std::size_t i = 0; i < kPriorities; ++i) {
    if (line[i + 1] != "0" && line[i + 1] != "1") return;
    if (line[i + 1] == "1") mask |= 1u << i;
  }
  to.pfc_priorities = mask;
}

// "prio-pfc 0:off 1:off 2:off 3:on ...": dcb pfc
void take_prio_pfc(const std::vector<sv>& line, PortQos& to) {
  unsigned mask = 0;
  int seen = 0;
  for (std::size_t i = 1; i < line.size(); ++i) {
    const auto colon = line[i].find(':');
    const auto priority = below(line[i].substr(0, colon), kPriorities);
    if (colon == sv::npos || !priority) break;
    ++seen;
    if (line[i].substr(colon + 1) == "on") mask |= 1u << *priority;
  }
  if (seen == kPriorities) to.pfc_priorities = mask;
}

// "dscp-prio 26:3 AF41:4 ...": dcb app; numbers with -N, else names of RFC 2474 and 2597
std::optional<int> dscp_of(sv word) {
  if (const auto number = below(word, kDscps)) return number;
  if (word == "EF") return 46;
  if (word.size() == 3 && word.starts_with("CS")) return below(word.substr(2), kPriorities).value_or(0) * 8;
  if (word.size() == 4 && word.starts_with("AF") && is_digit(word[2]) && is_digit(word[3]))
    return below(std::to_string((word[2] - '0') * 8 + (word[3] - '0') * 2), kDscps);
  return std::nullopt;
}

void take_dscp_prio(const std::vector<sv>& line, PortQos& to) {
  for (std::size_t i = 1; i < line.size(); ++i) {
    const auto colon = line[i].find(':');
    if (colon == sv::npos) break;
    const auto dscp = dscp_of(line[i].substr(0, colon));
    const auto priority = below(line[i].substr(colon + 1), kPriorities);
    if (dscp && priority) to.dscp_priority[*dscp] = *priority;
  }
}

bool take(sv text, PortQos& to) {
  const auto line = words(text.substr(0, 2048));
  if (line.empty()) return false;
  if (text.starts_with("Priority trust state:"))
    to.trust = to_lower(line.back());
  else if (line[0].starts_with("prio:"))
    take_mapping(text, to);
  else if (line[0] == "enabled")
    take_enabled(line, to);
  else if (line[0] == "prio-pfc")
    take_prio_pfc(line, to);
  else if (line[0] == "dscp-prio")
    take_dscp_prio(line, to);
  else if (line[0] == "order:" && line.size() > 1)
    to.trust = std::string(line[1]);
  else
    return false;
  return true;
}

}  // namespace

bool looks_like_port_qos(sv text) {
  return text.find("Priority trust state:") != sv::npos || text.find("prio-pfc ") != sv::npos ||
         text.find("dscp-prio ") != sv::npos || text.find("PFC configuration:") != sv::npos;
}

Result<PortQos> parse_port_qos(sv text, sv command) {
  PortQos out;
  bool any = false;
  for (LineReader reader(text); reader.next();) any |= take(trim(reader.line()), out);
  if (!any) return not_a("mlnx_qos or dcb");
  out.netdev = interface_of(command);
  return out;
}

}  // namespace topotune::parse
