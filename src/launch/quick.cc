#include "launch/quick.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/bdf.h"
#include "base/text.h"
#include "discover/reading.h"
#include "host/files.h"
#include "parse/pci_text.h"
#include "parse/sysfs_pci.h"
#include "parse/sysfs_proc.h"

namespace topotune::launch {

namespace {

using model::Machine;
using model::PciDevice;
using model::PciKind;

constexpr std::size_t kMaxFunctions = 20000;

std::optional<CpuSet> cpu_list(const host::Host& host, const std::string& path) {
  const auto text = discover::read_line(host, path);
  auto set = text ? parse_cpu_list(*text) : std::nullopt;
  if (set && set->empty()) set.reset();
  return set;
}

void read_nodes(const host::Host& host, Machine& machine) {
  const std::string folder = "/sys/devices/system/node";
  const auto names = host.list(folder);
  if (!names) return;
  for (const auto& name : *names) {
    const auto id =
        name.starts_with("node") ? parse_int<int>(std::string_view(name).substr(4)) : std::nullopt;
    if (!id) continue;
    model::NumaNode node;
    node.id = *id;
    node.cpus = cpu_list(host, folder + "/" + name + "/cpulist");
    machine.topology.numa.push_back(std::move(node));
  }
  std::ranges::sort(machine.topology.numa, {}, &model::NumaNode::id);
  for (auto& node : machine.topology.numa) {
    const auto text = discover::read_line(host, fmt::format("{}/node{}/distance", folder, node.id));
    const auto distances = text ? parse::parse_distances(*text) : std::nullopt;
    if (!distances || distances->size() != machine.topology.numa.size()) continue;
    for (std::size_t i = 0; i < distances->size(); ++i)
      node.distances[machine.topology.numa[i].id] = (*distances)[i];
  }
}

// One file a core: the siblings of a CPU that an earlier one named are not asked again.
void read_cores(const host::Host& host, Machine& machine) {
  machine.online_cpus = model::Fact<CpuSet>::missing("not found");
  const auto online = cpu_list(host, "/sys/devices/system/cpu/online");
  if (!online) return;
  machine.online_cpus = model::Fact<CpuSet>::of(*online, "/sys/devices/system/cpu/online");
  CpuSet seen;
  for (const int cpu : online->to_vector()) {
    if (seen.contains(cpu)) continue;
    auto core =
        cpu_list(host, fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    if (!core) return;
    seen = seen | *core;
    machine.topology.cores.push_back(std::move(*core));
  }
}

// Every function of the path "../../../devices/pci0000:20/0000:20:01.0/0000:21:00.0", nearest to the root
// first.
void add_chain(Machine& machine, std::set<std::string>& known, const std::string& link, PciDevice device) {
  std::string parent, root;
  for (const auto part : split(link, '/')) {
    if (part.starts_with("pci") && part.size() > 3) root = std::string(part.substr(3));
    const auto address = parse_bdf(part);
    if (!address || root.empty()) continue;
    const auto id = address->to_string();
    if (id == device.id) break;
    if (known.insert(id).second) {
      PciDevice bridge;
      bridge.id = id;
      bridge.parent = parent;
      bridge.root = root;
      bridge.kind = PciKind::bridge;
      machine.topology.pci.push_back(std::move(bridge));
    }
    parent = id;
  }
  device.parent = parent;
  device.root = root;
  if (known.insert(device.id).second) machine.topology.pci.push_back(std::move(device));
}

PciDevice read_function(const host::Host& host, const std::string& folder, const std::string& address,
                        PciKind kind) {
  PciDevice out;
  out.id = canonical_bdf(address);
  out.kind = kind;
  out.numa = parse::parse_numa_node(discover::read_line(host, folder + "/numa_node").value_or(""));
  out.local_cpus = cpu_list(host, folder + "/local_cpulist");
  out.vendor = parse::parse_pci_id(discover::read_line(host, folder + "/vendor").value_or(""));
  out.device = parse::parse_pci_id(discover::read_line(host, folder + "/device").value_or(""));
  return out;
}

void add_gpu(const host::Host& host, Machine& machine, std::set<std::string>& known,
             const std::string& address) {
  const std::string folder = "/sys/bus/pci/devices/" + address;
  auto device = read_function(host, folder, address, PciKind::gpu);
  model::Gpu gpu;
  gpu.index = static_cast<int>(machine.topology.gpus.size());
  gpu.id = fmt::format("GPU{}", gpu.index);
  gpu.bdf = device.id;
  gpu.numa = device.numa;
  gpu.cpus = device.local_cpus;
  gpu.pci_vendor = device.vendor;
  gpu.pci_device = device.device;
  machine.topology.gpus.push_back(std::move(gpu));
  add_chain(machine, known, host.link(folder).value_or(""), std::move(device));
}

// GPUs that the driver serves; nothing where it does not tell.
std::optional<std::map<std::string, std::string>> served(const host::Host& host) {
  const std::string folder = "/proc/driver/nvidia/gpus";
  const auto names = host.list(folder);
  if (!names || names->empty()) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const auto& name : *names) {
    const auto text = host.read(folder + "/" + name + "/information");
    std::string uuid;
    for (const auto row : lines(text ? std::string_view(*text) : std::string_view()))
      if (row.starts_with("GPU UUID:")) uuid = std::string(trim(row.substr(9)));
    out[canonical_bdf(name)] = uuid;
  }
  return out;
}

// Class 0300 (VGA) and 0302 (3D) of NVIDIA and AMD, 0380 of AMD (display controller) and 1200 (accelerator)
// of AMD.
bool is_gpu(const host::Host& host, const std::string& folder) {
  const auto code = parse::parse_pci_class(discover::read_line(host, folder + "/class").value_or(""));
  if (!code) return false;
  const auto family = *code >> 8;
  if (family != 0x0300 && family != 0x0302 && family != 0x0380 && family != 0x1200) return false;
  const auto vendor = parse::parse_pci_id(discover::read_line(host, folder + "/vendor").value_or(""));
  return vendor == 0x10de || (vendor == 0x1002 && family != 0x0300);
}

void read_gpus(const host::Host& host, Machine& machine, std::set<std::string>& known) {
  const auto driver = served(host);
  std::vector<std::string> addresses;
  if (driver) {
    for (const auto& [address, uuid] : *driver) addresses.push_back(address);
  } else if (const auto names = host.list("/sys/bus/pci/devices")) {
    for (std::size_t i = 0; i < names->size() && i < kMaxFunctions; ++i)
      if (is_gpu(host, "/sys/bus/pci/devices/" + (*names)[i])) addresses.push_back((*names)[i]);
  }
  std::ranges::sort(addresses, {}, [](const std::string& text) { return parse_bdf(text); });
  for (const auto& address : addresses) {
    add_gpu(host, machine, known, address);
    if (driver && !driver->at(address).empty()) machine.topology.gpus.back().uuid = driver->at(address);
  }
}

void read_nics(const host::Host& host, Machine& machine, std::set<std::string>& known) {
  const auto names = host.list("/sys/class/infiniband");
  if (!names) return;
  for (const auto& name : *names) {
    const auto link = host.link("/sys/class/infiniband/" + name + "/device");
    model::Nic nic;
    nic.index = static_cast<int>(machine.topology.nics.size());
    nic.id = fmt::format("NIC{}", nic.index);
    nic.name = name;
    nic.rdma = true;
    const auto address = link ? parse_bdf(link->substr(link->rfind('/') + 1)) : std::nullopt;
    nic.is_virtual = !address.has_value();
    if (address) {
      const auto folder = "/sys/bus/pci/devices/" + address->to_string();
      auto device = read_function(host, folder, address->to_string(), PciKind::nic);
      nic.bdf = device.id;
      nic.numa = device.numa;
      add_chain(machine, known, host.link(folder).value_or(""), std::move(device));
    }
    machine.topology.nics.push_back(std::move(nic));
  }
}

}  // namespace

Result<std::string> PlainHost::read(std::string_view path) const {
  return host::read_file(root_ + std::string(path), path);
}
Result<std::vector<std::string>> PlainHost::list(std::string_view path) const {
  return host::list_folder(root_ + std::string(path), path);
}
Result<std::string> PlainHost::link(std::string_view path) const {
  return host::read_link(root_ + std::string(path), path);
}
Result<std::string> PlainHost::run(std::span<const std::string>) const {
  return fail(Errc::unsupported, "programs are not run here");
}
Result<std::string> PlainHost::probe(std::string_view name) const {
  return fail(Errc::unsupported, "{}: not asked here", name);
}

Machine quick_machine(const host::Host& host) {
  Machine machine;
  machine.topology.source = {model::SourceKind::live, "live", true};
  machine.topology.tree_known = true;
  std::set<std::string> known;
  read_nodes(host, machine);
  read_cores(host, machine);
  read_gpus(host, machine, known);
  read_nics(host, machine, known);
  return machine;
}

std::vector<KnownGpu> known_gpus(const Machine& machine) {
  std::vector<KnownGpu> out;
  for (const auto& gpu : machine.topology.gpus)
    out.push_back({gpu.bdf.value_or(gpu.id), gpu.uuid.value_or("")});
  return out;
}

}  // namespace topotune::launch
