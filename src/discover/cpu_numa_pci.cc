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
    machine.diagnostics.push_back(
        {"hwloc", "hwloc's answer cannot be read: " + topology.error().to_string(), {}});
    return;
  }
  machine.topology.numa = std::move(topology->numa);
  machine.topology.packages = std::move(topology->packages);
  machine.topology.cores = std::move(topology->cores);
  machine.topology.cpu = topology->cpu;
  // Stands in for the kernel's own files where those cannot be listed.
  machine.topology.pci = std::move(topology->pci);
  machine.topology.switches = std::move(topology->switches);
}

// The kernel's own node files: where hwloc said nothing, and for nodes and distances that it left out.
void take_sysfs_nodes(const host::Host& host, Machine& machine) {
  const std::string folder = "/sys/devices/system/node/";
  const auto names = host.list(folder.substr(0, folder.size() - 1));
  if (!names) return;
  std::vector<int> ids;
  for (const auto& name : *names) {
    const auto id =
        name.starts_with("node") ? parse_int<int>(std::string_view(name).substr(4)) : std::nullopt;
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
      if (const auto memory = host.read(node + "meminfo"))
        at->memory_bytes = parse::parse_node_memory(*memory);
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
  device.current = {parse::parse_link_speed(text("current_link_speed")),
                    parse::parse_link_width(text("current_link_width"))};
  device.capable = {parse::parse_link_speed(text("max_link_speed")),
                    parse::parse_link_width(text("max_link_width"))};
}

// The kind of port by configuration space; nothing where that is too short to tell (without root).
std::optional<parse::PciConfig::Port> read_config(const host::Host& host, const std::string& folder,
                                                  PciDevice& device) {
  const auto bytes = host.read(folder + "config");
  if (!bytes) {
    device.config_why = reason(bytes.error());
    return std::nullopt;
  }
  const auto config = parse::parse_pci_config(*bytes);
  device.config_all_ones = config.all_ones;
  device.acs_capability = config.acs_capability;
  device.acs_control = config.acs_control;
  device.max_read_request = config.max_read_request;
  device.max_payload = config.max_payload;
  device.ats_enabled = config.ats_enabled;
  device.config_why = config.why;
  return config.port;
}

// Intel's VGA on bus 0 is a part of the CPU: no GPU of interest.
bool is_part_of_cpu(const PciDevice& device) {
  const auto bdf = parse_bdf(device.id);
  return device.kind == PciKind::gpu && device.vendor == 0x8086 &&
         device.class_code.value_or(0) >> 8 == 0x0300 && bdf && bdf->bus == 0;
}

bool is_wanted(const PciDevice& device) {
  const bool wanted =
      device.kind == PciKind::gpu || device.kind == PciKind::nic || device.kind == PciKind::nvswitch;
  return wanted && !is_part_of_cpu(device);
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

// What every function of interest tells, bridges included; the port's kind as read_config has it.
std::optional<parse::PciConfig::Port> read_details(const host::Host& host, PciDevice& device) {
  const std::string folder = device.source + "/";
  device.numa = parse::parse_numa_node(read_line(host, folder + "numa_node").value_or(""));
  read_links(host, folder, device);
  return read_config(host, folder, device);
}

void read_endpoint(const host::Host& host, PciDevice& device) {
  const std::string folder = device.source + "/";
  read_details(host, device);
  device.subsystem_vendor = parse::parse_pci_id(read_line(host, folder + "subsystem_vendor").value_or(""));
  device.subsystem_device = parse::parse_pci_id(read_line(host, folder + "subsystem_device").value_or(""));
  if (const auto cpus = read_line(host, folder + "local_cpulist")) device.local_cpus = parse_cpu_list(*cpus);
  if (const auto driver = host.link(folder + "driver"))
    device.driver = driver->substr(driver->rfind('/') + 1);
  device.virtual_function = host.link(folder + "physfn").has_value();
  device.power_state = read_line(host, folder + "power_state");
  if (const auto l1 = read_line(host, folder + "link/l1_aspm")) device.l1_aspm = *l1 == "1";
  for (const char* kind : {"correctable", "nonfatal", "fatal"}) {
    const auto text = host.read(folder + "aer_dev_" + kind);
    if (const auto total = text ? parse::parse_aer_total(*text) : std::nullopt) device.aer[kind] = *total;
  }
}

// The `depth`-th bridge from the root. Where configuration space does not tell, ports alternate: root port,
// upstream port, downstream port, upstream port, ...; an upstream port stands for its switch.
PciDevice read_bridge(const host::Host& host, const parse::PciPosition& at, std::size_t depth,
                      std::vector<model::PciSwitch>& switches) {
  using Port = parse::PciConfig::Port;
  PciDevice bridge = read_identity(host, at.bridges[depth]);
  bridge.kind = PciKind::bridge;
  bridge.root = at.root;
  bridge.parent = depth == 0 ? "" : at.bridges[depth - 1];
  const auto told = read_details(host, bridge);
  const auto port = told.value_or(depth == 0       ? Port::root_port
                                  : depth % 2 == 1 ? Port::upstream
                                                   : Port::downstream);
  bridge.root_port = port == Port::root_port;
  bridge.pcie_switch_port = port == Port::upstream || port == Port::downstream;
  if (port == Port::upstream) switches.push_back({bridge.id, bridge.id, "pcie"});
  return bridge;
}

using Devices = std::map<std::string, PciDevice>;

// A device of interest with every bridge above it, from the kernel's link: it holds the whole chain.
void add_with_bridges(const host::Host& host, PciDevice device, const std::string& name, Machine& machine,
                      Devices& found) {
  const auto link = host.link(kDevices + name);
  const auto position = link ? parse::parse_pci_link(*link) : std::nullopt;
  read_endpoint(host, device);
  if (position) {
    device.root = position->root;
    device.parent = position->bridges.empty() ? "" : position->bridges.back();
    for (std::size_t depth = 0; depth < position->bridges.size(); ++depth) {
      const auto& id = position->bridges[depth];
      if (!found.contains(id))
        found.emplace(id, read_bridge(host, *position, depth, machine.topology.switches));
    }
  } else {
    const auto why = link ? std::string() : ": " + reason(link.error());
    machine.diagnostics.push_back(
        {"no-position", device.id + ": its place in the PCI tree cannot be read" + why, {}});
  }
  if (device.kind == PciKind::nvswitch)
    machine.topology.switches.push_back({device.id, device.id, "nvswitch"});
  found.emplace(device.id, std::move(device));
}

void take_pci(const host::Host& host, Machine& machine) {
  const auto names = host.list(kDevices.substr(0, kDevices.size() - 1));
  machine.topology.tree_known = names || !machine.topology.pci.empty();
  if (!names) {
    machine.diagnostics.push_back(
        {"no-pci", "the PCI devices cannot be listed: " + reason(names.error()), {}});
    machine.nvidia_pci_gpus = model::Fact<std::vector<std::string>>::missing(reason(names.error()), kDevices);
    return;
  }
  machine.topology.pci.clear();
  machine.topology.switches.clear();
  Devices found;
  std::vector<std::string> nvidia;
  for (std::size_t i = 0; i < std::min(names->size(), kMaxPciDevices); ++i) {
    PciDevice device = read_identity(host, (*names)[i]);
    if (!is_wanted(device)) continue;
    const auto code = device.class_code.value_or(0) >> 8;
    if (device.vendor == 0x10de && (code == 0x0300 || code == 0x0302)) nvidia.push_back(device.id);
    add_with_bridges(host, std::move(device), (*names)[i], machine, found);
  }
  machine.nvidia_pci_gpus = model::Fact<std::vector<std::string>>::of(nvidia, kDevices);
  for (auto& [id, device] : found) machine.topology.pci.push_back(std::move(device));
}

}  // namespace

void discover_cpu_numa_pci(const host::Host& host, Machine& machine) {
  take_hwloc(host, machine);
  take_sysfs_nodes(host, machine);
  take_pci(host, machine);
}

}  // namespace topotune::discover
