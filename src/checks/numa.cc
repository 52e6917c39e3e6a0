// Rules about NUMA nodes and binding. Linux Documentation/ABI/testing/sysfs-bus-pci, ACPI SLIT.
#include <fmt/format.h>

#include <algorithm>

#include "checks/facts_of.h"
#include "checks/families.h"

namespace topotune::checks {
namespace {

using model::Machine;

constexpr int kLocalDistance = 10;  // ACPI: a node to itself

// CPUs near a GPU, where they tell anything: not when the node is unknown and the list is all CPUs.
const CpuSet* local_cpus(const Machine& machine, const model::Gpu& gpu) {
  if (!gpu.cpus || gpu.cpus->empty()) return nullptr;
  const auto& online = machine.online_cpus;
  if (!gpu.numa && online && *online == *gpu.cpus) return nullptr;
  return &*gpu.cpus;
}

bool near_a_nic(const Machine& machine, const CpuSet& allowed) {
  const model::PciTree tree(machine.topology);
  return std::ranges::any_of(machine.topology.nics, [&](const model::Nic& nic) {
    const auto* device = tree.route_to(nic).device;
    return is_rdma_hardware(nic) && device != nullptr && device->local_cpus &&
           device->local_cpus->intersects(allowed);
  });
}

Outcome check_NUMA02(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (!machine.gpu_processes) return missing("processes on the GPUs", machine.gpu_processes);
  Judge judge("NUMA02");
  for (const auto& process : *machine.gpu_processes) {
    const auto* gpu = model::find_gpu(machine.topology, process.gpu);
    const auto* local = gpu == nullptr ? nullptr : local_cpus(machine, *gpu);
    if (local == nullptr) continue;
    if (!process.allowed) {
      judge.unknown(fmt::format("process {}: its CPU list was not read", process.pid));
      continue;
    }
    const bool cgroup_has_none = machine.cgroup_cpus && !machine.cgroup_cpus->intersects(*local);  // CONT02
    if (cgroup_has_none || process.allowed->intersects(*local) || near_a_nic(machine, *process.allowed))
      continue;
    judge.found(
        fmt::format("{} pid {}", gpu->id, process.pid), "some of CPUs " + local->to_list(),
        "CPUs " + process.allowed->to_list(),
        {{fmt::format("/proc/{}/status", process.pid), "Cpus_allowed_list: " + process.allowed->to_list()},
         {fmt::format("/sys/bus/pci/devices/{}/local_cpulist", gpu->bdf.value_or("?")), local->to_list()}});
  }
  return judge.outcome(machine.gpu_processes->empty() ? "no process on a GPU" : "");
}

Outcome check_NUMA06(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  const auto nodes = nodes_with_cpus(machine.topology);
  if (nodes && *nodes < 2) return Clean{"one NUMA node"};
  const auto& balancing = machine.numa_balancing;
  if (!balancing)
    return balancing.why == "not found" ? Outcome(Clean{"no automatic NUMA balancing in this kernel"})
                                        : Outcome(missing("kernel.numa_balancing", balancing));
  if (*balancing == 0) return Clean{};
  if (!nodes) return NotEvaluated{"the machine's NUMA nodes were not read"};
  Judge judge("NUMA06");
  judge.found("host", "0", fmt::format("{}", *balancing),
              {evidence_of(balancing, fmt::format("kernel.numa_balancing = {}", *balancing)),
               {"/sys/devices/system/node", fmt::format("{} nodes with CPUs", *nodes)}});
  return judge.outcome();
}

// A device whose node the kernel does not know, on a machine that has several.
Outcome check_NUMA07(const Evidence& evidence) {
  const auto& topology = evidence.machine->topology;
  const auto nodes = nodes_with_cpus(topology);
  const auto kind = topology.source.kind;
  if (nodes && *nodes < 2) return Clean{"one NUMA node"};
  if (kind != model::SourceKind::live && kind != model::SourceKind::capture)
    return NotEvaluated{"numa_node of the devices: not captured"};
  if (!nodes) return NotEvaluated{"the machine's NUMA nodes were not read"};
  Judge judge("NUMA07");
  for (const auto& device : topology.pci) {
    const bool counts =
        device.kind == model::PciKind::gpu || std::ranges::any_of(topology.nics, [&](const model::Nic& nic) {
          return is_rdma_hardware(nic) && nic.bdf == device.id;
        });
    if (!counts || device.numa) continue;
    judge.found(name_of_device(topology, device), fmt::format("one of {} nodes", *nodes), "-1",
                {{fmt::format("/sys/bus/pci/devices/{}/numa_node", device.id), "-1"},
                 {fmt::format("/sys/bus/pci/devices/{}/local_cpulist", device.id),
                  device.local_cpus ? device.local_cpus->to_list() : "unknown"}});
  }
  return judge.outcome();
}

Outcome check_NUMA08(const Evidence& evidence) {
  const auto& nodes = evidence.machine->topology.numa;
  if (nodes.empty()) return NotEvaluated{"the machine's NUMA nodes were not read"};
  if (nodes.size() == 1 && nodes_with_cpus(evidence.machine->topology)) return Clean{"one NUMA node"};
  if (std::ranges::all_of(nodes, [](const auto& node) { return node.distances.empty(); }))
    return NotEvaluated{"node distances: not captured"};
  Judge judge("NUMA08");
  const auto has_cpus = [&](int id) {
    const auto node = std::ranges::find(nodes, id, &model::NumaNode::id);
    return node == nodes.end() || !node->cpus || !node->cpus->empty();
  };
  for (const auto& node : nodes)
    for (const auto& [to, distance] : node.distances) {
      if (to == node.id || distance > kLocalDistance || !has_cpus(node.id) || !has_cpus(to)) continue;
      judge.found(fmt::format("node {} to node {}", node.id, to), "more than 10", fmt::format("{}", distance),
                  {{fmt::format("/sys/devices/system/node/node{}/distance", node.id),
                    fmt::format("{} to node {}", distance, to)}});
    }
  return judge.outcome();
}

// A node that lies in two packages while one of these packages lies in two nodes: cells that cut through
// sockets.
Outcome check_NUMA10(const Evidence& evidence) {
  const auto& topology = evidence.machine->topology;
  if (topology.numa.empty()) return NotEvaluated{"the machine's NUMA nodes were not read"};
  if (topology.packages.empty()) return NotEvaluated{"physical_package_id of the CPUs: not captured"};
  Judge judge("NUMA10");
  for (const auto& node : topology.numa) {
    if (!node.cpus || node.cpus->empty()) continue;
    std::vector<const model::Package*> cut;
    for (const auto& package : topology.packages)
      if (package.cpus.intersects(*node.cpus)) cut.push_back(&package);
    const bool spills = std::ranges::any_of(
        cut, [&](const model::Package* package) { return !package->cpus.is_subset_of(*node.cpus); });
    if (cut.size() < 2 || !spills) continue;
    std::vector<model::Evidence> lines{
        {fmt::format("/sys/devices/system/node/node{}/cpulist", node.id), node.cpus->to_list()}};
    for (const auto* package : cut)
      lines.push_back(
          {"physical_package_id", fmt::format("package {}: CPUs {}", package->id, package->cpus.to_list())});
    judge.found(fmt::format("node {}", node.id), "CPUs of one socket",
                fmt::format("CPUs of {} sockets", cut.size()), std::move(lines));
  }
  return judge.outcome();
}

constexpr Rule kRules[] = {{"NUMA02", check_NUMA02},
                           {"NUMA06", check_NUMA06},
                           {"NUMA07", check_NUMA07},
                           {"NUMA08", check_NUMA08},
                           {"NUMA10", check_NUMA10}};

}  // namespace

std::span<const Rule> numa_rules() { return kRules; }

}  // namespace topotune::checks
