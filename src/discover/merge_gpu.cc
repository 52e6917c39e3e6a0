#include "discover/merge_gpu.h"

#include <algorithm>

#include "base/text.h"
#include "parse/nvidia_smi_nvlink.h"
#include "parse/nvidia_smi_p2p.h"
#include "parse/nvidia_smi_q.h"
#include "parse/nvidia_smi_table.h"
#include "parse/nvidia_smi_x.h"
#include "parse/rocm_smi.h"

namespace topotune::discover {
namespace {

template <class T>
void take(std::optional<T>& to, std::optional<T> from) {
  if (!to && from) to = std::move(from);
}

void merge_state(model::GpuState& to, const model::GpuState& from) {
  take(to.fabric_state, from.fabric_state);
  take(to.fabric_status, from.fabric_status);
  take(to.fabric_health_mask, from.fabric_health_mask);
  take(to.clique, from.clique);
  take(to.cluster_uuid, from.cluster_uuid);
  take(to.clock_event_reasons, from.clock_event_reasons);
  take(to.utilisation, from.utilisation);
  take(to.temperature_c, from.temperature_c);
  take(to.bar1_bytes, from.bar1_bytes);
  take(to.memory_bytes, from.memory_bytes);
  take(to.pcie_replays, from.pcie_replays);
  take(to.persistence, from.persistence);
  take(to.compute_mode, from.compute_mode);
  take(to.vbios, from.vbios);
  take(to.board_part, from.board_part);
  for (const auto& [key, value] : from.other) to.other.try_emplace(key, value);
}

model::PciDevice* pci_of(model::Topology& topology, const std::string& bdf) {
  const auto at = std::ranges::find(topology.pci, bdf, &model::PciDevice::id);
  return at == topology.pci.end() ? nullptr : &*at;
}

// The GPU's PCI function: what nvidia-smi tells of its link, before lspci and the tree add the rest.
void merge_pci(Merger& merger, const parse::SmiGpu& from, const std::string& source) {
  if (!from.bdf) return;
  auto& pci = merger.machine.topology.pci;
  auto* device = pci_of(merger.machine.topology, *from.bdf);
  const bool tells = from.current.gts || from.current.width || from.capable.gts || from.pci_device;
  if (!device && !tells) return;
  if (!device) {
    model::PciDevice added;
    added.id = *from.bdf;
    added.kind = model::PciKind::gpu;
    added.source = source;
    pci.push_back(std::move(added));
    device = &pci.back();
  }
  take(device->vendor, from.pci_vendor);
  take(device->device, from.pci_device);
  take(device->subsystem_vendor, from.subsystem_vendor);
  take(device->subsystem_device, from.subsystem_device);
  take(device->current.gts, from.current.gts);
  take(device->current.width, from.current.width);
  take(device->capable.gts, from.capable.gts);
  take(device->capable.width, from.capable.width);
}

void merge_smi_gpu(Merger& merger, const Piece& piece, const parse::SmiGpu& from, std::optional<int> index) {
  auto* gpu = merger.gpu_for({from.bdf, from.uuid, from.index ? from.index : index, from.name});
  if (!gpu) return;
  const auto source = piece.at(from.line);
  merger.set(gpu->mig, from.mig, gpu->id + " MIG mode", "an earlier text", source);
  take(gpu->pci_vendor, from.pci_vendor);
  take(gpu->pci_device, from.pci_device);
  auto& state = merger.state_of(*gpu);
  merge_state(state, from.state);
  state.other.try_emplace("source", source);
  merge_pci(merger, from, source);
  // A GPU that is passed through to the machine is one of a virtual machine; "None" is told on both sides.
  if (from.virtualization && iequals(*from.virtualization, "Pass-Through"))
    merger.set(merger.machine.virtual_machine, true, source, "virtual machine",
               "Virtualization Mode: Pass-Through");
}

std::string number_and_number(int attached, std::size_t listed) {
  return fmt::format("{} of {} GPUs are in the text", listed, attached);
}

tl::expected<void, Error> merge_smi(Merger& merger, const Piece& piece, const Result<parse::NvidiaSmi>& smi) {
  if (!smi) return tl::unexpected(smi.error());
  auto& machine = merger.machine;
  if (smi->driver)
    merger.set(machine.nvidia_driver, *smi->driver, piece.at(smi->driver_line), "NVIDIA driver version");
  if (smi->cuda)
    merger.set(machine.cuda_driver, *smi->cuda, piece.at(smi->driver_line), "CUDA version of the driver");
  if (smi->error)
    merger.set(machine.nvml_error, *smi->error, piece.at(smi->error_line), "NVML's error", *smi->error);
  if (smi->nvml)
    merger.set(machine.nvml_library, *smi->nvml, piece.at(smi->error_line), "NVML library version");
  if (smi->attached)
    merger.set(machine.nvml_gpu_count, *smi->attached, piece.at(std::max(1, smi->attached_line)),
               "number of GPUs");
  const bool whole = !smi->attached || static_cast<std::size_t>(*smi->attached) == smi->gpus.size();
  if (!whole && !smi->gpus.empty())
    merger.warn("incomplete",
                fmt::format("{}: {}", piece.name, number_and_number(*smi->attached, smi->gpus.size())));
  if (smi->truncated) merger.warn("truncated", fmt::format("{}: the text ends inside of a GPU", piece.name));
  for (std::size_t i = 0; i < smi->gpus.size(); ++i)
    merge_smi_gpu(merger, piece, smi->gpus[i], whole ? std::optional(static_cast<int>(i)) : std::nullopt);
  merger.gpus_listed |= !smi->gpus.empty();
  return {};
}

// Counts and speeds of `nvidia-smi nvlink -s`. A list that is cut off tells speeds, but no count.
void merge_status(Merger& merger, const Piece& piece, const parse::NvLinkGpu& from, model::Gpu& gpu) {
  int active = 0;
  for (const auto& [number, link] : from.links) {
    if (link.speed) gpu.link_speeds.try_emplace(number, *link.speed);
    if (link.active.value_or(false)) ++active;
    if (link.active == false && std::ranges::find(gpu.inactive_links, number) == gpu.inactive_links.end())
      gpu.inactive_links.push_back(number);
  }
  if (from.cut) {
    merger.warn("truncated",
                fmt::format("{}: the links of GPU {} are cut off", piece.at(from.line), from.index));
    return;
  }
  if (gpu.nvlinks && *gpu.nvlinks != active) {
    merger.warn("contradiction", fmt::format("{}: {} shows {} active NVLinks, another text {}",
                                             piece.at(from.line), gpu.id, active, *gpu.nvlinks));
  }
  gpu.nvlinks = active;
  if (!from.all_inactive) gpu.nvlinks_capable = static_cast<int>(from.links.size());
}

void merge_far_ends(Merger& merger, const parse::NvLinkGpu& from, const model::Gpu& gpu) {
  const auto place = static_cast<std::size_t>(&gpu - merger.machine.topology.gpus.data());
  auto& far = merger.far_ends[place];
  if (!far.ends.empty()) return;
  far.cut = from.cut;
  for (const auto& [number, link] : from.links) {
    if (link.remote_bdf || link.remote_hidden)
      far.ends.push_back({link.remote_bdf.value_or(""), link.remote_link});
  }
}

// "Replay Errors", "CRC FLIT Errors": the text as it is, and the counter under its own name.
void take_link_error(model::GpuState& state, int link, const std::string& printed, std::uint64_t count) {
  state.other[fmt::format("NVLink {} {}", link, printed)] = std::to_string(count);
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"replay", "replay"},
                                                                      {"recovery", "recovery"},
                                                                      {"crc flit", "crc_flit"},
                                                                      {"crc data", "crc_data"},
                                                                      {"crc errors", "crc_flit"}};
  for (const auto& [part, name] : kNames)
    if (icontains(printed, part)) state.nvlink_errors[link][std::string(name)] = count;
}

void merge_nvlink_gpu(Merger& merger, const Piece& piece, const parse::NvLinkGpu& from) {
  auto* gpu = merger.gpu_for(
      {{}, from.uuid, from.index, from.name.empty() ? std::nullopt : std::optional(from.name)});
  if (!gpu) return;
  if (from.mig) gpu->mig = true;
  if (from.unsupported) gpu->nvlinks = gpu->nvlinks_capable = 0;
  if (from.has_status) merge_status(merger, piece, from, *gpu);
  if (from.has_remote) merge_far_ends(merger, from, *gpu);
  for (const auto& [number, link] : from.links) {
    for (const auto& [key, count] : link.errors) take_link_error(merger.state_of(*gpu), number, key, count);
  }
  merger.state_of(*gpu).other.try_emplace("NVLink source", piece.at(from.line));
}

std::string gpu_name(Merger& merger, int index) {
  const auto* gpu = merger.gpu_by_index(index);
  return gpu ? gpu->id : fmt::format("GPU{}", index);
}

void merge_rocm_gpu(Merger& merger, const parse::RocmGpu& from) {
  auto* gpu = merger.gpu_for({from.bdf, {}, from.index, from.name});
  if (!gpu) return;
  take(gpu->numa, from.numa);
  if (!gpu->pci_vendor) gpu->pci_vendor = std::uint16_t{0x1002};
}

bool on_two_nodes(Merger& merger, const parse::RocmPair& pair) {
  const auto *a = merger.gpu_by_index(pair.from), *b = merger.gpu_by_index(pair.to);
  return a && b && a->numa && b->numa && *a->numa != *b->numa;
}

// XGMI pairs; of a PCIe pair's class the text tells only whether it lies between NUMA nodes.
void merge_rocm_pairs(Merger& merger, const parse::RocmSmi& rocm) {
  auto& topology = merger.machine.topology;
  if (!topology.stated.empty()) return;
  const bool typed =
      std::ranges::any_of(rocm.pairs, [](const parse::RocmPair& p) { return p.link.has_value(); });
  if (!typed) return;
  for (const auto& pair : rocm.pairs) {
    if (pair.from >= pair.to) continue;
    model::Path path;
    path.a = gpu_name(merger, pair.from);
    path.b = gpu_name(merger, pair.to);
    if (pair.link && *pair.link == "XGMI") path.type = model::PathType::xgmi;
    const bool pcie = pair.link && iequals(*pair.link, "PCIE");
    path.links_told = pcie;
    if (pcie && on_two_nodes(merger, pair)) path.type = model::PathType::sys;
    topology.stated.push_back(std::move(path));
  }
}

}  // namespace

tl::expected<void, Error> merge_nvidia_smi_q(Merger& merger, const Piece& piece) {
  return merge_smi(merger, piece, parse::parse_nvidia_smi_q(piece.text));
}
tl::expected<void, Error> merge_nvidia_smi_x(Merger& merger, const Piece& piece) {
  return merge_smi(merger, piece, parse::parse_nvidia_smi_x(piece.text));
}
tl::expected<void, Error> merge_nvidia_smi_table(Merger& merger, const Piece& piece) {
  return merge_smi(merger, piece, parse::parse_nvidia_smi_table(piece.text));
}

tl::expected<void, Error> merge_nvidia_smi_nvlink(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_nvidia_smi_nvlink(piece.text);
  if (!text) return tl::unexpected(text.error());
  for (const auto& gpu : text->gpus) merge_nvlink_gpu(merger, piece, gpu);
  merger.gpus_listed = true;
  return {};
}

tl::expected<void, Error> merge_nvidia_smi_p2p(Merger& merger, const Piece& piece) {
  const auto matrices = parse::parse_nvidia_smi_p2p(piece.text, piece.command);
  if (!matrices) return tl::unexpected(matrices.error());
  for (const auto& matrix : *matrices) {
    for (const int index : matrix.gpus) {
      if (!merger.gpu_for({{}, {}, index, {}})) break;
    }
    constexpr std::size_t kMaxCells = std::size_t{1} << 20;
    for (const auto& cell : matrix.cells) {
      if (merger.machine.p2p.size() >= kMaxCells) break;
      merger.machine.p2p.push_back(
          {gpu_name(merger, cell.from), gpu_name(merger, cell.to), matrix.capability, cell.status});
    }
  }
  merger.gpus_listed = true;
  return {};
}

tl::expected<void, Error> merge_rocm_smi(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_rocm_smi(piece.text);
  if (!text) return tl::unexpected(text.error());
  for (const auto& gpu : text->gpus) merge_rocm_gpu(merger, gpu);
  merge_rocm_pairs(merger, *text);
  merger.gpus_listed |= !text->gpus.empty();
  return {};
}

}  // namespace topotune::discover
