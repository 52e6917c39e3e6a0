#include "lint/machine.h"

#include <algorithm>

#include "checks/facts_of.h"
#include "checks/known_gpus.h"

namespace topotune::lint {

namespace {

// The links of its model are on the carrier board, and nobody has counted others.
bool has_links(const model::Machine& machine, const model::Gpu& gpu) {
  if (gpu.nvlinks) return *gpu.nvlinks > 0;
  if (!gpu.links.empty()) return true;
  const auto* known = checks::known_gpu(gpu);
  return known != nullptr && known->wiring == checks::Wiring::board && known->nvlinks.value_or(0) > 0 &&
         !machine.nvlink_disabled.value.value_or(false);
}

// Whether GPUs reach each other by NVLink, xGMI, or P2P below a switch.
std::optional<bool> peers_of(const model::Machine& machine, const std::vector<model::Path>& paths) {
  const auto& gpus = machine.topology.gpus;
  if (gpus.empty()) return std::nullopt;
  if (gpus.size() == 1) return false;
  const auto allowed = [&](std::string_view a, std::string_view b) {
    return std::ranges::any_of(machine.p2p, [&](const model::P2pStatus& one) {
      return one.from == a && one.to == b && one.status == "OK" &&
             (one.capability == "read" || one.capability == "write");
    });
  };
  const auto is_gpu = [&](const std::string& id) {
    return std::ranges::find(gpus, id, &model::Gpu::id) != gpus.end();
  };
  bool any_allowed = false;
  for (const auto& path : paths) {
    if (!is_gpu(path.a) || !is_gpu(path.b) || !path.type) continue;
    if (*path.type == model::PathType::nvl || *path.type == model::PathType::xgmi) return true;
    const bool open = allowed(path.a, path.b) || allowed(path.b, path.a);
    any_allowed = any_allowed || open;
    if (open && (*path.type == model::PathType::pix || *path.type == model::PathType::pxb)) return true;
  }
  if (std::ranges::all_of(gpus, [&](const model::Gpu& gpu) { return has_links(machine, gpu); })) return true;
  return !machine.p2p.empty() && !any_allowed ? std::optional(false) : std::nullopt;
}

std::optional<bool> needs_flush(const model::Topology& topology) {
  bool young = !topology.gpus.empty();
  for (const auto& gpu : topology.gpus) {
    const auto* model = checks::known_gpu(gpu);
    const int sm = !checks::is_nvidia(gpu) ? 0 : gpu.sm.value_or(model != nullptr ? model->sm : 0);
    if (sm > 0 && sm < 90) return true;
    young = young && sm >= 90 && !gpu.c2c;
  }
  return young ? std::optional(false) : std::nullopt;
}

}  // namespace

void know_machine(Options& known, const checks::Evidence& evidence) {
  const auto& machine = *evidence.machine;
  known.amd =
      !machine.topology.gpus.empty() && std::ranges::none_of(machine.topology.gpus, checks::is_nvidia);
  known.peers = peers_of(machine, *evidence.paths);
  known.needs_flush = needs_flush(machine.topology);
  const auto ports = checks::rails_of(evidence).ports;
  if (std::ranges::any_of(ports, [](const auto* port) { return port->state == "ACTIVE"; }))
    known.rails = true;
}

}  // namespace topotune::lint
