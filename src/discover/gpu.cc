#include <algorithm>
#include <map>

#include "discover/phases.h"
#include "discover/reading.h"
#include "parse/nvml_probe.h"

namespace topotune::discover {

namespace {

using model::Fact;
using model::Gpu;
using model::Machine;
using parse::NvmlGpu;
using parse::NvmlProbe;

// PCIe generation -> GT/s per lane.
std::optional<double> speed_of_generation(const std::optional<int>& generation) {
  constexpr double kSpeeds[] = {2.5, 5, 8, 16, 32, 64};
  if (!generation || *generation < 1 || *generation > 6) return std::nullopt;
  return kSpeeds[*generation - 1];
}

model::PciDevice* find_device(Machine& machine, const std::string& id) {
  const auto at = std::ranges::find(machine.topology.pci, id, &model::PciDevice::id);
  return at == machine.topology.pci.end() ? nullptr : &*at;
}

// What the bus tells of a GPU.
void fill_from_bus(const Machine& machine, Gpu& gpu) {
  const auto* device = gpu.bdf ? model::find_pci(machine.topology, *gpu.bdf) : nullptr;
  if (device == nullptr) return;
  gpu.numa = device->numa;
  gpu.pci_vendor = device->vendor;
  gpu.pci_device = device->device;
  if (device->local_cpus && !device->local_cpus->empty()) gpu.cpus = device->local_cpus;
}

// Links by their far end. Guests see NVSwitches without an address: one group "NVSwitch".
void fill_links(const NvmlGpu& seen, const std::map<std::string, std::string>& gpu_at, Gpu& gpu) {
  std::map<std::string, model::NvLinkGroup> groups;
  int active = 0;
  bool known = !seen.links.empty() || seen.nvlink_count == 0;
  for (const auto& link : seen.links) {
    if (!link.active) known = false;
    if (link.active == false) gpu.inactive_links.push_back(link.link);
    if (link.active != true) continue;
    ++active;
    std::string to =
        link.remote_type == "switch" ? (link.remote_bus_id.empty() ? "NVSwitch" : link.remote_bus_id) : "";
    if (link.remote_type != "switch") {
      const auto peer = gpu_at.find(link.remote_bus_id);
      to = peer == gpu_at.end() ? link.remote_bus_id : peer->second;
    }
    auto& group = groups[to];
    group.to = to;
    ++group.count;
    if (link.gbytes_per_s) {
      gpu.link_speeds[link.link] = GBytesPerSec{*link.gbytes_per_s};
      if (!group.per_link || group.per_link->value > *link.gbytes_per_s)
        group.per_link = GBytesPerSec{*link.gbytes_per_s};
    }
  }
  for (auto& [to, group] : groups) gpu.links.push_back(std::move(group));
  // A GPU without NVLink refuses the question for its links.
  const bool none = std::ranges::find(seen.refused, "nvlinks: Not Supported") != seen.refused.end();
  if (known || none) gpu.nvlinks = active;
  gpu.nvlinks_capable = none ? 0 : seen.nvlink_count;
}

// NVML knows the link of a guest's GPU where the guest's sysfs does not; the kernel's figures win where both
// speak.
void fill_pcie(const NvmlGpu& seen, model::PciDevice& device) {
  const auto put = [](auto& to, const auto& value) {
    if (!to) to = value;
  };
  const auto lanes = [](const std::optional<int>& width) {
    return width && *width > 0 && *width <= 32 ? width : std::nullopt;
  };
  put(device.current.gts, speed_of_generation(seen.pcie_gen));
  put(device.current.width, lanes(seen.pcie_width));
  put(device.capable.gts,
      speed_of_generation(seen.pcie_gen_device_max ? seen.pcie_gen_device_max : seen.pcie_gen_max));
  put(device.capable.width, lanes(seen.pcie_width_max));
  put(device.subsystem_vendor, seen.subsystem_vendor);
  put(device.subsystem_device, seen.subsystem_device);
}

model::GpuState state_of(const NvmlGpu& seen, const std::string& id) {
  model::GpuState state;
  state.gpu = id;
  state.fabric_state = seen.fabric.state;
  state.fabric_status = seen.fabric.status;
  state.fabric_health_mask = seen.fabric.health_mask;
  state.clique = seen.fabric.clique_id;
  state.cluster_uuid = seen.fabric.cluster_uuid;
  state.clock_event_reasons = seen.clock_event_reasons;
  state.utilisation = seen.utilisation;
  state.temperature_c = seen.temperature_c;
  state.bar1_bytes = seen.bar1_bytes;
  state.memory_bytes = seen.memory_bytes;
  state.pcie_replays = seen.pcie_replays;
  for (const auto& link : seen.links)
    if (!link.errors.empty()) state.nvlink_errors[link.link] = link.errors;
  state.persistence = seen.persistence;
  state.compute_mode = seen.compute_mode;
  state.vbios = seen.vbios;
  state.board_part = seen.board_part;
  return state;
}

// NVSwitches that NVML names and the bus does not show (a guest may see only the GPUs).
void add_switches(const NvmlGpu& seen, model::Topology& topology) {
  for (const auto& link : seen.links) {
    if (link.active != true || link.remote_type != "switch" || link.remote_bus_id.empty()) continue;
    const bool known =
        std::ranges::find(topology.switches, link.remote_bus_id, &model::PciSwitch::bdf) != topology.switches.end();
    if (!known) topology.switches.push_back({link.remote_bus_id, link.remote_bus_id, "nvswitch"});
  }
}

// One GPU that NVML counts. A device that NVML lost is still a GPU, with a diagnostic.
void add_nvml_gpu(const NvmlGpu& seen, const std::map<std::string, std::string>& gpu_at, Machine& machine) {
  Gpu gpu;
  gpu.index = seen.index;
  gpu.id = "GPU" + std::to_string(seen.index);
  gpu.bdf = seen.bus_id;
  fill_from_bus(machine, gpu);
  gpu.name = seen.name;
  gpu.uuid = seen.uuid;
  gpu.sm = seen.sm;
  gpu.mig = seen.mig;
  if (!gpu.pci_vendor) gpu.pci_vendor = seen.vendor;
  if (!gpu.pci_device) gpu.pci_device = seen.device;
  fill_links(seen, gpu_at, gpu);
  add_switches(seen, machine.topology);
  if (seen.c2c_links.value_or(0) > 0) {
    gpu.c2c = model::C2cLink{*seen.c2c_links, {}};
    if (seen.c2c_gbytes_per_s) gpu.c2c->per_link = GBytesPerSec{*seen.c2c_gbytes_per_s};
  }
  if (seen.error) machine.diagnostics.push_back({"gpu-error", gpu.id + ": NVML says: " + *seen.error, {}});
  if (gpu.bdf) {
    if (auto* device = find_device(machine, *gpu.bdf)) fill_pcie(seen, *device);
  }
  machine.gpu_states.push_back(state_of(seen, gpu.id));
  machine.topology.gpus.push_back(std::move(gpu));
}

void add_p2p(const NvmlProbe& probe, Machine& machine) {
  for (const auto& pair : probe.p2p) {
    for (const auto& [capability, status] : pair.status)
      machine.p2p.push_back(
          {"GPU" + std::to_string(pair.from), "GPU" + std::to_string(pair.to), capability, status});
  }
}

// NVML's own version is the CUDA major, a dot, and the driver version that the library belongs to:
// "13.580.159.04".
std::string library_version(const std::string& nvml) {
  const auto dot = nvml.find('.');
  return dot == std::string::npos ? nvml : nvml.substr(dot + 1);
}

void take_versions(const NvmlProbe& probe, Machine& machine) {
  if (probe.driver_version) machine.nvidia_driver = Fact<std::string>::of(*probe.driver_version, "nvml");
  if (probe.nvml_version)
    machine.nvml_library =
        Fact<std::string>::of(library_version(*probe.nvml_version), "nvml", *probe.nvml_version);
  if (probe.cuda_driver_version)
    machine.cuda_driver = Fact<std::string>::of(*probe.cuda_driver_version, "nvml");
  const int count = probe.gpu_count.value_or(static_cast<int>(probe.gpus.size()));
  machine.nvml_gpu_count = Fact<int>::of(count, "nvml", std::to_string(count) + " GPUs");
  machine.nvml_error = Fact<std::string>::missing("nvmlInit succeeded", "nvml");
}

// An address -> GPU id map before any GPU is built: links name their far end by address.
std::map<std::string, std::string> addresses_of(const NvmlProbe& probe) {
  std::map<std::string, std::string> out;
  for (const auto& gpu : probe.gpus) {
    if (gpu.bus_id) out[*gpu.bus_id] = "GPU" + std::to_string(gpu.index);
  }
  return out;
}

void take_nvml(const host::Host& host, Machine& machine) {
  const auto text = host.probe("nvml");
  if (!text) {
    const auto why = reason(text.error());
    machine.nvml_gpu_count = Fact<int>::missing(why, "nvml");
    machine.nvml_error = text.error().code == Errc::unsupported
                             ? Fact<std::string>::of(text.error().text, "nvml")
                             : Fact<std::string>::missing(why, "nvml");
    return;
  }
  const auto probe = parse::parse_nvml_probe(*text);
  if (!probe) {
    machine.diagnostics.push_back({"nvml", probe.error().text, {}});
    machine.nvml_gpu_count = Fact<int>::missing(probe.error().text, "nvml");
    return;
  }
  take_versions(*probe, machine);
  const auto addresses = addresses_of(*probe);
  for (const auto& gpu : probe->gpus) add_nvml_gpu(gpu, addresses, machine);
  add_p2p(*probe, machine);
}

// GPUs of the bus that no driver library counts keep their place after the others, in bus order.
void add_other_gpus(Machine& machine) {
  int next = 0;
  for (const auto& gpu : machine.topology.gpus) next = std::max(next, gpu.index + 1);
  for (const auto& device : machine.topology.pci) {
    if (device.kind != model::PciKind::gpu) continue;
    const bool seen =
        std::ranges::any_of(machine.topology.gpus, [&](const Gpu& g) { return g.bdf == device.id; });
    if (seen) continue;
    Gpu gpu;
    gpu.index = next;
    gpu.id = "GPU" + std::to_string(next++);
    gpu.bdf = device.id;
    fill_from_bus(machine, gpu);
    if (device.vendor == 0x10de && machine.nvml_gpu_count)
      machine.diagnostics.push_back(
          {"gpu-not-in-nvml", gpu.id + " (" + device.id + ") is on the bus, but NVML does not count it", {}});
    machine.topology.gpus.push_back(std::move(gpu));
  }
}

}  // namespace

void discover_gpus(const host::Host& host, Machine& machine) {
  take_nvml(host, machine);
  add_other_gpus(machine);
}

}  // namespace topotune::discover
