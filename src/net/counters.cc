// /proc/net/snmp (a line of names and one of values a protocol, net/ipv4/proc.c), /sys/class/net/*/statistics
// and /sys/class/infiniband/*/ports/*/{counters,hw_counters}
// (Documentation/ABI/stable/sysfs-class-infiniband).
#include "net/counters.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"

namespace topotune::net {

namespace {

using Counters = std::map<std::string, double>;

std::vector<std::string> entries(const host::Host& host, const std::string& folder) {
  return host.list(folder).value_or(std::vector<std::string>());
}

void read_number(const host::Host& host, const std::string& file, const std::string& name, Counters& out) {
  const auto text = host.read(file);
  if (!text) return;
  if (const auto value = parse_int<std::uint64_t>(trim(*text))) out[name] = static_cast<double>(*value);
}

// The line of names that begins with `protocol`, and the next one of values.
void read_table(const std::string& text, std::string_view protocol, Counters& out) {
  constexpr std::array<std::string_view, 3> kOfInterest{"RetransSegs", "OutSegs", "InErrs"};
  const auto lines = split(text, '\n');
  for (std::size_t i = 0; i + 1 < lines.size(); i += 2) {
    if (!lines[i].starts_with(protocol)) continue;
    const auto names = split(lines[i], ' '), values = split(lines[i + 1], ' ');
    for (std::size_t k = 1; k < std::min(names.size(), values.size()); ++k) {
      if (std::ranges::find(kOfInterest, names[k]) == kOfInterest.end()) continue;
      if (const auto value = parse_int<std::uint64_t>(values[k]))
        out["tcp." + std::string(names[k])] = static_cast<double>(*value);
    }
  }
}

void read_ports(const host::Host& host, Counters& out) {
  constexpr std::array<const char*, 12> kOfInterest{
      "symbol_error",          "port_rcv_errors",  "port_xmit_discards", "port_xmit_wait",
      "link_downed",           "out_of_sequence",  "packet_seq_err",     "rnr_nak_retry_err",
      "local_ack_timeout_err", "roce_adp_retrans", "rp_cnp_handled",     "np_cnp_sent"};
  const std::string root = "/sys/class/infiniband/";
  for (const auto& device : entries(host, root)) {
    for (const auto& port : entries(host, root + device + "/ports")) {
      for (const auto* folder : {"counters", "hw_counters"})
        for (const auto* name : kOfInterest)
          read_number(host, fmt::format("{}{}/ports/{}/{}/{}", root, device, port, folder, name),
                      fmt::format("{}/{}.{}", device, port, name), out);
    }
  }
}

}  // namespace

Counters read_counters(const host::Host& host) {
  Counters out;
  if (const auto text = host.read("/proc/net/snmp")) read_table(*text, "Tcp:", out);
  for (const auto& device : entries(host, "/sys/class/net")) {
    for (const auto* name : {"rx_dropped", "tx_dropped", "rx_errors", "tx_errors"})
      read_number(host, fmt::format("/sys/class/net/{}/statistics/{}", device, name),
                  fmt::format("{}.{}", device, name), out);
  }
  read_ports(host, out);
  return out;
}

Counters added(const Counters& before, const Counters& after) {
  Counters out;
  for (const auto& [name, value] : after) {
    const auto found = before.find(name);
    if (found != before.end()) out[name] = value - found->second;
  }
  return out;
}

}  // namespace topotune::net
