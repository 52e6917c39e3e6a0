#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpuset.h"
#include "model/machine.h"

namespace topotune::parse {

// Texts below /proc and /sys that tell about the kernel, its limits and where the process runs. Each function
// reads its one text and says nothing about what is not in it.

// A row of /proc/self/limits: "Max locked memory         67108864             67108864             bytes".
// `name` is the first column. Nothing when the row is missing or not two numbers or "unlimited".
std::optional<model::MemoryLimit> parse_proc_limit(std::string_view text, std::string_view name);

// /proc/self/status
struct ProcStatus {
  std::optional<int> effective_uid;
  std::optional<std::uint64_t> cap_effective;
  std::optional<CpuSet> allowed_cpus;
};
ProcStatus parse_proc_status(std::string_view text);

// The flags of the first processor of /proc/cpuinfo; "flags" (x86) or "Features" (Arm).
struct CpuInfo {
  std::optional<bool> hypervisor;  // x86 only: Arm's text does not tell
  std::optional<std::string> vendor, model_name;
};
CpuInfo parse_cpuinfo(std::string_view text);

// CPUID's word for a hypervisor: "KVMKVMKVM" -> "KVM", "Microsoft Hv" -> "Hyper-V"; others stay as they are.
std::string hypervisor_name(std::string_view vendor);

// /proc/modules: names of loaded modules, sorted as they come.
std::vector<std::string> parse_proc_modules(std::string_view text);

// /proc/self/cgroup
struct CgroupPath {
  bool unified = false;   // version 2: "0::/path"
  std::string path;       // of version 2, else of the cpuset controller
  std::string container;  // the word that shows a container ("docker", "kubepods", ...); "" none
};
std::optional<CgroupPath> parse_proc_cgroup(std::string_view text);

// /proc/self/mountinfo: the file system type of "/" ("overlay" in most containers).
std::optional<std::string> parse_root_file_system(std::string_view text);

// /proc/self/uid_map: true for the initial name space, "0 0 4294967295".
std::optional<bool> parse_uid_map(std::string_view text);

// /etc/os-release: the value of PRETTY_NAME.
std::optional<std::string> parse_pretty_name(std::string_view text);

// /proc/driver/nvidia/version
struct NvidiaVersion {
  std::string driver;               // "580.159.04"
  std::optional<bool> open_module;  // "Open Kernel Module"
};
std::optional<NvidiaVersion> parse_nvidia_version(std::string_view text);

// The first word that is a driver's version: "Fabric Manager version is : 580.95.05" -> "580.95.05".
std::optional<std::string> find_driver_version(std::string_view text);
// A row of /proc/driver/nvidia/params: ("NvLinkDisable: 1", "NvLinkDisable") -> "1".
std::optional<std::string> parse_nvidia_parameter(std::string_view text, std::string_view name);

// "always [madvise] never" -> "madvise".
std::optional<std::string> parse_bracketed(std::string_view text);
// "Node 0 MemTotal:       1006452 kB" of /sys/devices/system/node/nodeN/meminfo -> bytes.
std::optional<std::uint64_t> parse_node_memory(std::string_view text);
// "10 21" -> {10, 21}; nothing for other words, more than 4096 entries or a distance outside 1..255 (ACPI
// SLIT).
std::optional<std::vector<int>> parse_distances(std::string_view text);

// Lines of the kernel log that name a fault of a device (kernel_log.h), without the level that syslog(2) puts
// before them; at most `limit`, the last ones.
std::vector<std::string> device_faults(std::string_view log, std::size_t limit);

// nr_throttled of a cgroup v2 cpu.stat.
std::optional<std::uint64_t> parse_throttled(std::string_view text);

// "2026-01-31T12:00:00Z": seconds since 1970.
std::optional<std::int64_t> parse_utc(std::string_view text);

}  // namespace topotune::parse
