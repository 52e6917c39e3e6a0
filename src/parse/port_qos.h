#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace topotune::parse {

// How an Ethernet port sorts packets into priorities, and which of these stop instead of dropping.
struct PortQos {
  std::string netdev;                      // "" where neither text nor command names it
  std::optional<std::string> trust;        // "dscp", "pcp"
  std::map<int, int> dscp_priority;        // DSCP 0-63 -> priority 0-7
  std::optional<unsigned> pfc_priorities;  // bit n: PFC on for priority n
};

// `mlnx_qos -i DEV` (MLNX_OFED); `dcb pfc show dev DEV`, `dcb app show dev DEV`, `dcb apptrust show dev DEV`
// (iproute2), several of them in one text. `command` names the interface, which the texts do not.
bool looks_like_port_qos(std::string_view text);
Result<PortQos> parse_port_qos(std::string_view text, std::string_view command);

}  // namespace topotune::parse
