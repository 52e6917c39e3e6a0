#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace topotune::parse {

// Small texts below /sys/class/infiniband/DEVICE (drivers/infiniband/core/sysfs.c).

// "4: ACTIVE" -> "ACTIVE"; "5: LinkUp" -> "LinkUp"; nothing for other shapes.
std::optional<std::string> parse_numbered_word(std::string_view text);
// "400 Gb/sec (4X NDR)" -> 400 (Gb/s); "2.5 Gb/sec (1X SDR)" -> 2.5; nothing for 0 or above 10 Tb/s.
std::optional<double> parse_rate(std::string_view text);
// "0x12" -> 18. 0 stays 0: on InfiniBand it means "no subnet manager yet".
std::optional<int> parse_lid(std::string_view text);
// "fe80:0000:0000:0000:5054:00ff:fe00:0010": 8 groups of 4 hex digits, given back in lower case. The all-zero
// entry, an unused slot, and anything else is nothing.
std::optional<std::string> parse_gid(std::string_view text);
// A counter: decimal digits. "N/A (no PMA)" and others are nothing.
std::optional<std::uint64_t> parse_counter(std::string_view text);
// The RDMA MTU that RoCE derives from a netdev's MTU: the largest of 256..4096 that leaves room for the
// headers, as include/rdma/ib_addr.h iboe_get_mtu does (GRH 40 + UDP 8 + BTH 12 + extended headers and ICRC
// 36 = 96 bytes).
std::optional<int> roce_mtu(int netdev_mtu);

}  // namespace topotune::parse
