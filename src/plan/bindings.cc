// Which CPUs, memory node and NICs belong to a GPU. Linux: numa_node and local_cpulist of the PCI function,
// the cpuset of the cgroup; NCCL keeps its proxy threads inside the CPUs of the process
// (NCCL_IGNORE_CPU_AFFINITY=0).
#include "plan/bindings.h"

#include <algorithm>
#include <limits>
#include <map>

#include "model/paths.h"

namespace topotune::plan {

namespace {

using model::Binding;
using model::Gpu;
using model::NumaNode;
using model::Topology;

// The main thread and NCCL's proxy threads of a rank (one progress thread and one service thread a
// communicator).
constexpr int kRankThreads = 3;
constexpr int kMaxWorkers = 16;

const NumaNode* node_of(const Topology& topology, std::optional<int> id) {
  const auto at = std::ranges::find_if(topology.numa, [&](const NumaNode& node) { return node.id == id; });
  return at == topology.numa.end() ? nullptr : &*at;
}

// The node whose CPUs hold all of the GPU's; nothing when none or several do.
const NumaNode* node_around(const Topology& topology, const CpuSet& cpus) {
  for (const auto& node : topology.numa)
    if (node.cpus && !cpus.empty() && cpus.is_subset_of(*node.cpus)) return &node;
  return nullptr;
}

// A GPU's node, from the GPU, from its CPUs, or because there is only one.
const NumaNode* home_of(const Topology& topology, const Gpu& gpu) {
  if (const auto* node = node_of(topology, gpu.numa)) return node;
  if (gpu.cpus)
    if (const auto* node = node_around(topology, *gpu.cpus)) return node;
  return topology.numa.size() == 1 ? &topology.numa.front() : nullptr;
}

// CPUs near the GPU before any limit: its node's, else what the input prints for it.
std::optional<CpuSet> near_cpus(const Gpu& gpu, const NumaNode* home) {
  if (home != nullptr && home->cpus && !home->cpus->empty()) return home->cpus;
  if (gpu.cpus && !gpu.cpus->empty()) return gpu.cpus;
  return std::nullopt;
}

// Of the nodes with usable CPUs, those at the smallest distance from `home`.
std::optional<CpuSet> nearest_usable(const Topology& topology, const NumaNode* home, const CpuSet& usable) {
  int best = std::numeric_limits<int>::max();
  std::optional<CpuSet> out;
  for (const auto& node : topology.numa) {
    if (!node.cpus || !node.cpus->intersects(usable)) continue;
    const auto at = home == nullptr ? node.distances.end() : node.distances.find(home->id);
    const int distance = at == node.distances.end() ? 255 : at->second;
    if (distance < best) out = CpuSet{};
    if (distance <= best) out = *out | (*node.cpus & usable);
    best = std::min(best, distance);
  }
  return out;
}

Error excluded(const Gpu& gpu, const NumaNode* home, const CpuSet& near, const CpuSet& usable) {
  const std::string node = home == nullptr ? "" : fmt::format(" of its node {}", home->id);
  return Error{
      Errc::unsupported,
      fmt::format("{}: the CPUs {}{} are outside the cpuset {}", gpu.id, near.to_list(), node,
                  usable.to_list()),
      {},
      {},
      {},
      "ask the scheduler for CPUs of that node, or take --any-cpus for the nearest ones that are left"};
}

std::string said_cpus(const Gpu& gpu, const NumaNode* home) {
  if (home != nullptr && home->cpus && !home->cpus->empty()) return fmt::format("CPUs of node {}", home->id);
  return gpu.cpus ? "CPUs that the input prints for the GPU" : "";
}

// A matrix whose CPU columns are altered or cut by a cpuset (TOPO17, TOPO18) tells nothing about the
// machine's CPUs.
const model::Finding* against_columns(const Situation& situation) {
  if (situation.diagnosis == nullptr ||
      situation.machine->topology.source.kind != model::SourceKind::nvidia_smi_topo)
    return nullptr;
  for (const auto& finding : situation.diagnosis->findings)
    if (finding.rule == "TOPO17" || finding.rule == "TOPO18") return &finding;
  return nullptr;
}

Result<Binding> bind_one(const Situation& situation, const Gpu& gpu, const std::optional<CpuSet>& usable,
                         const CpuSet& reserved) {
  const auto& topology = situation.machine->topology;
  const auto* home = home_of(topology, gpu);
  Binding out;
  out.gpu = gpu.id;
  out.bdf = gpu.bdf;
  if (const auto* finding = against_columns(situation)) {
    out.why = fmt::format("the CPU columns of this matrix cannot be used ({})", finding->rule);
    return out;
  }
  const auto near = near_cpus(gpu, home);
  if (!near) {
    out.cpus = usable.value_or(CpuSet{});
    out.why = "which CPUs are near this GPU is not known: all are left to it";
    return out;
  }
  out.why = said_cpus(gpu, home);
  out.cpus = usable ? *near & *usable : *near;
  if (home != nullptr) out.memory_node = home->id;
  if (out.cpus.empty()) {
    const auto instead = situation.any_cpus ? nearest_usable(topology, home, *usable) : std::nullopt;
    if (!instead || instead->empty()) return tl::unexpected(excluded(gpu, home, *near, *usable));
    out.cpus = *instead;
    out.why =
        fmt::format("the cpuset {} excludes its own node: nearest CPUs that are left", usable->to_list());
  } else if (!(out.cpus == *near)) {
    out.why += fmt::format(" inside the cpuset {}", usable->to_list());
  }
  if (const auto rest = out.cpus - reserved; !rest.empty() && !(rest == out.cpus)) {
    out.cpus = rest;
    out.why += fmt::format(", without {} (interrupts of NICs)", reserved.to_list());
  }
  return out;
}

void add_nics(const Situation& situation, std::vector<Binding>& bindings) {
  const auto& topology = situation.machine->topology;
  std::map<std::string, std::string> names;
  for (const auto& nic : topology.nics) names[nic.id] = nic.name.value_or(nic.id);
  const auto pairs = model::pairs_of(topology, *situation.paths);
  for (auto& binding : bindings) {
    const auto at = std::ranges::find(pairs, binding.gpu, &model::GpuNics::gpu);
    if (at == pairs.end()) continue;
    binding.nics = at->nics;
    for (const auto& nic : at->nics) binding.nic_names.push_back(names[nic]);
  }
}

// Loader processes for `threads` hardware threads: one a core beside the rank's own threads.
int workers_for(std::size_t cores, const std::optional<int>& asked) {
  const int room = std::clamp(static_cast<int>(cores) - kRankThreads, 0, kMaxWorkers);
  return asked ? std::min(*asked, std::max(room, 1)) : room;
}

// Cores for which the facts give no answer: Linux numbers the first threads of all cores, then the second
// ones, so that a list of equally long ranges pairs them in order. Of one range each CPU counts; of others
// nothing is known.
std::vector<CpuSet> cores_by_ranges(const CpuSet& cpus) {
  std::vector<std::vector<int>> ranges;
  for (const int cpu : cpus.to_vector()) {
    if (ranges.empty() || ranges.back().back() + 1 != cpu) ranges.emplace_back();
    ranges.back().push_back(cpu);
  }
  std::vector<CpuSet> out;
  if (ranges.empty()) return out;
  for (const auto& range : ranges)
    if (range.size() != ranges.front().size()) return out;
  for (std::size_t i = 0; i < ranges.front().size(); ++i) {
    CpuSet core;
    for (const auto& range : ranges) core.add(range[i]);
    out.push_back(std::move(core));
  }
  return out;
}

// GPUs with the same CPUs divide the whole cores among them, in their order; the first ones get the odd
// cores.
void divide(const Topology& topology, const Job& job, std::vector<Binding>& bindings) {
  std::map<std::string, std::vector<Binding*>> groups;
  for (auto& binding : bindings)
    if (!binding.cpus.empty()) groups[binding.cpus.to_list()].push_back(&binding);
  for (auto& [cpus, members] : groups) {
    const auto cores = cores_in(topology, members.front()->cpus);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t from = cores.size() * i / members.size(),
                        to = cores.size() * (i + 1) / members.size();
      CpuSet share;
      for (std::size_t core = from; core < to; ++core) share = share | cores[core];
      members[i]->workers = workers_for(to - from, job.workers);
      members[i]->share = members.size() == 1 ? members[i]->cpus : share;
      if (cores.empty())
        members[i]->why += "; which CPUs are threads of one core is not known: no share of its own";
      if (job.binding == BindingPolicy::share && !share.empty()) members[i]->cpus = share;
    }
  }
}

}  // namespace

std::optional<CpuSet> usable_cpus(const model::Machine& machine) {
  std::optional<CpuSet> out;
  if (machine.cgroup_cpus && !machine.cgroup_cpus->empty())
    out = *machine.cgroup_cpus;
  else if (machine.allowed_cpus && !machine.allowed_cpus->empty())
    out = *machine.allowed_cpus;
  if (machine.online_cpus && !machine.online_cpus->empty())
    out = out ? *out & *machine.online_cpus : *machine.online_cpus;
  return out;
}

std::vector<CpuSet> cores_in(const model::Topology& topology, const CpuSet& cpus) {
  std::vector<CpuSet> out;
  CpuSet covered;
  for (const auto& core : topology.cores) {
    auto part = core & cpus;
    if (part.empty()) continue;
    covered = covered | part;
    out.push_back(std::move(part));
  }
  for (auto& core : cores_by_ranges(cpus - covered)) out.push_back(std::move(core));
  std::ranges::stable_sort(out, {}, [](const CpuSet& set) { return set.to_vector().front(); });
  return out;
}

Result<std::vector<Binding>> bindings_of(const Situation& situation, const CpuSet& reserved) {
  const auto& topology = situation.machine->topology;
  const auto usable = usable_cpus(*situation.machine);
  std::vector<const Gpu*> gpus;
  for (const auto& gpu : topology.gpus) gpus.push_back(&gpu);
  std::ranges::stable_sort(gpus, {}, [](const Gpu* gpu) { return gpu->index; });
  std::vector<Binding> out;
  for (const auto* gpu : gpus) {
    auto binding = bind_one(situation, *gpu, usable, reserved);
    if (!binding) return tl::unexpected(binding.error());
    out.push_back(std::move(*binding));
  }
  add_nics(situation, out);
  divide(topology, situation.job, out);
  return out;
}

}  // namespace topotune::plan
