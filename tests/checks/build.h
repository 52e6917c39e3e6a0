#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "checks/rule.h"
#include "model/machine.h"

// Small builders of machines, and what one rule says about one.
namespace topotune::checks::test {

using model::Fact;
using model::Machine;
using model::PathType;
using model::PciDevice;
using model::PciKind;
using model::Severity;
using model::SourceKind;

template <class T>
Fact<T> known(T value) {
  return Fact<T>::of(std::move(value), "test");
}

inline CpuSet cpus(int first, int last) {
  CpuSet set;
  set.add_range(first, last);
  return set;
}

constexpr std::uint16_t kH100 = 0x2330, kH100Pcie = 0x2331, kV100 = 0x1db5, kRtx4090 = 0x2684,
                        kA6000 = 0x2230;

// Bare metal, read live.
inline Machine bare_metal() {
  Machine machine;
  machine.topology.source = {SourceKind::live, "live", true};
  machine.topology.tree_known = true;
  machine.virtual_machine = known(false);
  machine.container = known(false);
  machine.rdma_read = known(true);
  return machine;
}

inline void add_nodes(Machine& machine, int count, int cpus_each = 8) {
  for (int i = 0; i < count; ++i) {
    model::NumaNode node;
    node.id = i;
    node.cpus = cpus(i * cpus_each, (i + 1) * cpus_each - 1);
    for (int j = 0; j < count; ++j) node.distances[j] = i == j ? 10 : 21;
    machine.topology.numa.push_back(node);
  }
}

inline PciDevice& add_pci(Machine& machine, const std::string& id, PciKind kind,
                          const std::string& parent = {}) {
  PciDevice device;
  device.id = id;
  device.kind = kind;
  device.parent = parent;
  device.root = id.substr(0, 7);
  if (!parent.empty())
    for (const auto& other : machine.topology.pci)
      if (other.id == parent) device.root = other.root;
  machine.topology.pci.push_back(device);
  return machine.topology.pci.back();
}

// A GPU of vendor NVIDIA with its PCI device; the returned reference dies with the next add.
inline model::Gpu& add_gpu(Machine& machine, const std::string& bdf, std::uint16_t device_id,
                           const std::string& parent = {}) {
  auto& device = add_pci(machine, bdf, PciKind::gpu, parent);
  device.vendor = 0x10de;
  device.device = device_id;
  device.driver = "nvidia";
  model::Gpu gpu;
  gpu.index = static_cast<int>(machine.topology.gpus.size());
  gpu.id = "GPU" + std::to_string(gpu.index);
  gpu.bdf = bdf;
  gpu.pci_vendor = 0x10de;
  gpu.pci_device = device_id;
  machine.topology.gpus.push_back(gpu);
  return machine.topology.gpus.back();
}

// A 400 Gb/s RDMA NIC with an active port.
inline model::RdmaPort& add_nic(Machine& machine, const std::string& bdf, const std::string& parent = {},
                                const std::string& layer = "InfiniBand") {
  auto& device = add_pci(machine, bdf, PciKind::nic, parent);
  device.vendor = 0x15b3;
  device.device = 0x1021;
  model::Nic nic;
  nic.index = static_cast<int>(machine.topology.nics.size());
  nic.id = "NIC" + std::to_string(nic.index);
  nic.name = "mlx5_" + std::to_string(nic.index);
  nic.bdf = bdf;
  nic.rdma = true;
  nic.link_layer = layer;
  machine.topology.nics.push_back(nic);
  model::RdmaPort port;
  port.device = *nic.name;
  port.bdf = bdf;
  port.state = "ACTIVE";
  port.phys_state = "LinkUp";
  port.link_layer = layer;
  port.gbits_per_s = 400;
  port.active_mtu = 4096;
  port.board_id = "MT_0838";
  machine.ports.push_back(port);
  return machine.ports.back();
}

inline PciDevice& pci(Machine& machine, const std::string& id) {
  return *std::ranges::find(machine.topology.pci, id, &PciDevice::id);
}

// Root port 0000:00:01.0, switch 0000:01:00.0 with ports 0000:02:00.0 (GPU0 0000:03:00.0) and 0000:02:01.0
// (NIC0 0000:04:00.0): one GPU and one NIC at PIX.
inline Machine gpu_and_nic_on_a_switch(const std::string& layer = "InfiniBand") {
  Machine machine = bare_metal();
  add_pci(machine, "0000:00:01.0", PciKind::bridge).root_port = true;
  add_pci(machine, "0000:01:00.0", PciKind::bridge, "0000:00:01.0").pcie_switch_port = true;
  add_pci(machine, "0000:02:00.0", PciKind::bridge, "0000:01:00.0").pcie_switch_port = true;
  add_pci(machine, "0000:02:01.0", PciKind::bridge, "0000:01:00.0").pcie_switch_port = true;
  add_gpu(machine, "0000:03:00.0", kH100, "0000:02:00.0");
  add_nic(machine, "0000:04:00.0", "0000:02:01.0", layer);
  return machine;
}

inline void state_path(Machine& machine, const std::string& a, const std::string& b, PathType type,
                       std::optional<int> links = {}) {
  model::Path path;
  path.a = a;
  path.b = b;
  path.type = type;
  path.nvlinks = links;
  machine.topology.stated.push_back(path);
}

// A matrix of n GPUs without PCI addresses.
inline Machine matrix_of(int gpus) {
  Machine machine;
  machine.topology.source = {SourceKind::nvidia_smi_topo, "topo.txt", true};
  for (int i = 0; i < gpus; ++i) {
    model::Gpu gpu;
    gpu.index = i;
    gpu.id = "GPU" + std::to_string(i);
    machine.topology.gpus.push_back(gpu);
  }
  return machine;
}

// What the rule says.
struct Said {
  bool checked = false;
  std::string why;  // of a rule that was not checked
  std::vector<model::Finding> findings;

  bool clean() const { return checked && findings.empty(); }
  bool not_evaluated() const { return !checked && !why.empty(); }
  bool one(Severity severity) const { return findings.size() == 1 && findings.front().severity == severity; }
  const std::string& subject() const { return findings.at(0).subject; }
};

inline Said said_in(const model::Diagnosis& diagnosis, const std::string& rule) {
  Said said;
  said.checked = std::ranges::find(diagnosis.checked, rule) != diagnosis.checked.end();
  for (const auto& one : diagnosis.not_checked)
    if (one.rule == rule) said.why = one.why;
  for (const auto& finding : diagnosis.findings)
    if (finding.rule == rule) said.findings.push_back(finding);
  return said;
}

inline Said says(const std::string& rule, const Machine& machine, std::string_view raw = {},
                 const std::string& nccl = {}, bool job = false) {
  Evidence evidence;
  evidence.machine = &machine;
  evidence.raw_text = raw;
  evidence.nccl_version = nccl;
  evidence.multi_node_job = job;
  return said_in(run(evidence), rule);
}

// The same about a topology file that is the input itself.
inline Said says_of_file(const std::string& rule, std::string_view xml, const std::string& nccl = {},
                         SourceKind kind = SourceKind::nccl_topo_xml) {
  Machine machine;
  machine.topology.source = {kind, "topo.xml", true};
  return says(rule, machine, xml, nccl);
}

// A live machine that names this topology file.
inline Said says_beside(const std::string& rule, Machine machine, const std::string& xml) {
  machine.topology_files.push_back({"topo.xml", xml});
  return says(rule, machine);
}

}  // namespace topotune::checks::test
