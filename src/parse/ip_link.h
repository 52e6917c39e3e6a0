#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::parse {

struct NetInterface {
  int line = 0;
  std::string name;  // without "@parent"
  std::optional<int> mtu;
  std::optional<std::string> state;  // "UP", "DOWN", "UNKNOWN"
  std::optional<std::string> kind;   // "ether", "infiniband", "loopback"
  std::vector<std::string> networks;  // IPv4, of "inet 10.0.3.7/24": "10.0.3.0/24"
  std::optional<std::string> bdf;    // "parentbus pci parentdev …" of ip -d
};

// `ip link`, `ip addr`, with or without -d or -s; and `ifconfig`.
bool looks_like_ip_link(std::string_view text);
Result<std::vector<NetInterface>> parse_ip_link(std::string_view text);

}  // namespace topotune::parse
