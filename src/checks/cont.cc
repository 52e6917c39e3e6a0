// Rules about containers and cgroups. Linux admin-guide/cgroup-v2.rst, statvfs(2).
#include <fmt/format.h>

#include <algorithm>

#include "checks/facts_of.h"
#include "checks/families.h"
#include "checks/readings.h"

namespace topotune::checks {
namespace {

using model::Machine;
using model::Severity;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20, kGiB = std::uint64_t{1} << 30;

// ---- CONT01

// NCCL >= 2.24 with a driver of CUDA 12.6 or newer takes host buffers from cuMem, not from /dev/shm.
bool cumem_host(const Evidence& evidence) {
  const auto version = nccl_version_of(evidence);
  const auto& cuda = evidence.machine->cuda_driver;
  return version.empty() || (version_at_least(version, "2.24") && (!cuda || version_at_least(*cuda, "12.6")));
}

// P2P between all pairs needs no shared memory.
bool all_pairs_p2p(const Evidence& evidence) {
  const auto& topology = evidence.machine->topology;
  std::size_t good = 0;
  for (const auto& path : *evidence.paths)
    if (path.type && *path.type <= model::PathType::pxb && model::find_gpu(topology, path.a) != nullptr &&
        model::find_gpu(topology, path.b) != nullptr)
      ++good;
  const auto n = topology.gpus.size();
  return n > 1 && good == n * (n - 1) / 2;
}

Outcome check_CONT01(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (!machine.container) return missing("whether this is a container", machine.container);
  if (!*machine.container) return Clean{"not a container"};
  if (!machine.shm_bytes) return missing("size of /dev/shm", machine.shm_bytes);
  if (*machine.shm_bytes >= kGiB) return Clean{};
  if (machine.topology.gpus.empty()) return NotEvaluated{"number of GPUs: not captured"};
  if (machine.topology.gpus.size() < 2) return Clean{"one GPU"};
  Judge judge("CONT01");
  auto& found = judge.found("/dev/shm", "1 GiB or more", fmt::format("{} MiB", *machine.shm_bytes / kMiB),
                            {evidence_of(machine.shm_bytes, fmt::format("{} bytes", *machine.shm_bytes)),
                             evidence_of(machine.container, "a container")});
  const bool small = *machine.shm_bytes <= 64 * kMiB;
  found.severity =
      small && !cumem_host(evidence) && !all_pairs_p2p(evidence) ? Severity::error : Severity::warn;
  return judge.outcome();
}

// ---- CONT02

Outcome check_CONT02(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (!machine.cgroup_cpus)
    return machine.cgroup_cpus.why == "not found"
               ? Outcome(Clean{"no cpuset"})
               : Outcome(missing("cpuset.cpus.effective", machine.cgroup_cpus));
  const auto nodes = nodes_with_cpus(machine.topology);
  if (nodes && *nodes < 2) return Clean{"one NUMA node"};
  Judge judge("CONT02");
  for (const auto& gpu : machine.topology.gpus) {
    if (!gpu.numa) continue;  // -1: the list is all CPUs
    if (!gpu.cpus || gpu.cpus->empty()) {
      judge.unknown(gpu.id + ": local_cpulist not read");
      continue;
    }
    if (machine.cgroup_cpus->intersects(*gpu.cpus)) continue;
    judge.found(
        gpu.id, "some of CPUs " + gpu.cpus->to_list(), "CPUs " + machine.cgroup_cpus->to_list(),
        {evidence_of(machine.cgroup_cpus, "cpuset.cpus.effective " + machine.cgroup_cpus->to_list()),
         {fmt::format("/sys/bus/pci/devices/{}/local_cpulist", gpu.bdf.value_or("?")), gpu.cpus->to_list()}});
  }
  if (machine.topology.gpus.empty()) return NotEvaluated{"no GPU in the input"};
  return judge.outcome();
}

Outcome check_CONT03(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (!machine.cpu_max) return missing("cpu.max", machine.cpu_max);
  if (machine.cpu_max->starts_with("max")) return Clean{"no CPU limit"};
  if (const auto why = no_earlier_reading(evidence)) return *why;
  if (!machine.cpu_throttled) return missing("nr_throttled of cpu.stat", machine.cpu_throttled);
  const auto events = rise(evidence.before->cpu_throttled.value, machine.cpu_throttled.value);
  if (!events) return NotEvaluated{"nr_throttled of cpu.stat: not in both readings"};
  Judge judge("CONT03");
  if (*events > 0)
    judge.found(
        "cgroup", "no throttled period",
        fmt::format("{} throttled periods {}", *events, interval_text(evidence)),
        {evidence_of(machine.cpu_max, "cpu.max " + *machine.cpu_max),
         {machine.cpu_throttled.source,
          fmt::format("nr_throttled {} -> {}", *evidence.before->cpu_throttled, *machine.cpu_throttled)}});
  return judge.outcome();
}

// ---- CONT04

bool from_the_machine(const Machine& machine) {
  const auto kind = machine.topology.source.kind;
  return kind == model::SourceKind::live || kind == model::SourceKind::capture;
}

Outcome check_CONT04(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (!machine.container) return missing("whether this is a container", machine.container);
  if (!*machine.container) return Clean{"not a container"};
  if (machine.virtual_machine.value.value_or(false))
    return Clean{"a virtual machine may have none of it on the host either"};
  if (!from_the_machine(machine)) return NotEvaluated{"sysfs of the GPUs: not captured"};
  const model::PciTree tree(machine.topology);
  Judge judge("CONT04");
  for (const auto& gpu : machine.topology.gpus) {
    if (!gpu.bdf) continue;
    const auto* device = tree.route_to(gpu).device;
    const bool hidden = device == nullptr || (!device->capable.gts && !device->capable.width);
    if (!hidden) continue;
    judge.found(gpu.id, "a readable max_link_speed", "not readable",
                {{fmt::format("/sys/bus/pci/devices/{}/max_link_speed", *gpu.bdf), "not readable"}});
  }
  return judge.outcome();
}

// ---- CONT05

Outcome check_CONT05(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (machine.ports.empty())
    return machine.rdma_read ? Outcome(Clean{"no RDMA NIC"})
                             : Outcome(missing("RDMA devices", machine.rdma_read));
  Judge judge("CONT05");
  std::string last;
  for (const auto& port : machine.ports) {
    if (port.device == last) continue;
    last = port.device;
    if (!port.uverbs) {
      judge.unknown(port.device + ": its uverbs device was not opened");
      continue;
    }
    if (*port.uverbs == "ok") continue;
    auto& found =
        judge.found(port.device, "a uverbs device that opens", *port.uverbs,
                    {{"/dev/infiniband", fmt::format("uverbs of {}: {}", port.device, *port.uverbs)}});
    if (evidence.multi_node_job) found.severity = Severity::error;
  }
  return judge.outcome();
}

// ---- CONT06

bool usable(const model::Gid& gid) {
  const bool zero = gid.address.find_first_not_of("0:") == std::string::npos;
  return !zero && !gid.address.starts_with("fe80:") &&
         (gid.type.find("v2") != std::string::npos || gid.type.find("V2") != std::string::npos);
}

Outcome check_CONT06(const Evidence& evidence) {
  constexpr int kUsualLast = 3;  // folklore's index 3
  const auto& machine = *evidence.machine;
  if (machine.ports.empty())
    return machine.rdma_read ? Outcome(Clean{"no RDMA NIC"})
                             : Outcome(missing("RDMA devices", machine.rdma_read));
  Judge judge("CONT06");
  for (const auto& port : machine.ports) {
    if (port.link_layer == "InfiniBand" || port.gids.empty()) continue;
    const auto first = std::ranges::min_element(port.gids, {}, &model::Gid::index);
    const auto good = std::ranges::find_if(port.gids, usable);
    if (first->index <= kUsualLast || good == port.gids.end()) continue;
    auto& found = judge.found(
        port.device, "entries 0 to 3",
        fmt::format("the first entry is {}, the first usable one {}", first->index, good->index),
        {{port.source.empty() ? fmt::format("/sys/class/infiniband/{}/ports/{}/gids", port.device, port.port)
                              : port.source,
          fmt::format("index {}: {} {}", good->index, good->address, good->type)}});
    if (version_at_least(nccl_version_of(evidence), "2.21")) found.severity = Severity::info;
  }
  const bool any_table = std::ranges::any_of(machine.ports, [](const model::RdmaPort& port) {
    return !port.gids.empty() || port.gids_known.value_or(false) || port.link_layer == "InfiniBand";
  });
  if (!any_table) judge.unknown("GID tables: not captured");
  return judge.outcome();
}

Outcome check_CONT07(const Evidence&) {
  return NotEvaluated{
      "host names and boot ids of the job's ranks: give the job's log, or all its containers as a fleet"};
}

constexpr Rule kContRules[] = {{"CONT01", check_CONT01}, {"CONT02", check_CONT02}, {"CONT03", check_CONT03},
                               {"CONT04", check_CONT04}, {"CONT05", check_CONT05}, {"CONT06", check_CONT06},
                               {"CONT07", check_CONT07}};

// ---- VER01, VER03

struct DriverFloor {
  std::string_view cuda_major;
  std::string_view driver;
};
// CUDA compatibility guide, minimum driver of each major release.
constexpr DriverFloor kFloors[] = {{"11", "450"}, {"12", "525"}, {"13", "580"}};

Outcome check_VER01(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (!machine.nvidia_driver) return missing("driver version", machine.nvidia_driver);
  if (!machine.cuda_runtime) return missing("CUDA runtime", machine.cuda_runtime);
  const auto major = machine.cuda_runtime->substr(0, machine.cuda_runtime->find('.'));
  const auto floor = std::ranges::find(kFloors, major, &DriverFloor::cuda_major);
  if (floor == std::end(kFloors))
    return NotEvaluated{"driver needed by CUDA " + *machine.cuda_runtime + ": not in the table"};
  if (version_at_least(*machine.nvidia_driver, floor->driver)) return Clean{};
  // A forward-compatibility package shows as a libcuda that is newer than the driver.
  if (machine.cuda_driver && version_at_least(*machine.cuda_driver, major))
    return Clean{"forward-compatibility package"};
  Judge judge("VER01");
  auto& found =
      judge.found("host", fmt::format("driver {} or newer for CUDA {}", floor->driver, *machine.cuda_runtime),
                  *machine.nvidia_driver,
                  {evidence_of(machine.nvidia_driver, *machine.nvidia_driver),
                   evidence_of(machine.cuda_runtime, *machine.cuda_runtime)});
  if (!machine.cuda_driver) found.severity = Severity::warn;  // a compatibility package may be in use
  return judge.outcome();
}

Outcome check_VER03(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  Judge judge("VER03");
  if (machine.nvml_error && machine.nvml_error->find("ersion mismatch") != std::string::npos) {
    judge.found("host", "one version", *machine.nvml_error,
                {evidence_of(machine.nvml_error, *machine.nvml_error)});
    return judge.outcome();
  }
  if (!machine.nvidia_driver)
    return machine.nvidia_driver.why == "not found"
               ? Outcome(Clean{"no NVIDIA driver"})
               : Outcome(missing("driver version", machine.nvidia_driver));
  if (!machine.nvml_library) return missing("version of libnvidia-ml", machine.nvml_library);
  if (*machine.nvml_library != *machine.nvidia_driver)
    judge.found("host", *machine.nvidia_driver, *machine.nvml_library,
                {evidence_of(machine.nvidia_driver, *machine.nvidia_driver),
                 evidence_of(machine.nvml_library, *machine.nvml_library)});
  return judge.outcome();
}

constexpr Rule kVerRules[] = {{"VER01", check_VER01}, {"VER03", check_VER03}};

}  // namespace

std::span<const Rule> cont_rules() { return kContRules; }
std::span<const Rule> ver_rules() { return kVerRules; }

}  // namespace topotune::checks
