// /proc/net/snmp (a line of names and one of values a protocol, net/ipv4/proc.c), /sys/class/net/*/statistics
// and /sys/class/infiniband/*/ports/*/{counters,hw_counters}
// (Documentation/ABI/stable/sysfs-class-infiniband).
#include "net/counters.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace topotune::net {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    out.push_back(i->path());
  return out;
}

void read_number(const fs::path& file, const std::string& name, std::map<std::string, double>& out) {
  std::ifstream in(file);
  double value = 0;
  if (in >> value) out[name] = value;
}

void read_snmp(const std::string& root, std::map<std::string, double>& out) {
  std::ifstream in(root + "/proc/net/snmp");
  std::string names, values;
  while (std::getline(in, names) && std::getline(in, values)) {
    if (!names.starts_with("Tcp:")) continue;
    std::istringstream n(names), v(values);
    std::string name, value;
    n >> name, v >> value;
    while (n >> name && v >> value)
      if (name == "RetransSegs" || name == "OutSegs" || name == "InErrs")
        out["tcp." + name] = std::stod(value);
  }
}

void read_ports(const std::string& root, std::map<std::string, double>& out) {
  constexpr std::array<const char*, 12> kOfInterest{
      "symbol_error",          "port_rcv_errors",  "port_xmit_discards", "port_xmit_wait",
      "link_downed",           "out_of_sequence",  "packet_seq_err",     "rnr_nak_retry_err",
      "local_ack_timeout_err", "roce_adp_retrans", "rp_cnp_handled",     "np_cnp_sent"};
  for (const auto& device : entries(root + "/sys/class/infiniband")) {
    for (const auto& port : entries(device / "ports")) {
      for (const auto* folder : {"counters", "hw_counters"})
        for (const auto* name : kOfInterest)
          read_number(port / folder / name,
                      device.filename().string() + "/" + port.filename().string() + "." + name, out);
    }
  }
}

}  // namespace

std::map<std::string, double> read_counters(const std::string& root) {
  std::map<std::string, double> out;
  read_snmp(root, out);
  for (const auto& device : entries(root + "/sys/class/net")) {
    for (const auto* name : {"rx_dropped", "tx_dropped", "rx_errors", "tx_errors"})
      read_number(device / "statistics" / name, device.filename().string() + "." + name, out);
  }
  read_ports(root, out);
  return out;
}

std::map<std::string, double> added(const std::map<std::string, double>& before,
                                    const std::map<std::string, double>& after) {
  std::map<std::string, double> out;
  for (const auto& [name, value] : after) {
    const auto found = before.find(name);
    if (found != before.end()) out[name] = value - found->second;
  }
  return out;
}

}  // namespace topotune::net
