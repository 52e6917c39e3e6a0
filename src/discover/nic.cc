#include <algorithm>
#include <set>

#include "discover/phases.h"
#include "discover/reading.h"
#include "parse/ip_link.h"
#include "parse/port_qos.h"
#include "parse/sysfs_pci.h"
#include "parse/sysfs_rdma.h"

namespace topotune::discover {

namespace {

using model::Machine;
using model::Nic;
using model::RdmaPort;

const std::string kRdma = "/sys/class/infiniband";
const std::string kNet = "/sys/class/net";
constexpr std::size_t kMaxPorts = 1024;
constexpr int kMaxGids = 256;         // slots looked at
constexpr int kEmptyGidsInARow = 16;  // then the rest of the table is taken as empty

// Counters that rules read; a NIC has a hundred more.
constexpr const char* kCounters[] = {"link_downed",
                                     "symbol_error",
                                     "link_error_recovery",
                                     "local_link_integrity_errors",
                                     "excessive_buffer_overrun_errors",
                                     "port_rcv_errors",
                                     "port_xmit_discards",
                                     "port_xmit_wait",
                                     "port_xmit_data",
                                     "port_rcv_data"};
constexpr const char* kHwCounters[] = {
    "out_of_sequence",  "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err",
    "roce_adp_retrans", "np_cnp_sent",    "rp_cnp_handled",      "rx_icrc_encapsulated",  "out_of_buffer"};

std::vector<std::string> sorted_names(const host::Host& host, const std::string& folder) {
  auto names = host.list(folder);
  if (!names) return {};
  // mlx5_2 before mlx5_10, as people and nvidia-smi count.
  std::ranges::sort(*names, [](const std::string& a, const std::string& b) {
    const auto digits = [](const std::string& s) { return s.find_last_not_of("0123456789") + 1; };
    const auto pa = std::string_view(a).substr(0, digits(a)), pb = std::string_view(b).substr(0, digits(b));
    if (pa != pb) return a < b;
    const auto na = parse_int<long long>(std::string_view(a).substr(digits(a)));
    const auto nb = parse_int<long long>(std::string_view(b).substr(digits(b)));
    return na && nb && *na != *nb ? *na < *nb : a < b;
  });
  return *names;
}

void read_gids(const host::Host& host, const std::string& folder, RdmaPort& port) {
  int empty = 0;
  for (int index = 0; index < kMaxGids && empty < kEmptyGidsInARow; ++index) {
    const auto n = std::to_string(index);
    const auto text = host.read(folder + "gids/" + n);
    if (!text && text.error().code == Errc::not_found) break;  // the end of the table
    const auto address = text ? parse::parse_gid(trim(*text)) : std::nullopt;
    if (!address) {
      ++empty;
      continue;
    }
    empty = 0;
    model::Gid gid{index, *address, "", ""};
    gid.type = read_line(host, folder + "gid_attrs/types/" + n).value_or("");
    gid.netdev = read_line(host, folder + "gid_attrs/ndevs/" + n).value_or("");
    port.gids.push_back(std::move(gid));
  }
  port.gids_known = true;
}

void read_counters(const host::Host& host, const std::string& folder, RdmaPort& port) {
  const auto take = [&](const char* group, const char* name) {
    const auto text = read_line(host, folder + group + name);
    if (const auto value = text ? parse::parse_counter(*text) : std::nullopt) port.counters[name] = *value;
  };
  for (const char* name : kCounters) take("counters/", name);
  for (const char* name : kHwCounters) take("hw_counters/", name);
}

// The netdev of a port: its GIDs name it, soft-RoCE's `parent`, or the one below the same PCI function.
std::optional<std::string> netdev_of(const host::Host& host, const std::string& device,
                                     const RdmaPort& port) {
  for (const auto& gid : port.gids) {
    if (!gid.netdev.empty()) return gid.netdev;
  }
  if (auto parent = read_line(host, kRdma + "/" + device + "/parent"); parent && !parent->empty())
    return parent;
  const auto below = sorted_names(host, kRdma + "/" + device + "/device/net");
  if (below.empty()) return std::nullopt;
  // Several functions' netdevs on one device: dev_port counts from 0, RDMA ports from 1.
  for (const auto& name : below) {
    const auto number = read_line(host, kNet + "/" + name + "/dev_port");
    if (number && parse_int<int>(*number) == port.port - 1) return name;
  }
  return below.front();
}

std::optional<std::string> pci_behind(const host::Host& host, const std::string& link) {
  const auto text = host.link(link);
  return text ? parse::last_pci_address(*text) : std::nullopt;
}

RdmaPort read_port(const host::Host& host, const std::string& device, int number) {
  RdmaPort port;
  port.device = device;
  port.port = number;
  port.source = kRdma + "/" + device + "/ports/" + std::to_string(number);
  const std::string folder = port.source + "/";
  const auto word = [&](const char* file) {
    return parse::parse_numbered_word(read_line(host, folder + file).value_or(""));
  };
  port.state = word("state");
  port.phys_state = word("phys_state");
  port.link_layer = read_line(host, folder + "link_layer");
  port.gbits_per_s = parse::parse_rate(read_line(host, folder + "rate").value_or(""));
  port.lid = parse::parse_lid(read_line(host, folder + "lid").value_or(""));
  port.sm_lid = parse::parse_lid(read_line(host, folder + "sm_lid").value_or(""));
  if (port.link_layer == "Ethernet") read_gids(host, folder, port);
  read_counters(host, folder, port);
  return port;
}

// PFC and DSCP mapping by iproute2's dcb (needs dcbnl); ECN by the driver's own files.
void read_qos(const host::Host& host, RdmaPort& port) {
  const auto ask = [&](const char* object) {
    const std::vector<std::string> argv{"dcb", "-N", object, "show", "dev", *port.netdev};
    const auto text = host.run(argv);
    return text ? parse::parse_port_qos(*text, "dcb dev " + *port.netdev) : tl::unexpected(text.error());
  };
  if (const auto pfc = ask("pfc")) port.pfc_priorities = pfc->pfc_priorities;
  if (const auto app = ask("app")) port.dscp_priority = app->dscp_priority;
  const std::string folder = kNet + "/" + *port.netdev + "/";
  if (const auto trust = read_line(host, folder + "qos/trust"); trust && !trust->empty()) port.trust = *trust;
  for (int priority = 0; priority < 8; ++priority) {
    const auto on = read_line(host, folder + "ecn/roce_np/enable/" + std::to_string(priority));
    if (!on) break;  // not this driver
    port.ecn = port.ecn.value_or(false) || *on == "1";
  }
}

void read_netdev(const host::Host& host, RdmaPort& port) {
  const std::string folder = kNet + "/" + *port.netdev + "/";
  if (const auto mtu = read_line(host, folder + "mtu")) port.netdev_mtu = parse_int<int>(*mtu);
  if (const auto changes = read_line(host, folder + "carrier_changes"))
    port.carrier_changes = parse_int<std::uint64_t>(*changes);
  if (port.link_layer == "Ethernet" && port.state == "ACTIVE" && !port.software.value_or(false))
    read_qos(host, port);
}

// IPv4 networks of the ports' interfaces, with their real prefix lengths.
void read_networks(const host::Host& host, Machine& machine) {
  if (machine.ports.empty()) return;
  const std::vector<std::string> argv{"ip", "-4", "addr", "show"};
  const auto text = host.run(argv);
  const auto interfaces = text ? parse::parse_ip_link(*text) : tl::unexpected(text.error());
  if (!interfaces) return;
  for (auto& port : machine.ports) {
    const auto at =
        std::ranges::find_if(*interfaces, [&](const auto& one) { return port.netdev == one.name; });
    if (at != interfaces->end()) port.networks = at->networks;
  }
}

void read_device_facts(const host::Host& host, const std::string& device, RdmaPort& port) {
  const std::string folder = kRdma + "/" + device + "/";
  const auto filled = [&](const char* file) {
    auto text = read_line(host, folder + file);
    return text && !text->empty() ? text : std::nullopt;
  };
  port.board_id = filled("board_id");
  port.firmware = filled("fw_ver");
  port.hca_type = filled("hca_type");
  port.node_guid = filled("node_guid");
  port.system_image_guid = filled("sys_image_guid");
  // A hardware device has a link to its PCI function; soft-RoCE and soft-iWARP have none, whatever their
  // name.
  const auto function = host.link(folder + "device");
  if (function || function.error().code == Errc::not_found) port.software = !function.has_value();
  port.bdf = pci_behind(host, folder + "device");
  port.netdev = netdev_of(host, device, port);
  if (!port.netdev) return;
  if (!port.bdf) port.bdf = pci_behind(host, kNet + "/" + *port.netdev);
  read_netdev(host, port);
  // sysfs has no active MTU; RoCE's follows from the netdev's, InfiniBand's stays unknown.
  if (port.link_layer == "Ethernet" && port.netdev_mtu) port.active_mtu = parse::roce_mtu(*port.netdev_mtu);
}

void read_rdma(const host::Host& host, Machine& machine) {
  const auto listed = host.list(kRdma);
  if (!listed) {
    if (listed.error().code == Errc::not_found)  // a kernel without RDMA: there is none
      machine.rdma_read = model::Fact<bool>::of(true, kRdma, "no such folder");
    else
      machine.rdma_read = model::Fact<bool>::missing(reason(listed.error()), kRdma);
    return;
  }
  machine.rdma_read = model::Fact<bool>::of(true, kRdma);
  for (const auto& device : sorted_names(host, kRdma)) {
    const auto ports = sorted_names(host, kRdma + "/" + device + "/ports");
    if (ports.empty())
      machine.diagnostics.push_back({"rdma-no-ports", device + ": its ports cannot be listed", {}});
    for (const auto& name : ports) {
      const auto number = parse_int<int>(name);
      if (!number || machine.ports.size() >= kMaxPorts) continue;
      auto port = read_port(host, device, *number);
      read_device_facts(host, device, port);
      machine.ports.push_back(std::move(port));
    }
  }
}

Nic nic_for(const Machine& machine, const std::optional<std::string>& bdf, std::string name) {
  Nic nic;
  nic.index = static_cast<int>(machine.topology.nics.size());
  nic.id = "NIC" + std::to_string(nic.index);
  nic.name = std::move(name);
  nic.bdf = bdf;
  const auto* device = bdf ? model::find_pci(machine.topology, *bdf) : nullptr;
  if (device != nullptr) nic.numa = device->numa;
  nic.is_virtual = !bdf;
  return nic;
}

void show_port(const RdmaPort& port, Nic& nic) {
  nic.port = port.port;
  nic.link_layer = port.link_layer;
  nic.rate.reset();
  if (port.gbits_per_s) nic.rate = GbitsPerSec{*port.gbits_per_s};
}

// RDMA devices are the NICs of the matrix, as nvidia-smi has it; one NIC a device, shown with its first
// active port.
void list_rdma_nics(Machine& machine) {
  std::set<std::string> active;
  for (const auto& port : machine.ports) {
    const auto same = std::ranges::find(machine.topology.nics, std::optional(port.device), &Nic::name);
    const bool fresh = same == machine.topology.nics.end();
    if (fresh) {
      machine.topology.nics.push_back(nic_for(machine, port.bdf, port.device));
      machine.topology.nics.back().rdma = true;
    }
    auto& nic = fresh ? machine.topology.nics.back() : *same;
    if (port.netdev) nic.netdevs.push_back(*port.netdev);
    const bool better = port.state == "ACTIVE" && active.insert(port.device).second;
    if (fresh || better) show_port(port, nic);
  }
}

// Network functions without RDMA (EFA before its driver, ENA, virtio): they carry NCCL's sockets.
void list_other_nics(const host::Host& host, Machine& machine) {
  std::set<std::string> known;
  for (const auto& nic : machine.topology.nics) {
    if (nic.bdf) known.insert(*nic.bdf);
  }
  for (const auto& name : sorted_names(host, kNet)) {
    const auto bdf = pci_behind(host, kNet + "/" + name);
    const auto* device = bdf ? model::find_pci(machine.topology, *bdf) : nullptr;
    if (device == nullptr || device->kind != model::PciKind::nic || !known.insert(*bdf).second) continue;
    Nic nic = nic_for(machine, bdf, name);
    nic.link_layer = "Ethernet";
    const auto speed = read_line(host, kNet + "/" + name + "/speed");  // Mb/s; -1 unknown
    if (const auto mbits = speed ? parse_int<int>(*speed) : std::nullopt; mbits && *mbits > 0)
      nic.rate = GbitsPerSec{*mbits / 1000.0};
    nic.netdevs = {name};
    machine.topology.nics.push_back(std::move(nic));
  }
}

}  // namespace

void discover_nics(const host::Host& host, Machine& machine) {
  read_rdma(host, machine);
  read_networks(host, machine);
  list_rdma_nics(machine);
  list_other_nics(host, machine);
}

}  // namespace topotune::discover
