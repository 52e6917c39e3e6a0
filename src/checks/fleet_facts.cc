#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "checks/fleet.h"

namespace topotune::checks {

namespace {

using model::FleetFact;
using model::Machine;

class Collector {
 public:
  explicit Collector(std::vector<FleetFact>& out) : out_(out) {}

  void add(const char* rule, std::string key, std::string value, std::string source) {
    out_.push_back({rule, std::move(key), std::move(value), std::move(source)});
  }
  void add(const char* rule, const char* key, const model::Fact<std::string>& fact) {
    if (fact) add(rule, key, *fact, fact.source);
  }
  template <class T>
  void add_number(const char* rule, std::string key, const std::optional<T>& value, std::string source) {
    if (value) add(rule, std::move(key), fmt::format("{}", *value), std::move(source));
  }

 private:
  std::vector<FleetFact>& out_;
};

void versions(const Machine& m, Collector& c) {
  c.add("FLEET01", "NVIDIA driver", m.nvidia_driver);
  c.add("FLEET01", "NCCL", m.nccl);
  c.add("FLEET01", "CUDA runtime", m.cuda_runtime);
  c.add("FLEET01", "UCX", m.ucx);
  c.add("FLEET01", "OFED", m.ofed);
  c.add("FLEET01", "kernel", m.kernel);
  c.add("FLEET01", "operating system", m.os);
  c.add("FLEET01", "fabric manager", m.fabric_manager_version);
  for (const auto& state : m.gpu_states) {
    if (state.vbios) c.add("FLEET01", state.gpu + " VBIOS", *state.vbios, "nvml");
  }
  for (const auto& port : m.ports) {
    if (port.firmware) c.add("FLEET01", port.device + " firmware", *port.firmware, port.source);
    if (port.board_id) c.add("FLEET01", port.device + " board id", *port.board_id, port.source);
  }
}

void counts(const Machine& m, Collector& c) {
  c.add("FLEET02", "number of GPUs", fmt::format("{}", m.topology.gpus.size()), "topology");
  int links = 0;
  bool known = !m.topology.gpus.empty();
  for (const auto& gpu : m.topology.gpus) {
    known = known && gpu.nvlinks.has_value();
    links += gpu.nvlinks.value_or(0);
  }
  if (known) c.add("FLEET02", "active NVLinks", fmt::format("{}", links), "nvml");
  if (!m.rdma_read) return;
  const auto active = std::ranges::count_if(m.ports, [](const auto& p) { return p.state == "ACTIVE"; });
  c.add("FLEET02", "RDMA ports", fmt::format("{}", m.ports.size()), m.rdma_read.source);
  c.add("FLEET02", "active RDMA ports", fmt::format("{}", active), m.rdma_read.source);
}

bool rises_above_device(const model::PciDevice& device) {
  return device.kind == model::PciKind::gpu || device.kind == model::PciKind::nic;
}

void links(const Machine& m, Collector& c) {
  for (const auto& device : m.topology.pci) {
    if (!rises_above_device(device)) continue;
    const std::string name = device.id + (device.kind == model::PciKind::gpu ? " (GPU)" : " (NIC)");
    c.add_number("FLEET06", name + " PCIe width", device.current.width, device.source);
    c.add_number("FLEET06", name + " PCIe width capable", device.capable.width, device.source);
    c.add_number("FLEET06", name + " PCIe GT/s capable", device.capable.gts, device.source);
    // An idle GPU lowers its link: its current speed says nothing about the node.
    if (device.kind == model::PciKind::nic)
      c.add_number("FLEET06", name + " PCIe GT/s", device.current.gts, device.source);
    c.add_number("FLEET06", name + " MaxReadReq", device.max_read_request, device.source);
    c.add_number("FLEET06", name + " NUMA node", device.numa, device.source);
  }
}

// ACS control bits that redirect peer traffic: P2P Request Redirect (4) and Completion Redirect (8);
// PCIe 7.7.8.3.
constexpr std::uint16_t kAcsRedirect = 0x4 | 0x8;

void acs(const Machine& m, Collector& c) {
  int read = 0;
  int redirecting = 0;
  for (const auto& device : m.topology.pci) {
    if (!device.acs_control) continue;
    ++read;
    redirecting += (*device.acs_control & kAcsRedirect) != 0 ? 1 : 0;
  }
  if (read > 0)
    c.add("FLEET06", "bridges whose ACS redirects", fmt::format("{}", redirecting),
          "PCI configuration space");
}

// Kernel parameters that name this node or this boot.
bool is_per_node(std::string_view name) {
  static const std::set<std::string, std::less<>> kNames = {
      "root",         "ip",        "BOOT_IMAGE", "initrd",   "hostname", "resume", "UUID",  "cryptdevice",
      "rd.luks.uuid", "rd.lvm.lv", "BOOTIF",     "nodename", "ro",       "rw",     "quiet", "splash"};
  return kNames.contains(name);
}

void kernel(const Machine& m, Collector& c) {
  if (m.kernel_command_line) {
    std::set<std::string> seen;
    for (const auto word : words(*m.kernel_command_line)) {
      const auto equal = word.find('=');
      const std::string name(word.substr(0, equal));
      if (is_per_node(name) || !seen.insert(name).second) continue;
      c.add("FLEET06", "kernel parameter " + name,
            equal == std::string_view::npos ? "set" : std::string(word.substr(equal + 1)),
            m.kernel_command_line.source);
    }
    // Parameters that matter when they are missing on one node.
    for (const char* name :
         {"iommu", "intel_iommu", "amd_iommu", "pci", "pcie_aspm", "numa_balancing", "mitigations"}) {
      if (!seen.contains(name))
        c.add("FLEET06", std::string("kernel parameter ") + name, "not set", m.kernel_command_line.source);
    }
  }
  if (m.numa_balancing)
    c.add("FLEET06", "numa_balancing", fmt::format("{}", *m.numa_balancing), m.numa_balancing.source);
  c.add("FLEET06", "transparent huge pages", m.thp);
  c.add("FLEET06", "ASPM policy", m.aspm_policy);
  if (!m.topology.numa.empty())
    c.add("FLEET06", "NUMA nodes", fmt::format("{}", m.topology.numa.size()), "topology");
  if (m.memlock)
    c.add("FLEET06", "memlock", m.memlock->soft ? fmt::format("{}", *m.memlock->soft) : "unlimited",
          m.memlock.source);
  if (m.governors) {
    std::set<std::string> used;
    for (const auto& [cpu, governor] : *m.governors) used.insert(governor);
    c.add("FLEET06", "CPU governors", fmt::format("{}", fmt::join(used, ",")), m.governors.source);
  }
  if (m.peermem) c.add("FLEET03", "nvidia-peermem", "loaded", m.peermem.source);
  for (const auto& gpu : m.topology.gpus) {
    if (gpu.mig) c.add("FLEET06", gpu.id + " MIG", *gpu.mig ? "on" : "off", "nvml");
  }
}

// Where the vectors of a NIC may run, against the CPUs of its node. Nothing where either is not known.
std::string interrupts_of(const Machine& m, const model::Nic& nic) {
  const auto* device = nic.bdf ? model::find_pci(m.topology, *nic.bdf) : nullptr;
  if (device == nullptr || !device->local_cpus || device->local_cpus->empty()) return "";
  std::size_t near = 0, all = 0;
  for (const auto& one : m.interrupts) {
    if (one.device != nic.name || !one.effective || one.effective->empty()) continue;
    ++all;
    near += one.effective->intersects(*device->local_cpus) ? 1 : 0;
  }
  if (all == 0) return "";
  return near == all ? "on the NIC's node" : near == 0 ? "on another node" : "partly on another node";
}

void interrupts(const Machine& m, Collector& c) {
  for (const auto& nic : m.topology.nics) {
    const auto where = interrupts_of(m, nic);
    if (!where.empty()) c.add("FLEET06", *nic.name + " interrupts", where, "/proc/irq");
  }
  if (m.irqbalance)
    c.add("FLEET06", "irqbalance", *m.irqbalance ? "runs" : "does not run", m.irqbalance.source);
}

// "0-25:0 26:3 27-63:0"
std::string mapping_text(const std::map<int, int>& dscp_priority) {
  std::string out;
  for (auto at = dscp_priority.begin(); at != dscp_priority.end();) {
    auto last = at;
    for (auto next = std::next(at);
         next != dscp_priority.end() && next->second == at->second && next->first == last->first + 1; ++next)
      last = next;
    const auto range =
        last == at ? fmt::format("{}", at->first) : fmt::format("{}-{}", at->first, last->first);
    out += fmt::format("{}{}:{}", out.empty() ? "" : " ", range, at->second);
    at = std::next(last);
  }
  return out;
}

void priorities(const model::RdmaPort& port, const std::string& rail, Collector& c) {
  if (port.pfc_priorities)
    c.add("FLEET05", rail + " PFC priorities", fmt::format("0x{:02x}", *port.pfc_priorities), "dcb");
  if (port.ecn) c.add("FLEET05", rail + " ECN", *port.ecn ? "on" : "off", "ecn/roce_np/enable");
  if (port.trust) c.add("FLEET05", rail + " trust", *port.trust, port.source);
  if (!port.dscp_priority.empty())
    c.add("FLEET05", rail + " priority of DSCP", mapping_text(port.dscp_priority), port.source);
}

bool is_ipv4(const model::Gid& gid) { return gid.address.starts_with("0000:0000:0000:0000:0000:ffff:"); }

void network(const Machine& m, Collector& c) {
  for (const auto& port : m.ports) {
    const std::string rail = fmt::format("{} port {}", port.device, port.port);
    if (port.link_layer) c.add("FLEET05", rail + " link layer", *port.link_layer, port.source);
    if (port.state != "ACTIVE") continue;
    c.add_number("FLEET05", rail + " Gb/s", port.gbits_per_s, port.source);
    c.add_number("FLEET05", rail + " RDMA MTU", port.active_mtu, port.source);
    c.add_number("FLEET05", rail + " netdev MTU", port.netdev_mtu, port.source);
    for (const auto& gid : port.gids) {
      if (gid.type != "RoCE v2" || !is_ipv4(gid)) continue;
      c.add("FLEET05", rail + " RoCE v2 IPv4 GID index", fmt::format("{}", gid.index), port.source);
      break;
    }
    // Rails with one flat subnet share it; routed rails (a /31 each) have no majority and so no finding.
    if (!port.networks.empty())
      c.add("FLEET05", rail + " IPv4 network", fmt::format("{}", fmt::join(port.networks, " ")),
            "addresses of " + port.netdev.value_or("its interface"));
    priorities(port, rail, c);
  }
}

}  // namespace

std::vector<FleetFact> fleet_facts(const Machine& machine) {
  std::vector<FleetFact> out;
  Collector collector(out);
  versions(machine, collector);
  counts(machine, collector);
  links(machine, collector);
  acs(machine, collector);
  kernel(machine, collector);
  network(machine, collector);
  interrupts(machine, collector);
  return out;
}

std::string fleet_kind(const Machine& machine) {
  std::set<std::string> ids;
  for (const auto& gpu : machine.topology.gpus) {
    if (gpu.pci_vendor && gpu.pci_device)
      ids.insert(fmt::format("{:04x}:{:04x}", *gpu.pci_vendor, *gpu.pci_device));
    else if (gpu.name)
      ids.insert(*gpu.name);
    else
      ids.insert("GPU of unknown model");
  }
  return ids.empty() ? "no GPU" : fmt::format("{}", fmt::join(ids, " "));
}

}  // namespace topotune::checks
