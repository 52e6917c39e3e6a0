// Rules about GPUDirect RDMA. NCCL src/transport/net_ib/gdr.cc (what it looks for), src/graph/paths.cc (when
// it uses it).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "checks/facts_of.h"
#include "checks/families.h"

namespace topotune::checks {
namespace {

using model::Machine;
using model::PathType;
using model::Severity;

bool has_peer(const Machine& machine, std::string_view name) {
  return machine.memory_peers &&
         std::ranges::find(*machine.memory_peers, name) != machine.memory_peers->end();
}

bool loaded(const Machine& machine, const std::string& module) {
  return machine.modules && machine.modules->contains(module);
}

// A module that registers GPU memory with the NIC's driver.
Tell peer_memory(const Machine& machine) {
  if (machine.peermem || loaded(machine, "nvidia_peermem") || has_peer(machine, "nv_mem") ||
      has_peer(machine, "nv_mem_nc"))
    return Tell::yes;
  const bool read = machine.peermem.why == "not found" || machine.modules.known();
  return read ? Tell::no : Tell::unknown;
}

// DMA-BUF: what a probe says, else what the kernel, CUDA and the driver's kind allow.
Tell dma_buf(const Machine& machine) {
  if (machine.dmabuf) return *machine.dmabuf ? Tell::yes : Tell::no;
  const bool old_kernel = machine.kernel && !version_at_least(*machine.kernel, "5.12");
  const bool old_cuda = machine.cuda_driver && !version_at_least(*machine.cuda_driver, "11.7");
  const bool closed = machine.nvidia_open_kernel_module && !*machine.nvidia_open_kernel_module;
  return old_kernel || old_cuda || closed ? Tell::no : Tell::unknown;
}

bool efa(const model::PciDevice& device) {
  constexpr std::uint16_t kAmazon = 0x1d0f, kFirst = 0xefa0, kLast = 0xefaf;
  return device.vendor == kAmazon && device.device && *device.device >= kFirst && *device.device <= kLast;
}

// Whether any GPU can do GPUDirect RDMA with NVIDIA's module or DMA-BUF.
Tell any_capable_gpu(const Machine& machine) {
  auto out = Tell::no;
  for (const auto& gpu : machine.topology.gpus) {
    const auto* known = known_gpu(gpu);
    if (gpu.gdr.value_or(known != nullptr && known->gdr && known->data_centre)) return Tell::yes;
    if (!gpu.gdr && known == nullptr && is_nvidia(gpu)) out = Tell::unknown;
  }
  return out;
}

std::vector<const model::Nic*> nics_in_use(const Machine& machine, const Rails& rails) {
  const model::PciTree tree(machine.topology);
  std::vector<const model::Nic*> out;
  for (const auto* nic : rails.nics) {
    const auto* device = tree.route_to(*nic).device;
    if (device != nullptr && efa(*device)) continue;  // its own path
    const auto* port = port_of(machine, *nic);
    if (port == nullptr || port->state.value_or("ACTIVE") == "ACTIVE") out.push_back(nic);
  }
  return out;
}

std::vector<model::Evidence> looked_for(const Machine& machine) {
  std::vector<model::Evidence> out{
      {"/sys/module/nvidia_peermem/version", machine.peermem ? *machine.peermem : machine.peermem.why}};
  out.push_back({"/sys/kernel/mm/memory_peers", machine.memory_peers
                                                    ? fmt::format("{}", fmt::join(*machine.memory_peers, " "))
                                                    : machine.memory_peers.why});
  out.push_back({"DMA-BUF", machine.dmabuf ? (*machine.dmabuf ? "works" : "does not work") : "not probed"});
  if (machine.nvidia_open_kernel_module)
    out.push_back({machine.nvidia_open_kernel_module.source,
                   *machine.nvidia_open_kernel_module ? "open kernel modules" : "closed kernel modules"});
  return out;
}

// ---- GDR01

Outcome check_GDR01(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (machine.topology.gpus.empty()) return NotEvaluated{"no GPU in the input"};
  if (!machine.rdma_read && machine.ports.empty()) return missing("RDMA devices", machine.rdma_read);
  const auto rails = rails_of(evidence);
  const auto active = nics_in_use(machine, rails);
  const auto capable = any_capable_gpu(machine);
  const auto module = peer_memory(machine);
  const auto buffer = dma_buf(machine);
  if (module == Tell::yes || buffer == Tell::yes) return Clean{};
  if (capable == Tell::no) return Clean{"no GPU that is known to do GPUDirect RDMA"};
  if (active.empty())
    return rails.unknown.empty() ? Outcome(Clean{"no active rail NIC"})
                                 : Outcome(NotEvaluated{rails.unknown});
  if (capable == Tell::unknown) return NotEvaluated{"model of the GPUs: not captured, or not known"};
  if (module == Tell::unknown) return NotEvaluated{"nvidia-peermem: " + machine.peermem.why};
  Judge judge("GDR01");
  std::vector<std::string> names;
  for (const auto* nic : active) names.push_back(name_of(*nic));
  auto& found =
      judge.found("host", "nvidia-peermem loaded, or working DMA-BUF", "neither", looked_for(machine));
  found.evidence.push_back({"rails", fmt::format("{}", fmt::join(names, " "))});
  if (buffer == Tell::unknown) {
    found.severity = Severity::warn;
    found.expected += " (DMA-BUF was not probed)";
  } else if (!rails.by_path) {
    found.severity = may_hide_paths(machine) ? Severity::warn : Severity::info;
  }
  return judge.outcome();
}

// ---- GDR02

Outcome check_GDR02(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  const bool module = machine.peermem.known() || loaded(machine, "nvidia_peermem");
  if (!module && (machine.modules.known() || machine.peermem.why == "not found"))
    return Clean{"nvidia-peermem is not loaded"};
  if (!module) return missing("nvidia-peermem", machine.peermem);
  if (has_peer(machine, "nv_mem") || has_peer(machine, "nv_mem_nc")) return Clean{};
  const bool no_directory = !machine.memory_peers.known();
  if (no_directory && machine.memory_peers.why != "not found")
    return missing("memory_peers", machine.memory_peers);
  const auto buffer = dma_buf(machine);
  if (buffer == Tell::yes) return Clean{"DMA-BUF works"};
  // Inbox RDMA stacks have no such directory; only a registration tells there.
  if (no_directory)
    return NotEvaluated{"no memory_peers directory: whether memory can be registered was not probed"};
  Judge judge("GDR02");
  auto& found = judge.found("host", "an entry in /sys/kernel/mm/memory_peers", "none", looked_for(machine));
  if (buffer == Tell::unknown) found.severity = Severity::info;
  return judge.outcome();
}

// ---- GDR03

bool recognised_by(const Machine& machine, const std::string& nccl) {
  if (has_peer(machine, "nv_mem")) return true;
  if (version_at_least(nccl, "2.22")) return has_peer(machine, "nv_mem_nc");
  return version_at_least(nccl, "2.10") && has_peer(machine, "nvidia-peermem");
}

Outcome check_GDR03(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  const auto nccl = nccl_version_of(evidence);
  const bool module = machine.peermem.known() || loaded(machine, "nvidia_peermem");
  if (!module && (machine.modules.known() || machine.peermem.why == "not found"))
    return Clean{"nvidia-peermem is not loaded"};
  if (!module) return missing("nvidia-peermem", machine.peermem);
  if (nccl.empty()) return NotEvaluated{"NCCL version: " + machine.nccl.why};
  if (version_at_least(nccl, "2.22.4")) return Clean{"this NCCL recognises the module"};
  if (!machine.memory_peers && machine.memory_peers.why != "not found")
    return missing("memory_peers", machine.memory_peers);
  const auto buffer = dma_buf(machine);
  if (recognised_by(machine, nccl) || buffer == Tell::yes) return Clean{};
  if (buffer == Tell::unknown && version_at_least(nccl, "2.13"))
    return NotEvaluated{"whether DMA-BUF works was not probed"};
  Judge judge("GDR03");
  auto lines = looked_for(machine);
  lines.push_back({"NCCL", nccl});
  judge.found("host", "memory_peers/nv_mem, or NCCL 2.23.4", "NCCL " + nccl, std::move(lines));
  return judge.outcome();
}

// ---- GDR04

struct Nearest {
  std::string nic;
  PathType type = PathType::sys;
};

std::optional<Nearest> nearest_nic(const Evidence& evidence, const std::string& gpu) {
  for (const auto& group : model::pairs_of(evidence.machine->topology, *evidence.paths))
    if (group.gpu == gpu && !group.nics.empty()) return Nearest{group.nics.front(), group.type};
  return std::nullopt;
}

bool near(const Nearest& nearest) { return nearest.type <= PathType::pxb; }

bool on_nvlink(const Evidence& evidence, const std::string& gpu) {
  return std::ranges::any_of(*evidence.paths, [&](const model::Path& path) {
    return (path.a == gpu || path.b == gpu) && path.type == PathType::nvl;
  });
}

// Every NIC of this GPU has a known path: a cut matrix does not prove that a GPU has none near.
bool all_nics_known(const Evidence& evidence, const std::string& gpu) {
  std::size_t known = 0;
  for (const auto& path : *evidence.paths) {
    const bool of_gpu = path.a == gpu || path.b == gpu;
    const auto& other = path.a == gpu ? path.b : path.a;
    if (of_gpu && path.type && model::find_gpu(evidence.machine->topology, other) == nullptr) ++known;
  }
  const auto physical = std::ranges::count_if(evidence.machine->topology.nics,
                                              [](const model::Nic& nic) { return !nic.is_virtual; });
  return known >= static_cast<std::size_t>(physical);
}

Outcome check_GDR04(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (machine.topology.gpus.empty()) return NotEvaluated{"no GPU in the input"};
  if (machine.topology.nics.empty())
    return machine.rdma_read || machine.topology.source.complete
               ? Outcome(Clean{"no NIC"})
               : Outcome(NotEvaluated{"NICs: not captured"});
  const auto rails = rails_of(evidence);
  if (evidence.paths->empty()) return NotEvaluated{"paths between GPUs and NICs: not captured"};
  if (!rails.by_path) {
    const auto unknown = std::ranges::find_if_not(
        machine.topology.gpus, [&](const model::Gpu& gpu) { return all_nics_known(evidence, gpu.id); });
    return unknown == machine.topology.gpus.end()
               ? Outcome(Clean{"no GPU has a NIC near it"})
               : Outcome(NotEvaluated{unknown->id + ": not every path to a NIC is known"});
  }
  Judge judge("GDR04");
  for (const auto& gpu : machine.topology.gpus) {
    const auto nearest = nearest_nic(evidence, gpu.id);
    if (nearest && near(*nearest)) continue;
    if (!nearest || !all_nics_known(evidence, gpu.id)) {
      judge.unknown(gpu.id + ": not every path to a NIC is known");
      continue;
    }
    if (gpu.c2c && nearest->type <= PathType::node) continue;  // P2C
    auto& found = judge.found(gpu.id, "a rail NIC at PIX or PXB, as other GPUs have",
                              fmt::format("{} at {}", nearest->nic, name_of(nearest->type)),
                              {{machine.topology.source.name,
                                fmt::format("{} to {}: {}", gpu.id, nearest->nic, name_of(nearest->type))}});
    if (on_nvlink(evidence, gpu.id)) {
      found.severity = Severity::info;
      found.expected += " (PXN can relay over NVLink)";
    }
  }
  return judge.outcome();
}

// ---- GDR07

Outcome check_GDR07(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (!machine.modules) return missing("loaded modules", machine.modules);
  if (!loaded(machine, "nv_peer_mem")) return Clean{};
  if (!machine.nvidia_driver) return missing("driver version", machine.nvidia_driver);
  if (!version_at_least(*machine.nvidia_driver, "470")) return Clean{"the driver ships no nvidia-peermem"};
  Judge judge("GDR07");
  judge.found(
      "host", "nvidia-peermem", "nv_peer_mem with driver " + *machine.nvidia_driver,
      {{machine.modules.source, "nv_peer_mem"}, evidence_of(machine.nvidia_driver, *machine.nvidia_driver)});
  return judge.outcome();
}

constexpr Rule kRules[] = {{"GDR01", check_GDR01},
                           {"GDR02", check_GDR02},
                           {"GDR03", check_GDR03},
                           {"GDR04", check_GDR04},
                           {"GDR07", check_GDR07}};

}  // namespace

std::span<const Rule> gdr_rules() { return kRules; }

}  // namespace topotune::checks
