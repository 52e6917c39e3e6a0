#include "discover/merger.h"

#include <algorithm>

namespace topotune::discover {

void Merger::start_from(model::Topology base) {
  machine.topology = std::move(base);
  for (std::size_t i = 0; i < machine.topology.gpus.size(); ++i) index_gpu(i);
  for (std::size_t i = 0; i < machine.topology.numa.size(); ++i)
    numa_.emplace(machine.topology.numa[i].id, i);
}

void Merger::index_gpu(std::size_t place) {
  const auto& gpu = machine.topology.gpus[place];
  if (gpu.bdf) by_bdf_.try_emplace(*gpu.bdf, place);
  if (gpu.uuid) by_uuid_.try_emplace(*gpu.uuid, place);
  by_index_.try_emplace(gpu.index, place);
  next_index_ = std::max(next_index_, gpu.index + 1);
}

// The index alone joins only what nothing else tells apart.
bool Merger::fits(const model::Gpu& gpu, const GpuRef& ref) const {
  if (gpu.bdf && ref.bdf && *gpu.bdf != *ref.bdf) return false;
  return !(gpu.uuid && ref.uuid && *gpu.uuid != *ref.uuid);
}

std::optional<std::size_t> Merger::find_gpu(const GpuRef& ref) const {
  if (ref.bdf) {
    if (const auto at = by_bdf_.find(*ref.bdf); at != by_bdf_.end()) return at->second;
  }
  if (ref.uuid) {
    if (const auto at = by_uuid_.find(*ref.uuid); at != by_uuid_.end()) return at->second;
  }
  if (ref.index) {
    const auto at = by_index_.find(*ref.index);
    if (at != by_index_.end() && fits(machine.topology.gpus[at->second], ref)) return at->second;
  }
  return std::nullopt;
}

void Merger::fill(model::Gpu& gpu, const GpuRef& ref) {
  if (!gpu.bdf) gpu.bdf = ref.bdf;
  if (!gpu.uuid) gpu.uuid = ref.uuid;
  if (!gpu.name) gpu.name = ref.name;
}

model::Gpu* Merger::gpu_for(const GpuRef& ref) {
  auto& gpus = machine.topology.gpus;
  if (const auto found = find_gpu(ref)) {
    fill(gpus[*found], ref);
    index_gpu(*found);
    return &gpus[*found];
  }
  if (gpus.size() >= kMaxGpus) return say_too_many("GPUs"), nullptr;
  model::Gpu added;
  const bool free = ref.index && !by_index_.contains(*ref.index) && *ref.index < 1'000'000;
  added.index = free ? *ref.index : next_index_;
  added.id = fmt::format("GPU{}", added.index);
  gpus.push_back(std::move(added));
  fill(gpus.back(), ref);
  index_gpu(gpus.size() - 1);
  return &gpus.back();
}

model::Gpu* Merger::gpu_by_index(int index) {
  const auto at = by_index_.find(index);
  return at == by_index_.end() ? nullptr : &machine.topology.gpus[at->second];
}

model::GpuState& Merger::state_of(const model::Gpu& gpu) {
  const auto [at, fresh] = states_.try_emplace(gpu.id, machine.gpu_states.size());
  if (fresh) {
    machine.gpu_states.emplace_back();
    machine.gpu_states.back().gpu = gpu.id;
  }
  return machine.gpu_states[at->second];
}

model::RdmaPort* Merger::port_for(const std::string& device, int port) {
  const auto key = fmt::format("{}/{}", device, port);
  if (const auto at = ports_.find(key); at != ports_.end()) return &machine.ports[at->second];
  if (machine.ports.size() >= kMaxGpus) return say_too_many("RDMA ports"), nullptr;
  ports_.emplace(key, machine.ports.size());
  machine.ports.emplace_back();
  machine.ports.back().device = device;
  machine.ports.back().port = port;
  return &machine.ports.back();
}

model::NumaNode* Merger::numa_node(int id) {
  auto& nodes = machine.topology.numa;
  if (const auto at = numa_.find(id); at != numa_.end()) return &nodes[at->second];
  if (nodes.size() >= kMaxGpus) return say_too_many("NUMA nodes"), nullptr;
  numa_.emplace(id, nodes.size());
  nodes.emplace_back();
  nodes.back().id = id;
  return &nodes.back();
}

void Merger::warn(std::string code, std::string text) {
  constexpr std::size_t kMaxDiagnostics = 1000;  // what follows would not be read
  if (machine.diagnostics.size() < kMaxDiagnostics)
    machine.diagnostics.push_back({std::move(code), std::move(text), {}});
}

void Merger::say_too_many(std::string_view what) {
  if (too_many_said_) return;
  too_many_said_ = true;
  warn("too-many", fmt::format("more than {} {}: the rest is left out", kMaxGpus, what));
}

void Merger::contradiction(std::string_view what, std::string_view before, std::string_view now) {
  warn("contradiction", fmt::format("{}: {} and {} disagree; the first is taken", what, before, now));
}

void Merger::finish() {
  finish_pci(*this);
  finish_nics(*this);
  finish_nvlinks(*this);
  finish_numa(*this);
}

}  // namespace topotune::discover
