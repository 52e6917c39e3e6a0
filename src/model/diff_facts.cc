#include "model/diff_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "model/paths.h"

namespace topotune::model {

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::string text_of(const std::string& value) { return value; }
std::string text_of(bool value) { return value ? "yes" : "no"; }
std::string text_of(int value) { return fmt::format("{}", value); }
std::string text_of(std::uint64_t value) { return fmt::format("{}", value); }
std::string text_of(double value) { return fmt::format("{:g}", value); }
std::string text_of(const CpuSet& value) { return value.empty() ? "none" : value.to_list(); }
std::string text_of(GbitsPerSec value) { return fmt::format("{:g}", value.value); }
std::string text_of(GBytesPerSec value) { return fmt::format("{:.4g}", value.value); }
std::string hex_of(std::uint64_t value, int digits) { return fmt::format("0x{:0{}x}", value, digits); }

template <class Range>
std::string joined(const Range& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + std::string(name);
  return out.empty() ? "none" : out;
}

class Collector {
 public:
  explicit Collector(DiffFacts& out) : out_(out) {}

  void about(DiffGroup group, std::string subject) {
    group_ = group;
    subject_ = std::move(subject);
  }
  void exists(std::string domain, std::string description) {
    put("", std::move(description), std::move(domain));
  }
  void put(std::string what, std::string value, std::string domain = {}, std::string note = {}) {
    out_.facts.push_back(
        {group_, subject_, std::move(what), std::move(value), std::move(domain), std::move(note)});
  }
  template <class T>
  void maybe(const char* what, const std::optional<T>& value, std::string note = {}) {
    if (value) put(what, text_of(*value), {}, std::move(note));
  }
  template <class T>
  void fact(const char* what, const Fact<T>& value) {
    if (value) put(what, text_of(*value));
  }
  void complete(std::string domain) { out_.domains.insert(std::move(domain)); }

 private:
  DiffFacts& out_;
  DiffGroup group_ = DiffGroup::gpu;
  std::string subject_;
};

// ---- devices
// ------------------------------------------------------------------------------------------------------

const std::string& label_of(const std::map<std::string, std::string>& labels, const std::string& id) {
  const auto found = labels.find(id);
  return found == labels.end() ? id : found->second;
}

void pci_facts(Collector& out, const PciDevice* device, bool is_gpu) {
  if (device == nullptr) return;
  out.maybe("pcie_current_width", device->current.width);
  out.maybe("pcie_current_gts", device->current.gts, is_gpu ? "an idle GPU lowers its link speed" : "");
  out.maybe("pcie_capable_width", device->capable.width);
  out.maybe("pcie_capable_gts", device->capable.gts);
  out.maybe("pci_numa", device->numa);
  out.maybe("pci_local_cpus", device->local_cpus);
  out.maybe("driver", device->driver);
  out.maybe("max_read_request_bytes", device->max_read_request);
  out.maybe("max_payload_bytes", device->max_payload);
  out.maybe("ats", device->ats_enabled);
  if (device->acs_control) out.put("acs_control", hex_of(*device->acs_control, 4));
  if (!device->parent_inferred && !device->parent.empty()) out.put("parent", device->parent);
}

using PciIndex = std::map<std::string, const PciDevice*>;

const PciDevice* pci_of(const PciIndex& index, const std::string& id, const std::optional<std::string>& bdf) {
  const auto found = index.find(id.empty() ? bdf.value_or("") : id);
  return found == index.end() ? nullptr : found->second;
}

void iommu_fact(Collector& out, const Machine& machine, const std::optional<std::string>& bdf) {
  if (!machine.iommu_groups || !bdf) return;
  const auto found = machine.iommu_groups->find(*bdf);
  if (found != machine.iommu_groups->end()) out.put("iommu_type", found->second);
}

void nvlink_facts(Collector& out, const Gpu& gpu, const Labels& labels) {
  out.maybe("nvlinks", gpu.nvlinks);
  out.maybe("nvlinks_capable", gpu.nvlinks_capable);
  std::map<std::string, int> ends;
  for (const auto& group : gpu.links) {
    if (group.counted && !group.to.empty()) ends[label_of(labels.short_names, group.to)] += group.count;
  }
  for (const auto& [to, count] : ends) out.put("nvlinks_to_" + to, text_of(count), "nvlink_ends");
  if (!gpu.links.empty()) out.complete("nvlink_ends");
  std::set<std::string> speeds;
  for (const auto& [number, speed] : gpu.link_speeds) speeds.insert(text_of(speed));
  if (!speeds.empty()) out.put("nvlink_gbytes_per_s", joined(speeds));
  if (gpu.c2c) out.put("c2c_links", text_of(gpu.c2c->count));
}

void state_facts(Collector& out, const GpuState* state) {
  if (state == nullptr) return;
  out.maybe("fabric_state", state->fabric_state);
  out.maybe("fabric_status", state->fabric_status);
  if (state->fabric_health_mask) out.put("fabric_health_mask", hex_of(*state->fabric_health_mask, 8));
  out.maybe("bar1_bytes", state->bar1_bytes);
  out.maybe("memory_bytes", state->memory_bytes);
  out.maybe("persistence", state->persistence);
  out.maybe("compute_mode", state->compute_mode);
  out.maybe("vbios", state->vbios);
  out.maybe("board_part", state->board_part);
  out.maybe("confidential_computing", state->cc_mode);
  out.maybe("multicast", state->multicast);
}

std::string gpu_description(const Gpu& gpu) {
  if (gpu.name) return *gpu.name;
  if (gpu.pci_vendor && gpu.pci_device) return fmt::format("{:04x}:{:04x}", *gpu.pci_vendor, *gpu.pci_device);
  return gpu.id;
}

void gpu_facts(Collector& out, const Machine& machine, const Labels& labels, const PciIndex& pci) {
  std::map<std::string, const GpuState*> states;
  for (const auto& state : machine.gpu_states) states.emplace(state.gpu, &state);
  for (const auto& gpu : machine.topology.gpus) {
    out.about(DiffGroup::gpu, label_of(labels.devices, gpu.id));
    out.exists("devices", gpu_description(gpu));
    out.put("number", gpu.id);
    out.maybe("bdf", gpu.bdf);
    out.maybe("name", gpu.name);
    out.maybe("sm", gpu.sm);
    out.maybe("numa", gpu.numa);
    out.maybe("cpus", gpu.cpus);
    out.maybe("gpudirect_rdma", gpu.gdr);
    out.maybe("mig", gpu.mig);
    nvlink_facts(out, gpu, labels);
    pci_facts(out, pci_of(pci, gpu.pci, gpu.bdf), true);
    iommu_fact(out, machine, gpu.bdf);
    const auto state = states.find(gpu.id);
    state_facts(out, state == states.end() ? nullptr : state->second);
  }
}

void nic_facts(Collector& out, const Machine& machine, const Labels& labels, const PciIndex& pci) {
  std::set<std::string> with_ports;  // their ports tell rate and link layer
  for (const auto& port : machine.ports) with_ports.insert(port.device);
  for (const auto& nic : machine.topology.nics) {
    out.about(DiffGroup::nic, label_of(labels.devices, nic.id));
    out.exists("devices", nic.name.value_or(nic.id));
    out.maybe("bdf", nic.bdf);
    out.maybe("name", nic.name);
    out.maybe("numa", nic.numa);
    if (!with_ports.contains(nic.name.value_or(""))) {
      out.maybe("link_layer", nic.link_layer);
      out.maybe("gbits_per_s", nic.rate);
    }
    out.maybe("gpudirect_rdma", nic.gdr);
    if (!nic.netdevs.empty()) out.put("netdevs", joined(nic.netdevs));
    pci_facts(out, pci_of(pci, nic.pci, nic.bdf), false);
    iommu_fact(out, machine, nic.bdf);
  }
}

// A GID without what differs from capture to capture: only IPv4 addresses are told.
std::string gid_text(const Gid& gid) {
  constexpr std::string_view kMapped = "0000:0000:0000:0000:0000:ffff:";
  const auto type = gid.type.empty() ? std::string("type unknown") : gid.type;
  if (gid.address.starts_with("fe80:")) return type + ", link-local";
  if (!gid.address.starts_with(kMapped) || gid.address.size() != kMapped.size() + 9) return type + ", IPv6";
  const auto high = parse_int<unsigned>(gid.address.substr(kMapped.size(), 4), 16).value_or(0);
  const auto low = parse_int<unsigned>(gid.address.substr(kMapped.size() + 5), 16).value_or(0);
  return fmt::format("{}, {}.{}.{}.{}", type, high >> 8, high & 255, low >> 8, low & 255);
}

void gid_facts(Collector& out, const RdmaPort& port, const std::string& label) {
  if (port.gids.empty() && !port.gids_known.value_or(false)) return;
  const auto domain = "gids of " + label;
  for (const auto& gid : port.gids) out.put(fmt::format("gid_{}", gid.index), gid_text(gid), domain);
  if (port.gids_known.value_or(false)) out.complete(domain);
}

void port_facts(Collector& out, const Machine& machine, const Labels& labels) {
  for (const auto& port : machine.ports) {
    const auto label = label_of(labels.ports, port_key(port));
    out.about(DiffGroup::nic, label);
    out.exists("ports", port.link_layer.value_or("RDMA port"));
    out.put("device", port.device);
    out.maybe("port_bdf", port.bdf);
    out.maybe("state", port.state);
    out.maybe("phys_state", port.phys_state);
    out.maybe("link_layer", port.link_layer);
    out.maybe("gbits_per_s", port.gbits_per_s);
    out.maybe("active_mtu_bytes", port.active_mtu);
    out.maybe("max_mtu_bytes", port.max_mtu);
    out.maybe("netdev", port.netdev);
    out.maybe("netdev_mtu_bytes", port.netdev_mtu);
    out.maybe("firmware", port.firmware);
    out.maybe("board_id", port.board_id);
    out.maybe("hca_type", port.hca_type);
    if (port.pfc_priorities) out.put("pfc_priorities", hex_of(*port.pfc_priorities, 2));
    out.maybe("ecn", port.ecn);
    out.maybe("adaptive_retransmission", port.adaptive_retransmission);
    gid_facts(out, port, label);
  }
  if (machine.rdma_read.value.value_or(false)) out.complete("ports");
}

// Bridges and switches; GPUs and NICs carry their own facts.
void bridge_facts(Collector& out, const Machine& machine) {
  for (const auto& device : machine.topology.pci) {
    if (device.kind == PciKind::gpu || device.kind == PciKind::nic || device.kind == PciKind::other) continue;
    out.about(DiffGroup::pci, device.id);
    out.exists("pci", device.kind == PciKind::nvswitch ? "NVSwitch" : "PCI bridge");
    pci_facts(out, &device, false);
  }
}

void numa_facts(Collector& out, const Topology& topology) {
  for (const auto& node : topology.numa) {
    out.about(DiffGroup::numa, fmt::format("node {}", node.id));
    out.exists("numa", "NUMA node");
    out.maybe("cpus", node.cpus);
    // The kernel keeps a little more or less for itself at each start.
    if (node.memory_bytes) out.put("memory_gib", text_of((*node.memory_bytes + kGiB / 2) / kGiB));
    for (const auto& [to, distance] : node.distances)
      out.put(fmt::format("distance_to_{}", to), text_of(distance));
  }
  if (!topology.numa.empty()) out.complete("numa");
  out.about(DiffGroup::numa, "host");
  if (!topology.packages.empty()) out.put("packages", text_of(std::uint64_t{topology.packages.size()}));
}

void path_facts(Collector& out, const Machine& machine, const Labels& labels) {
  for (const auto& path : paths_of(machine.topology)) {
    if (!path.type || labels.alone.contains(path.a) || labels.alone.contains(path.b)) continue;
    auto ends = std::array{label_of(labels.short_names, path.a), label_of(labels.short_names, path.b)};
    std::ranges::sort(ends);
    out.about(DiffGroup::path, ends[0] + "-" + ends[1]);
    const auto links = path.nvlinks ? fmt::format(" ({} links)", *path.nvlinks) : "";
    out.put("type", std::string(name_of(*path.type)) + links, "", {});
  }
  for (const auto& status : machine.p2p) {
    if (labels.alone.contains(status.from) || labels.alone.contains(status.to)) continue;
    out.about(DiffGroup::peer,
              label_of(labels.short_names, status.from) + "-" + label_of(labels.short_names, status.to));
    out.put(status.capability, status.status);
  }
}

// ---- the host
// -----------------------------------------------------------------------------------------------------

bool about_communication(std::string_view module) {
  constexpr std::array<std::string_view, 18> kPrefixes{"nvidia", "mlx",   "ib_",   "iw_", "rdma", "gdrdrv",
                                                       "amdgpu", "irdma", "bnxt_", "efa", "ena",  "xpmem",
                                                       "nv_",    "vfio",  "iommu", "hfi", "mana", "siw"};
  return std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return module.starts_with(prefix); });
}

void software_facts(Collector& out, const Machine& machine) {
  out.about(DiffGroup::software, "host");
  out.fact("nvidia_driver", machine.nvidia_driver);
  out.fact("nvidia_open_kernel_module", machine.nvidia_open_kernel_module);
  out.fact("nvml", machine.nvml_library);
  out.fact("nvml_error", machine.nvml_error);
  out.fact("cuda_driver", machine.cuda_driver);
  out.fact("cuda_runtime", machine.cuda_runtime);
  out.fact("nccl", machine.nccl);
  if (machine.nccl_plugins) out.put("nccl_plugins", joined(*machine.nccl_plugins));
  out.fact("ucx", machine.ucx);
  out.fact("ofed", machine.ofed);
  out.fact("fabric_manager", machine.fabric_manager);
  out.fact("fabric_manager_version", machine.fabric_manager_version);
  out.fact("imex_service", machine.imex_service);
  out.fact("kernel", machine.kernel);
  out.fact("os", machine.os);
  if (!machine.modules) return;
  for (const auto& [name, version] : *machine.modules) {
    if (about_communication(name)) out.put("module_" + name, version.empty() ? "loaded" : version, "modules");
  }
  out.complete("modules");
}

void place_facts(Collector& out, const Machine& machine) {
  out.about(DiffGroup::place, "host");
  out.fact("virtual_machine", machine.virtual_machine);
  out.fact("hypervisor", machine.hypervisor);
  out.fact("container", machine.container);
  out.fact("root", machine.root);
  if (machine.nvidia_pci_gpus)
    out.put("gpus_on_the_bus", text_of(std::uint64_t{machine.nvidia_pci_gpus->size()}));
  out.fact("gpus_of_nvml", machine.nvml_gpu_count);
}

// Parameters by name; several of one name are joined. Those that name volumes differ from machine to machine,
// and from capture to capture.
std::map<std::string, std::string> parameters_of(std::string_view command_line) {
  constexpr std::array<std::string_view, 7> kSkipped{"root", "BOOT_IMAGE", "resume",      "initrd",
                                                     "ip",   "hostname",   "rd.luks.uuid"};
  std::map<std::string, std::string> out;
  for (const auto word : words(command_line)) {
    const auto equals = word.find('=');
    const std::string name(word.substr(0, equals));
    if (std::ranges::find(kSkipped, name) != kSkipped.end()) continue;
    const std::string value(equals == std::string_view::npos ? "set" : word.substr(equals + 1));
    auto& known = out[name];
    known += (known.empty() ? "" : " ") + value;
  }
  return out;
}

// "performance", or "performance (60 CPUs), powersave (4 CPUs)".
std::string summary_of(const std::map<std::string, std::string>& by_cpu) {
  std::map<std::string, int> counts;
  for (const auto& [cpu, value] : by_cpu) ++counts[value];
  if (counts.size() == 1) return counts.begin()->first;
  std::vector<std::string> parts;
  for (const auto& [value, count] : counts) parts.push_back(fmt::format("{} ({} CPUs)", value, count));
  return joined(parts);
}

std::string limit_of(const std::optional<std::uint64_t>& value) {
  return value ? text_of(*value) : "unlimited";
}

void kernel_facts(Collector& out, const Machine& machine) {
  out.about(DiffGroup::kernel, "host");
  if (machine.kernel_command_line) {
    for (const auto& [name, value] : parameters_of(*machine.kernel_command_line))
      out.put("parameter_" + name, value, "parameters");
    out.complete("parameters");
  }
  out.fact("numa_balancing", machine.numa_balancing);
  out.fact("transparent_huge_pages", machine.thp);
  out.fact("aspm_policy", machine.aspm_policy);
  out.fact("nvlink_disabled", machine.nvlink_disabled);
  out.fact("irqbalance", machine.irqbalance);
  out.fact("cpufreq_driver", machine.cpufreq_driver);
  if (machine.governors) out.put("cpu_governor", summary_of(*machine.governors));
  if (machine.energy_preferences) out.put("energy_preference", summary_of(*machine.energy_preferences));
  if (machine.memlock) {
    out.put("memlock_soft_bytes", limit_of(machine.memlock->soft));
    out.put("memlock_hard_bytes", limit_of(machine.memlock->hard));
  }
  out.fact("open_files", machine.nofile);
  if (machine.cap_effective) out.put("capabilities", hex_of(*machine.cap_effective, 16));
  out.fact("initial_user_namespace", machine.initial_user_namespace);
  out.fact("shm_bytes", machine.shm_bytes);
  out.fact("allowed_cpus", machine.allowed_cpus);
  out.fact("cgroup_cpus", machine.cgroup_cpus);
  out.fact("online_cpus", machine.online_cpus);
  if (machine.kernel_log)
    out.put("device_faults_in_kernel_log", text_of(std::uint64_t{machine.kernel_log->size()}));
}

void gpudirect_facts(Collector& out, const Machine& machine) {
  out.about(DiffGroup::gpudirect, "host");
  if (machine.peermem) out.put("nvidia_peermem", machine.peermem->empty() ? "loaded" : *machine.peermem);
  if (machine.memory_peers) out.put("memory_peers", joined(*machine.memory_peers));
  out.fact("dmabuf", machine.dmabuf);
  out.fact("imex_channel", machine.imex_channel);
}

}  // namespace

DiffFacts diff_facts(const Machine& machine, const Labels& labels) {
  DiffFacts facts;
  Collector out(facts);
  PciIndex pci;
  for (const auto& device : machine.topology.pci) pci.emplace(device.id, &device);
  if (machine.topology.source.complete) out.complete("devices");
  if (machine.topology.tree_known) out.complete("pci");
  gpu_facts(out, machine, labels, pci);
  nic_facts(out, machine, labels, pci);
  port_facts(out, machine, labels);
  bridge_facts(out, machine);
  numa_facts(out, machine.topology);
  path_facts(out, machine, labels);
  software_facts(out, machine);
  place_facts(out, machine);
  kernel_facts(out, machine);
  gpudirect_facts(out, machine);
  return facts;
}

}  // namespace topotune::model
