#include <algorithm>
#include <map>
#include <set>

#include "base/bdf.h"
#include "discover/phases.h"
#include "discover/reading.h"
#include "parse/hwloc_xml.h"
#include "parse/pci_text.h"
#include "parse/sysfs_pci.h"
#include "parse/sysfs_proc.h"

namespace topotune::discover {

namespace {

using model::Machine;
using model::PciDevice;
using model::PciKind;
using model::Topology;

const std::string kDevices = "/sys/bus/pci/devices/";
constexpr std::size_t kMaxPciDevices = 20000;

// NUMA nodes, packages and memory as hwloc tells them.
void take_hwloc(const host::Host& host, Machine& machine) {
  const auto xml = host.probe("hwloc");
  if (!xml) {
    machine.diagnostics.push_back({"hwloc", "hwloc did not answer: " + reason(xml.error()), {}});
    return;
  }
  auto topology = parse::parse_hwloc_xml(*xml);
  if (!topology) {
    machine.diagnostics.push_back({"hwloc", "hwloc's answer cannot be read: " + topology.error().to_string(), {}});
    return;
  }
  machine.topology.numa = std::move(topology->numa);
  machine.topology.packages = std::move(topology->packages);
  machine.topology.cpu = topology->cpu;
}

// The kernel's own node files: where hwloc said nothing, and for nodes and distances that it left out.
void take_sysfs_nodes(const host::Host& host, Machine& machine) {
  const std::string folder = "/sys/devices/system/node/";
  const auto names = host.list(folder.substr(0, folder.size() - 1));
  if (!names) return;
  std::vector<int> ids;
  for (const auto& name : *names) {
    const auto id = name.starts_with("node") ? parse_int<int>(std::string_view(name).substr(4)) : std::nullopt;
    if (id && *id < CpuSet::kMaxCpu) ids.push_back(*id);
  }
  std::ranges::sort(ids);
  for (const int id : ids) {
    const std::string node = folder + "node" + std::to_string(id) + "/";
    auto at = std::ranges::find(machine.topology.numa, id, &model::NumaNode::id);
    if (at == machine.topology.numa.end()) {
      machine.topology.numa.push_back({id, {}, {}, {}});
      at = std::prev(machine.topology.numa.end());
    }
    if (!at->cpus) {
      if (const auto cpus = read_line(host, node + "cpulist")) at->cpus = parse_cpu_list(*cpus);
    }
    if (!at->memory_bytes) {
      if (const auto memory = host.read(node + "meminfo")) at->memory_bytes = parse::parse_node_memory(*memory);
    }
    const auto text = read_line(host, node + "distance");
    const auto distances = text ? parse::parse_distances(*text) : std::nullopt;
    if (!distances || distances->size() != ids.size()) continue;
    for (std::size_t i = 0; i < ids.size(); ++i) at->distances[ids[i]] = (*distances)[i];
  }
  std::ranges::sort(machine.topology.numa, {}, &model::NumaNode::id);
}

void read_links(const host::Host& host, const std::string& folder, PciDevice& device) {
  const auto text = [&](const char* file) { return read_line(host, folder + file).value_or(""); };
  device.current = {parse::parse_link_speed(text("current_link_speed")), parse::parse_link_width(text("current_link_width"))};
  device.capable = {parse::parse_link_speed(text("max_link_speed")), parse::parse_link_width(text("max_link_width"))};
}

void read_config(const host::Host& host, const std::string& folder, PciDevice& device) {
  const auto bytes = host.read(folder + "config");
  if (!bytes) {
    device.config_why = reason(bytes.error());
    return;
  }
  const auto config = parse::parse_pci_config(*bytes);
  using Port = parse::PciConfig::Port;
  device.config_all_ones = config.all_ones;
  device.root_port = config.port == Port::root_port;
  device.pcie_switch_port = config.port == Port::upstream || config.port == Port::downstream;
  device.acs_capability = config.acs_capability;
  device.acs_control = config.acs_control;
  device.max_read_request = config.max_read_request;
  device.max_payload = config.max_payload;
  device.ats_enabled = config.ats_enabled;
  device.config_why = config.why;
}

PciDevice read_identity(const host::Host& host, const std::string& address) {
  PciDevice device;
  const std::string folder = kDevices + address + "/";
  device.id = canonical_bdf(address);
  device.source = kDevices + address;
  device.class_code = parse::parse_pci_class(read_line(host, folder + "class").value_or(""));
  device.vendor = parse::parse_pci_id(read_line(host, folder + "vendor").value_or(""));
  device.device = parse::parse_pci_id(read_line(host, folder + "device").value_or(""));
  device.kind = parse::kind_of(device.class_code, device.vendor, device.device);
  return device;
}

void read_details(const host::Host& host, PciDevice& device, bool endpoint) {
  const std::string folder = device.source + "/";
  device.numa = parse::parse_numa_node(read_line(host, folder + "numa_node").value_or(""));
  read_links(host, folder, device);
  read_config(host, folder, device);
  if (!endpoint) return;
  device.subsystem_vendor = parse::parse_pci_id(read_line(host, folder + "subsystem_vendor").value_or(""));
  device.subsystem_device = parse::parse_pci_id(read_line(host, folder + "subsystem_device").value_or(""));
  if (const auto cpus = read_line(host, folder + "local_cpulist")) device.local_cpus = parse_cpu_list(*cpus);
  if (const auto driver = host.link(folder + "driver")) device.driver = driver->substr(driver->rfind('/') + 1);
  device.virtual_function = host.link(folder + "physfn").has_value();
  device.power_state = read_line(host, folder + "power_state");
  if (const auto l1 = read_line(host, folder + "link/l1_aspm")) device.l1_aspm = *l1 == "1";
}

// Devices of interest and every bridge above them, from the kernel's links: they hold the whole chain.
void take_pci(const host::Host& host, Machine& machine) {
  const auto names = host.list(kDevices.substr(0, kDevices.size() - 1));
  if (!names) {
    machine.diagnostics.push_back({"no-pci", "the PCI devices cannot be listed: " + reason(names.error()), {}});
    machine.nvidia_pci_gpus = model::Fact<std::vector<std::string>>::missing(reason(names.error()), kDevices);
    return;
  }
  std::map<std::string, PciDevice> found;
  std::vector<std::string> nvidia;
  for (std::size_t i = 0; i < std::min(names->size(), kMaxPciDevices); ++i) {
    PciDevice device = read_identity(host, (*names)[i]);
    const bool wanted = device.kind == PciKind::gpu || device.kind == PciKind::nic || device.kind == PciKind::nvswitch;
    if (!wanted) continue;
    const auto link = host.link(kDevices + (*names)[i]);
    const auto position = link ? parse::parse_pci_link(*link) : std::nullopt;
    if (!position) machine.diagnostics.push_back({"no-position", device.id + ": its place in the PCI tree cannot be read", {}});
    read_details(host, device, true);
    const auto code = device.class_code.value_or(0) >> 8;
    if (device.vendor == 0x10de && (code == 0x0300 || code == 0x0302)) nvidia.push_back(device.id);
    if (position) {
      device.root = position->root;
      device.parent = position->bridges.empty() ? "" : position->bridges.back();
      for (std::size_t b = 0; b < position->bridges.size(); ++b) {
        const auto& id = position->bridges[b];
        if (found.contains(id)) continue;
        PciDevice bridge = read_identity(host, id);
        bridge.kind = PciKind::bridge;
        bridge.root = position->root;
        bridge.parent = b == 0 ? "" : position->bridges[b - 1];
        read_details(host, bridge, false);
        // Root port, upstream port, downstream port, upstream port, ...: an upstream port stands for its switch.
        if (b % 2 == 1) machine.topology.switches.push_back({id, id, "pcie"});
        found.emplace(id, std::move(bridge));
      }
    }
    if (device.kind == PciKind::nvswitch) machine.topology.switches.push_back({device.id, device.id, "nvswitch"});
    found.emplace(device.id, std::move(device));
  }
  machine.nvidia_pci_gpus = model::Fact<std::vector<std::string>>::of(nvidia, kDevices);
  for (auto& [id, device] : found) machine.topology.pci.push_back(std::move(device));
  machine.topology.tree_known = true;
}

}  // namespace

void discover_cpu_numa_pci(const host::Host& host, Machine& machine) {
  take_hwloc(host, machine);
  take_sysfs_nodes(host, machine);
  take_pci(host, machine);
}

}  // namespace topotune::discover
