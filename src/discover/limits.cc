#include <map>
#include <nlohmann/json.hpp>

#include "discover/phases.h"
#include "discover/reading.h"
#include "parse/sysfs_proc.h"

namespace topotune::discover {

namespace {

using model::Fact;
using model::Machine;

constexpr int kMaxCpusRead = 1024;

void take_process(const host::Host& host, Machine& machine) {
  const std::string limits = "/proc/self/limits";
  machine.memlock = read_fact<model::MemoryLimit>(
      host, limits, [](std::string_view text) { return parse::parse_proc_limit(text, "Max locked memory"); });
  machine.nofile =
      read_fact<std::uint64_t>(host, limits, [](std::string_view text) -> std::optional<std::uint64_t> {
        const auto limit = parse::parse_proc_limit(text, "Max open files");
        if (!limit) return std::nullopt;
        return limit->soft.value_or(~std::uint64_t{0});
      });
  const std::string path = "/proc/self/status";
  const auto text = host.read(path);
  const auto status = text ? parse::parse_proc_status(*text) : parse::ProcStatus{};
  const auto why = text ? std::string("not in the text") : reason(text.error());
  const auto put = [&](auto& fact, const auto& value) {
    using F = std::remove_reference_t<decltype(fact)>;
    fact = value ? F::of(*value, path) : F::missing(why, path);
  };
  put(machine.cap_effective, status.cap_effective);
  put(machine.allowed_cpus, status.allowed_cpus);
  put(machine.root, status.effective_uid ? std::optional(*status.effective_uid == 0) : std::nullopt);
  machine.initial_user_namespace = read_fact<bool>(host, "/proc/self/uid_map", parse::parse_uid_map);
}

// The processor itself tells (CPUID); where it was not asked, the flags that the kernel prints of it.
void take_hypervisor(const host::Host& host, Machine& machine) {
  const auto text = host.probe("process");
  const auto json = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
  if (json.is_object() && json.contains("hypervisor") && json["hypervisor"].is_boolean()) {
    const bool present = json["hypervisor"].get<bool>();
    machine.virtual_machine =
        Fact<bool>::of(present, "cpuid", present ? "hypervisor bit set" : "hypervisor bit not set");
    if (json.contains("hypervisor_vendor") && json["hypervisor_vendor"].is_string())
      machine.hypervisor = Fact<std::string>::of(
          parse::hypervisor_name(json["hypervisor_vendor"].get<std::string>()), "cpuid");
  } else {
    machine.virtual_machine = read_fact<bool>(
        host, "/proc/cpuinfo", [](std::string_view cpus) { return parse::parse_cpuinfo(cpus).hypervisor; });
    machine.virtual_machine.text = machine.virtual_machine.value.value_or(false) ? "flags: hypervisor" : "";
  }
  if (machine.hypervisor || !machine.virtual_machine.value.value_or(false)) return;
  const std::string path = "/sys/class/dmi/id/sys_vendor";
  const auto vendor = read_line(host, path);
  if (vendor && !vendor->empty()) machine.hypervisor = Fact<std::string>::of(printable(*vendor), path);
}

// A container by its cgroup's path, by the marks that engines leave, or by an overlay as "/".
void take_container(const host::Host& host, Machine& machine) {
  const auto cgroup = host.read("/proc/self/cgroup");
  const auto path = cgroup ? parse::parse_proc_cgroup(*cgroup) : std::nullopt;
  const auto mounts = host.read("/proc/self/mountinfo");
  const auto root = mounts ? parse::parse_root_file_system(*mounts) : std::nullopt;
  if (path && !path->container.empty())
    machine.container = Fact<bool>::of(true, "/proc/self/cgroup", path->container);
  else if (host.read("/.dockerenv").has_value() || host.read("/run/.containerenv").has_value())
    machine.container = Fact<bool>::of(true, "/.dockerenv");
  else if (root)
    machine.container = Fact<bool>::of(*root == "overlay", "/proc/self/mountinfo", "/ is " + *root);
  else
    machine.container =
        Fact<bool>::missing(mounts ? "no mount of /" : reason(mounts.error()), "/proc/self/mountinfo");
}

// The CPUs of the process's cgroup. A group in which the cpuset controller is off has its parent's; in a
// container the path may be the host's, and the mount shows the group itself.
void take_cgroup_cpus(const host::Host& host, Machine& machine) {
  const auto cgroup = host.read("/proc/self/cgroup");
  const auto at = cgroup ? parse::parse_proc_cgroup(*cgroup) : std::nullopt;
  const bool old = at && !at->unified;
  const std::string mount = old ? "/sys/fs/cgroup/cpuset" : "/sys/fs/cgroup";
  const std::string file = old ? "/cpuset.effective_cpus" : "/cpuset.cpus.effective";
  std::string path = at && at->path != "/" ? at->path : "";
  for (;;) {
    machine.cgroup_cpus = read_fact<CpuSet>(host, mount + path + file, parse_cpu_list);
    if (machine.cgroup_cpus || machine.cgroup_cpus.why != "not found" || path.empty()) return;
    path = path.substr(0, path.rfind('/'));
  }
}

// The nearest group above the process that limits its CPU time; without a limit: the process's own group.
void take_cpu_limit(const host::Host& host, Machine& machine) {
  const std::string mount = "/sys/fs/cgroup";
  const auto cgroup = host.read("/proc/self/cgroup");
  const auto at = cgroup ? parse::parse_proc_cgroup(*cgroup) : std::nullopt;
  if (at && !at->unified) {
    machine.cpu_max = Fact<std::string>::missing("cgroup v1", "/proc/self/cgroup");
    return;
  }
  std::string path = at && at->path != "/" ? at->path : "";
  for (;;) {
    const std::string file = mount + path + "/cpu.max";
    const auto limit = read_line(host, file);
    if (limit) machine.cpu_max = Fact<std::string>::of(*limit, file, "cpu.max " + *limit);
    if (limit && !limit->starts_with("max")) {
      machine.cpu_throttled =
          read_fact<std::uint64_t>(host, mount + path + "/cpu.stat", parse::parse_throttled);
      return;
    }
    if (path.empty()) break;
    path = path.substr(0, path.rfind('/'));
  }
  // The root group has no cpu.max: nothing limits the process.
  if (!machine.cpu_max && cgroup && !host.read(mount + "/cpu.max") &&
      host.read(mount + "/cgroup.controllers"))
    machine.cpu_max = Fact<std::string>::of("max", mount, "no cpu.max above the process");
  else if (!machine.cpu_max)
    machine.cpu_max = Fact<std::string>::missing("not found", mount + "/cpu.max");
}

void take_shared_memory(const host::Host& host, Machine& machine) {
  const auto text = host.probe("statvfs /dev/shm");
  const auto json = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
  const auto put = [&](Fact<std::uint64_t>& fact, const char* key) {
    if (json.is_object() && json.contains(key) && json[key].is_number_unsigned())
      fact = Fact<std::uint64_t>::of(json[key].get<std::uint64_t>(), "statvfs /dev/shm");
    else
      fact = Fact<std::uint64_t>::missing(text ? "not told" : reason(text.error()), "statvfs /dev/shm");
  };
  put(machine.shm_bytes, "bytes");
  put(machine.shm_free_bytes, "free_bytes");
  put(machine.shm_device, "device");
}

void take_governors(const host::Host& host, Machine& machine) {
  const std::string folder = "/sys/devices/system/cpu/";
  const auto first = host.read(folder + "cpu0/cpufreq/scaling_governor");
  if (!first) {
    machine.governors =
        Fact<std::map<std::string, std::string>>::missing(reason(first.error()), folder + "cpu0/cpufreq");
    return;
  }
  std::map<std::string, std::string> governors, preferences;
  const auto cpus = machine.online_cpus ? machine.online_cpus->to_vector() : std::vector<int>{0};
  for (std::size_t i = 0; i < cpus.size() && i < kMaxCpusRead; ++i) {
    const std::string cpu = folder + "cpu" + std::to_string(cpus[i]) + "/cpufreq/";
    if (const auto governor = read_line(host, cpu + "scaling_governor"))
      governors[std::to_string(cpus[i])] = *governor;
    if (const auto epp = read_line(host, cpu + "energy_performance_preference"))
      preferences[std::to_string(cpus[i])] = *epp;
  }
  machine.governors = Fact<std::map<std::string, std::string>>::of(std::move(governors),
                                                                   folder + "*/cpufreq/scaling_governor");
  if (!preferences.empty())
    machine.energy_preferences = Fact<std::map<std::string, std::string>>::of(
        std::move(preferences), folder + "*/cpufreq/energy_performance_preference");
  if (const auto driver = read_line(host, folder + "cpu0/cpufreq/scaling_driver"))
    machine.cpufreq_driver = Fact<std::string>::of(*driver, folder + "cpu0/cpufreq/scaling_driver");
}

// The IOMMU group type of every GPU and NIC.
void take_iommu(const host::Host& host, Machine& machine) {
  const std::string folder = "/sys/kernel/iommu_groups";
  const auto groups = host.list(folder);
  if (!groups && groups.error().code != Errc::not_found) {
    machine.iommu_groups = Fact<std::map<std::string, std::string>>::missing(reason(groups.error()), folder);
    return;
  }
  std::map<std::string, std::string> types;
  for (const auto& device : machine.topology.pci) {
    if (device.kind != model::PciKind::gpu && device.kind != model::PciKind::nic) continue;
    const auto link = host.link("/sys/bus/pci/devices/" + device.id + "/iommu_group");
    if (!link) continue;
    const auto type = read_line(host, folder + "/" + link->substr(link->rfind('/') + 1) + "/type");
    if (type) types[device.id] = *type;
  }
  machine.iommu_groups = Fact<std::map<std::string, std::string>>::of(std::move(types), folder);
}

// The vectors of RDMA NICs and where they may run.
void take_interrupts(const host::Host& host, Machine& machine) {
  constexpr std::size_t kMaxVectors = 4096;
  for (const auto& nic : machine.topology.nics) {
    if (!nic.rdma || !nic.bdf || !nic.name) continue;
    const auto vectors = host.list("/sys/bus/pci/devices/" + *nic.bdf + "/msi_irqs");
    if (!vectors) continue;
    for (const auto& name : *vectors) {
      const auto irq = parse_int<int>(name);
      if (!irq || machine.interrupts.size() >= kMaxVectors) continue;
      const auto cpus = read_line(host, "/proc/irq/" + name + "/effective_affinity_list");
      machine.interrupts.push_back(
          {*irq, *nic.name, cpus && !cpus->empty() ? parse_cpu_list(*cpus) : std::nullopt});
    }
  }
}

}  // namespace

void discover_limits(const host::Host& host, Machine& machine) {
  take_process(host, machine);
  take_hypervisor(host, machine);
  take_container(host, machine);
  take_cgroup_cpus(host, machine);
  take_cpu_limit(host, machine);
  if (const auto uptime = read_line(host, "/proc/uptime"))
    machine.uptime_seconds = parse_double(std::string_view(*uptime).substr(0, uptime->find(' ')));
  machine.hostname = read_fact<std::string>(host, "/proc/sys/kernel/hostname", [](std::string_view text) {
    return std::optional(printable(trim(text)));
  });
  take_shared_memory(host, machine);
  machine.online_cpus = read_fact<CpuSet>(host, "/sys/devices/system/cpu/online", parse_cpu_list);
  machine.numa_balancing = read_fact<int>(host, "/proc/sys/kernel/numa_balancing",
                                          [](std::string_view text) { return parse_int<int>(trim(text)); });
  machine.thp =
      read_fact<std::string>(host, "/sys/kernel/mm/transparent_hugepage/enabled", parse::parse_bracketed);
  machine.aspm_policy =
      read_fact<std::string>(host, "/sys/module/pcie_aspm/parameters/policy", parse::parse_bracketed);
  take_governors(host, machine);
  take_iommu(host, machine);
  take_interrupts(host, machine);
}

}  // namespace topotune::discover
