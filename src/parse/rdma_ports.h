#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/machine.h"

namespace topotune::parse {

// One port as one command tells it; what the command does not print stays unknown. `port.source` is left
// empty.
struct PortRecord {
  model::RdmaPort port;
  int line = 0;                      // of the port or, before any port line, of the device
  std::map<std::string, int> lines;  // field ("state", "rate", "link_layer", ...) -> line
  bool cut = false;                  // the text ends inside of this record
  std::optional<bool> netdev_up;     // ibdev2netdev: state of the interface, not of the port
};

struct RdmaPorts {
  std::vector<PortRecord> ports;
  std::vector<std::string> devices;  // also those without a port in the text
  bool none_found = false;           // "No IB devices found"
  std::vector<std::string> errors;   // "ibpanic: … stat of IB device 'mlx5_8' failed"
};

// Texts with one port a line (ibdev2netdev, rdma link). `read` understands one line; nothing: it is another line. Lines of
// 4096 characters or more are none.
using ReadPortLine = std::optional<PortRecord> (*)(std::string_view line);
bool has_port_line(std::string_view text, ReadPortLine read);
// The ports in the text's order, each with its line. Errors: not_a(kind) without any, too_many().
Result<RdmaPorts> read_port_lines(std::string_view text, std::string_view kind, ReadPortLine read);

namespace rdma {
// "Active", "PORT_ACTIVE (4)", "4: ACTIVE" -> "ACTIVE"; likewise DOWN, INIT, ARMED. Nothing for other words.
std::optional<std::string> port_state(std::string_view text);
// "LinkUp", "LINK_UP (5)", "5: LinkUp" -> "LinkUp"; likewise Sleep, Polling, Disabled,
// PortConfigurationTraining, LinkErrorRecovery, PhyTest.
std::optional<std::string> phys_state(std::string_view text);
// "InfiniBand" or "Ethernet", whatever the case.
std::optional<std::string> link_layer(std::string_view text);
// "0x0200000000000001", "0200:0000:0000:0001" -> the kernel's form "0200:0000:0000:0001".
std::optional<std::string> guid(std::string_view text);
// "fe80::1", "::ffff:10.0.0.2" -> 8 groups of 4 digits; nothing for what is no address or the zero address.
std::optional<std::string> gid(std::string_view text);
// "4096 (5)" -> 4096: an RDMA MTU.
std::optional<int> mtu(std::string_view text);
// Decimal or "0x…", 0 to 65535.
std::optional<int> lid(std::string_view text);
// A number of Gb/s that can be: 0 < value <= 10000.
std::optional<double> rate(std::string_view text);
}  // namespace rdma

}  // namespace topotune::parse
