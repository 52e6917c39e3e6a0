#include <algorithm>
#include <array>
#include <string_view>

#include "model/finding.h"
#include "model/machine.h"
#include "model/topology.h"

namespace topotune::model {

constexpr std::array kPathNames{"NVL", "XGMI", "C2C", "PIX", "PXB", "PHB", "NODE", "SYS"};
constexpr std::array kKindNames{"live",         "capture",   "nvidia-smi-topo", "nccl-topo-xml",
                                "rccl-topo-xml", "hwloc-xml", "folder",          "text"};

const char* name_of(PathType type) { return kPathNames[static_cast<std::size_t>(type)]; }
const char* name_of(SourceKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::optional<PathType> path_type_from(std::string_view name) {
  const auto found = std::ranges::find(kPathNames, name);
  if (found == kPathNames.end()) return std::nullopt;
  return static_cast<PathType>(found - kPathNames.begin());
}

std::optional<GBytesPerSec> bandwidth_of(const PcieLink& link) {
  if (!link.gts || !link.width) return std::nullopt;
  // PCIe Base Specification: 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, 242B/256B FLITs at 64 GT/s.
  const double coding = *link.gts <= 5.0 ? 8.0 / 10 : *link.gts <= 32.0 ? 128.0 / 130 : 242.0 / 256;
  return GBytesPerSec{*link.gts * *link.width * coding / 8};
}

const Gpu* find_gpu(const Topology& topology, std::string_view id) {
  const auto found = std::ranges::find(topology.gpus, id, &Gpu::id);
  return found == topology.gpus.end() ? nullptr : &*found;
}

const PciDevice* find_pci(const Topology& topology, std::string_view id) {
  const auto found = std::ranges::find(topology.pci, id, &PciDevice::id);
  return found == topology.pci.end() ? nullptr : &*found;
}

const GpuState* find_state(const Machine& machine, std::string_view gpu) {
  const auto found = std::ranges::find(machine.gpu_states, gpu, &GpuState::gpu);
  return found == machine.gpu_states.end() ? nullptr : &*found;
}

const char* name_of(Severity severity) {
  return std::array{"info", "warn", "error"}[static_cast<std::size_t>(severity)];
}

std::optional<Severity> severity_from(std::string_view name) {
  for (const auto severity : {Severity::info, Severity::warn, Severity::error})
    if (name == name_of(severity)) return severity;
  return std::nullopt;
}

const char* name_of(Verdict verdict) {
  return std::array{"ok", "info", "warn", "error", "unknown"}[static_cast<std::size_t>(verdict)];
}

Verdict verdict_of(const Diagnosis& diagnosis) {
  auto worst = Severity::info;
  for (const auto& f : diagnosis.findings) worst = std::max(worst, f.severity);
  if (worst == Severity::error) return Verdict::error;
  if (worst == Severity::warn) return Verdict::warn;
  if (diagnosis.unexplained) return Verdict::unknown;
  if (!diagnosis.findings.empty()) return Verdict::info;
  return diagnosis.checked.empty() ? Verdict::unknown : Verdict::ok;
}

}  // namespace topotune::model
