// AMD's xGMI links from the compute driver's topology: no library has to be there.
#include <algorithm>
#include <map>

#include "discover/phases.h"
#include "discover/reading.h"
#include "parse/kfd.h"

namespace topotune::discover {
namespace {

const std::string kNodes = "/sys/class/kfd/kfd/topology/nodes";
constexpr std::size_t kMaxNodes = 512;

model::Gpu* gpu_at(model::Topology& topology, const std::string& bdf) {
  const auto at = std::ranges::find(topology.gpus, std::optional(bdf), &model::Gpu::bdf);
  return at == topology.gpus.end() ? nullptr : &*at;
}

// Node names that are GPUs -> the GPU's place in the topology.
std::map<std::string, model::Gpu*> gpu_nodes(const host::Host& host, const std::vector<std::string>& names,
                                             model::Topology& topology) {
  std::map<std::string, model::Gpu*> out;
  for (const auto& name : names) {
    const auto text = host.read(kNodes + "/" + name + "/properties");
    const auto node = text ? parse::parse_kfd_node(*text) : std::nullopt;
    auto* const gpu = node ? gpu_at(topology, node->bdf) : nullptr;
    if (gpu == nullptr) continue;
    if (!gpu->sm) gpu->sm = node->gfx;
    out.emplace(name, gpu);
  }
  return out;
}

}  // namespace

void discover_xgmi(const host::Host& host, model::Machine& machine) {
  const bool amd =
      std::ranges::any_of(machine.topology.gpus, [](const auto& gpu) { return gpu.pci_vendor == 0x1002; });
  if (!amd) return;
  auto names = host.list(kNodes);
  if (!names) {
    machine.diagnostics.push_back(
        {"no-kfd", "links between AMD GPUs are unknown: " + kNodes + ": " + reason(names.error()), {}});
    return;
  }
  if (names->size() > kMaxNodes) names->resize(kMaxNodes);
  const auto gpus = gpu_nodes(host, *names, machine.topology);
  for (const auto& [name, gpu] : gpus) {
    const auto folder = kNodes + "/" + name + "/io_links";
    for (const auto& entry : host.list(folder).value_or(std::vector<std::string>{})) {
      const auto text = host.read(folder + "/" + entry + "/properties");
      const auto link = text ? parse::parse_kfd_link(*text) : std::nullopt;
      if (!link || !link->xgmi) continue;
      const auto peer = gpus.find(std::to_string(link->to));
      if (peer == gpus.end() || peer->second == gpu) continue;  // links to CPUs
      model::NvLinkGroup group{peer->second->id, link->count, true, {}, true};
      if (link->gbytes_per_s) group.per_link = GBytesPerSec{*link->gbytes_per_s};
      gpu->links.push_back(std::move(group));
    }
  }
}

}  // namespace topotune::discover
