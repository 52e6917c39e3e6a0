#include "discover/merge_rdma.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "parse/ibdev2netdev.h"
#include "parse/ibstat.h"
#include "parse/ibstatus.h"
#include "parse/ibv_devinfo.h"
#include "parse/ip_link.h"
#include "parse/line_reader.h"
#include "parse/port_counters.h"
#include "parse/port_qos.h"
#include "parse/rdma_link.h"
#include "parse/show_gids.h"

namespace topotune::discover {
namespace {

using parse::PortRecord;

template <class T>
void take(std::optional<T>& to, const std::optional<T>& from) {
  if (!to && from) to = from;
}

// Rates of two commands may differ in rounding only (ibstat prints 2 for 2.5 Gb/s).
void merge_rate(Merger& merger, model::RdmaPort& to, std::optional<double> rate, const std::string& now) {
  if (!rate) return;
  if (to.gbits_per_s && std::abs(*to.gbits_per_s - *rate) > 1.0)
    merger.contradiction(fmt::format("rate of {} port {}", to.device, to.port), to.source, now);
  take(to.gbits_per_s, rate);
}

void merge_port(Merger& merger, const Piece& piece, const PortRecord& record) {
  auto* to = merger.port_for(record.port.device, record.port.port);
  if (!to) return;
  const auto& from = record.port;
  const auto now = piece.at(record.line);
  if (to->source.empty()) to->source = now;
  const auto what = [&](const char* field) {
    return fmt::format("{} of {} port {}", field, to->device, to->port);
  };
  merger.set(to->state, from.state, what("state"), to->source, now);
  merger.set(to->phys_state, from.phys_state, what("physical state"), to->source, now);
  merger.set(to->link_layer, from.link_layer, what("link layer"), to->source, now);
  merger.set(to->firmware, from.firmware, what("firmware"), to->source, now);
  merger.set(to->active_mtu, from.active_mtu, what("active MTU"), to->source, now);
  merge_rate(merger, *to, from.gbits_per_s, now);
  take(to->bdf, from.bdf);
  take(to->max_mtu, from.max_mtu);
  take(to->lid, from.lid);
  take(to->sm_lid, from.sm_lid);
  take(to->netdev, from.netdev);
  take(to->board_id, from.board_id);
  take(to->hca_type, from.hca_type);
  take(to->node_guid, from.node_guid);
  take(to->system_image_guid, from.system_image_guid);
  if (to->gids.empty()) {
    to->gids = from.gids;
    to->gids_known = from.gids_known;
  }
  if (record.cut)
    merger.warn("truncated",
                fmt::format("{}: the record of {} port {} is cut off", now, to->device, to->port));
}

// `lists`: the command prints every RDMA device of the machine.
tl::expected<void, Error> merge_ports(Merger& merger, const Piece& piece,
                                      const Result<parse::RdmaPorts>& ports, bool lists) {
  if (!ports) return tl::unexpected(ports.error());
  for (const auto& record : ports->ports) merge_port(merger, piece, record);
  if (ports->ports.empty()) {  // ibv_devices: names only
    for (const auto& device : ports->devices) {
      auto* port = merger.port_for(device, 1);
      if (port && port->source.empty()) port->source = std::string(piece.name);
    }
  }
  for (const auto& error : ports->errors)
    merger.warn("device-error", fmt::format("{}: {}", piece.name, error));
  const int line = ports->ports.empty() ? 1 : ports->ports.front().line;
  if (lists && !merger.machine.rdma_read.known())
    merger.machine.rdma_read = model::Fact<bool>::of(true, piece.at(line));
  return {};
}

}  // namespace

std::optional<std::string> bdf_of_interface(std::string_view name) {
  if (!name.starts_with("en") && !name.starts_with("ib")) return std::nullopt;
  name.remove_prefix(2);
  Bdf out;
  const auto number = [&name](char letter) -> std::optional<int> {
    if (name.empty() || name.front() != letter) return std::nullopt;
    const auto digits = parse::leading_digits(name.substr(1));
    const auto value = parse_int<int>(digits);
    if (value) name.remove_prefix(1 + digits.size());
    return value;
  };
  if (const auto domain = number('P')) out.domain = static_cast<std::uint32_t>(*domain);
  const auto bus = number('p');
  const auto slot = number('s');
  if (!bus || !slot || *bus > 255 || *slot > 31) return std::nullopt;
  out.bus = static_cast<std::uint8_t>(*bus);
  out.device = static_cast<std::uint8_t>(*slot);
  if (const auto function = number('f')) {
    if (*function > 7) return std::nullopt;
    out.function = static_cast<std::uint8_t>(*function);
  }
  if (!name.empty() && !name.starts_with("np") && !name.starts_with("d")) return std::nullopt;
  return out.to_string();
}

tl::expected<void, Error> merge_ibv_devinfo(Merger& merger, const Piece& piece) {
  return merge_ports(merger, piece, parse::parse_ibv_devinfo(piece.text), true);
}
tl::expected<void, Error> merge_ibstat(Merger& merger, const Piece& piece) {
  return merge_ports(merger, piece, parse::parse_ibstat(piece.text), true);
}
tl::expected<void, Error> merge_ibstatus(Merger& merger, const Piece& piece) {
  return merge_ports(merger, piece, parse::parse_ibstatus(piece.text), true);
}
tl::expected<void, Error> merge_rdma_link(Merger& merger, const Piece& piece) {
  return merge_ports(merger, piece, parse::parse_rdma_link(piece.text), true);
}
tl::expected<void, Error> merge_ibdev2netdev(Merger& merger, const Piece& piece) {
  return merge_ports(merger, piece, parse::parse_ibdev2netdev(piece.text), true);
}
tl::expected<void, Error> merge_show_gids(Merger& merger, const Piece& piece) {
  return merge_ports(merger, piece, parse::parse_show_gids(piece.text), false);
}

tl::expected<void, Error> merge_ip_link(Merger& merger, const Piece& piece) {
  const auto interfaces = parse::parse_ip_link(piece.text);
  if (!interfaces) return tl::unexpected(interfaces.error());
  for (const auto& one : *interfaces) {
    if (one.mtu) merger.netdev_mtu.try_emplace(one.name, *one.mtu);
    if (one.bdf) merger.netdev_bdf.try_emplace(one.name, *one.bdf);
    if (!one.networks.empty()) merger.netdev_networks.try_emplace(one.name, one.networks);
  }
  return {};
}

tl::expected<void, Error> merge_port_qos(Merger& merger, const Piece& piece) {
  auto qos = parse::parse_port_qos(piece.text, piece.command);
  if (!qos) return tl::unexpected(qos.error());
  if (qos->netdev.empty()) {
    merger.warn(
        "interface-unknown",
        fmt::format("{}: which interface this is cannot be told: keep the command's line", piece.name));
    return {};
  }
  auto& to = merger.netdev_qos[qos->netdev];
  if (to.second.empty()) to.second = piece.at(1);
  take(to.first.trust, qos->trust);
  take(to.first.pfc_priorities, qos->pfc_priorities);
  if (to.first.dscp_priority.empty()) to.first.dscp_priority = qos->dscp_priority;
  return {};
}

// A port that perfquery names by its LID is the one that another text gives this LID.
tl::expected<void, Error> merge_port_counters(Merger& merger, const Piece& piece) {
  const auto records = parse::parse_port_counters(piece.text);
  if (!records) return tl::unexpected(records.error());
  for (const auto& record : *records) {
    if (!record.device.empty()) {
      auto* port = merger.port_for(record.device, record.port);
      if (port && port->source.empty()) port->source = piece.at(record.line);
      if (port) port->counters.insert(record.counters.begin(), record.counters.end());
    } else if (record.lid) {
      merger.lid_counters[*record.lid].insert(record.counters.begin(), record.counters.end());
    }
  }
  return {};
}

// Ports get what the network interfaces tell; each RDMA device and each PCI network function becomes a NIC.
namespace {

// An interface's address: printed by `ip -d link`, or in its name where lspci knows a network device there.
std::optional<std::string> address_of(const Merger& merger, const std::string& netdev) {
  if (const auto at = merger.netdev_bdf.find(netdev); at != merger.netdev_bdf.end()) return at->second;
  auto bdf = bdf_of_interface(netdev);
  const auto known = [&](const model::PciDevice& device) {
    return device.kind == model::PciKind::nic && bdf && device.id == *bdf;
  };
  return std::ranges::any_of(merger.machine.topology.pci, known) ? bdf : std::nullopt;
}

void finish_qos(const Merger& merger, model::RdmaPort& port) {
  if (const auto at = merger.netdev_networks.find(*port.netdev); at != merger.netdev_networks.end())
    port.networks = at->second;
  const auto at = merger.netdev_qos.find(*port.netdev);
  if (at == merger.netdev_qos.end()) return;
  const auto& qos = at->second.first;
  take(port.trust, qos.trust);
  take(port.pfc_priorities, qos.pfc_priorities);
  if (port.dscp_priority.empty()) port.dscp_priority = qos.dscp_priority;
}

void finish_port(const Merger& merger, model::RdmaPort& port) {
  if (const auto at = port.lid ? merger.lid_counters.find(*port.lid) : merger.lid_counters.end();
      at != merger.lid_counters.end() && *port.lid != 0)
    port.counters.insert(at->second.begin(), at->second.end());
  if (!port.netdev) return;
  if (!port.bdf) port.bdf = address_of(merger, *port.netdev);
  const auto mtu = merger.netdev_mtu.find(*port.netdev);
  if (!port.netdev_mtu && mtu != merger.netdev_mtu.end()) port.netdev_mtu = mtu->second;
  finish_qos(merger, port);
}

model::Nic& nic_for(model::Topology& topology, std::map<std::string, std::size_t>& by_name,
                    const model::RdmaPort& port) {
  if (const auto at = by_name.find(port.device); at != by_name.end()) return topology.nics[at->second];
  if (port.bdf) {
    for (auto& nic : topology.nics) {
      if (nic.bdf == port.bdf && !nic.name) return nic;
    }
  }
  int index = 0;
  for (const auto& nic : topology.nics) index = std::max(index, nic.index + 1);
  model::Nic added;
  added.index = index;
  added.id = fmt::format("NIC{}", index);
  by_name.emplace(port.device, topology.nics.size());
  topology.nics.push_back(std::move(added));
  return topology.nics.back();
}

void fill_nic(model::Nic& nic, const model::RdmaPort& port) {
  nic.rdma = true;
  if (!nic.name) nic.name = port.device;
  take(nic.bdf, port.bdf);
  take(nic.link_layer, port.link_layer);
  if (!nic.rate && port.gbits_per_s && port.state == "ACTIVE") nic.rate = GbitsPerSec{*port.gbits_per_s};
  if (!nic.port) nic.port = port.port;
  if (port.netdev && std::ranges::find(nic.netdevs, *port.netdev) == nic.netdevs.end())
    nic.netdevs.push_back(*port.netdev);
}

// Where every RDMA device has its address, the other network functions are NICs of their own; otherwise a
// function may be one that is already there under its name.
void add_unnamed_nics(model::Topology& topology) {
  const auto without_address = [](const model::Nic& nic) { return !nic.bdf && !nic.is_virtual; };
  if (std::ranges::any_of(topology.nics, without_address)) return;
  std::map<std::string, bool> known;
  int index = 0;
  for (const auto& nic : topology.nics) {
    if (nic.bdf) known[*nic.bdf] = true;
    index = std::max(index, nic.index + 1);
  }
  for (const auto& device : topology.pci) {
    if (device.kind != model::PciKind::nic || known.contains(device.id)) continue;
    model::Nic added;
    added.index = index++;
    added.id = fmt::format("NIC{}", added.index);
    added.bdf = device.id;
    added.numa = device.numa;
    added.rdma = device.vendor == 0x15b3;
    topology.nics.push_back(std::move(added));
  }
}

}  // namespace

void finish_nics(Merger& merger) {
  auto& topology = merger.machine.topology;
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < topology.nics.size(); ++i) {
    if (topology.nics[i].name) by_name.try_emplace(*topology.nics[i].name, i);
  }
  for (auto& port : merger.machine.ports) {
    finish_port(merger, port);
    fill_nic(nic_for(topology, by_name, port), port);
  }
  add_unnamed_nics(topology);
  for (auto& port : merger.machine.ports) {  // addresses that the topology knows
    const auto at = by_name.find(port.device);
    if (!port.bdf && at != by_name.end()) port.bdf = topology.nics[at->second].bdf;
  }
}

}  // namespace topotune::discover
