// Settings of the kernel and limits of the job. proc(5), kernel admin-guide/sysctl, pm/cpufreq,
// kernel-parameters.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "plan/bindings.h"
#include "plan/parts.h"

namespace topotune::plan {

namespace {

using model::Action;
using model::ActionBasis;
using model::ActionKind;
using model::ActionRisk;

// The rule's impact is the reason; its reference the source.
Action for_finding(Action action, const model::Finding& finding) {
  action.rule = finding.rule;
  action.source = finding.reference;
  return action;
}

void numa_balancing(Draft& draft) {
  const auto found = findings_of(draft, "NUMA06");
  if (found.empty()) return;
  const auto& now = draft.machine().numa_balancing;
  const auto observed = now ? std::optional(fmt::format("{}", *now)) : std::nullopt;
  const std::string reason =
      "automatic NUMA balancing moves pages under running ranks: stalls of 16 to 31 ms were measured";
  draft.actions.push_back(for_finding(
      write_action("numa-balancing-off", "/proc/sys/kernel/numa_balancing", "0", observed, reason),
      *found[0]));
  draft.actions.push_back(for_finding(
      file_action("numa-balancing-file", "/etc/sysctl.d/90-topotune.conf",
                  std::string(kFileMark) + "kernel.numa_balancing = 0\n", "the same after the next boot"),
      *found[0]));
}

// CPUs near a GPU or a rail whose governor saves power, each by its own file.
void governors(Draft& draft) {
  const auto found = findings_of(draft, "KERN03");
  const auto& machine = draft.machine();
  if (found.empty() || !machine.governors) return;
  CpuSet near;
  for (const auto& gpu : draft.topology().gpus)
    if (gpu.cpus) near = near | *gpu.cpus;
  std::vector<std::pair<int, std::string>> slow;
  for (const auto& [cpu, governor] : *machine.governors) {
    const auto number = parse_int<int>(cpu);
    if (number && governor != "performance" && (near.empty() || near.contains(*number)))
      slow.emplace_back(*number, governor);
  }
  std::ranges::sort(slow);
  for (const auto& [cpu, governor] : slow)
    draft.actions.push_back(
        for_finding(write_action(fmt::format("governor-cpu{}", cpu),
                                 fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", cpu),
                                 "performance", governor,
                                 "proxy threads wake on a CPU that saves power: their latency grows"),
                    *found[0]));
}

void aspm(Draft& draft) {
  const auto found = findings_of(draft, "PCIE03");
  const auto& now = draft.machine().aspm_policy;
  if (found.empty() || !now) return;
  draft.actions.push_back(
      for_finding(write_action("aspm-performance", "/sys/module/pcie_aspm/parameters/policy", "performance",
                               *now, "links of GPUs and NICs sleep when idle and take time to wake"),
                  *found[0]));
  auto boot = person_action("aspm-kernel-argument", ActionKind::config, "kernel-command-line",
                            "pcie_aspm.policy=performance", "the same after the next boot");
  boot.precondition = "the kernel command line does not name pcie_aspm";
  boot.read_back = "/proc/cmdline has pcie_aspm.policy=performance";
  boot.undo = "take it out of the boot loader's command line";
  boot.risk = ActionRisk::low;
  draft.actions.push_back(for_finding(std::move(boot), *found[0]));
}

void iommu(Draft& draft) {
  const auto found = findings_of(draft, "ACS03");
  if (found.empty()) return;
  auto action = person_action(
      "iommu-passthrough", ActionKind::config, "kernel-command-line", "iommu=pt",
      "the IOMMU translates DMA of GPUs and NICs: peer traffic is slower, on some platforms wrong");
  action.precondition = "this host passes no device to a virtual machine; it can be rebooted";
  action.read_back = "/proc/cmdline has iommu=pt; iommu_groups/N/type of the device reads identity";
  action.undo = "take it out of the boot loader's command line, reboot";
  draft.actions.push_back(for_finding(std::move(action), *found[0]));
}

// Which layer hands the limit to the job: the launcher's daemon, the container engine, or the login shell.
struct Layer {
  std::string id, unit;  // unit "": limits.d
};
std::vector<Layer> layers_of(const Draft& draft) {
  const auto launcher = draft.job().launcher.value_or("");
  if (launcher == "srun") return {{"slurmd", "slurmd.service"}};
  if (launcher == "kubernetes") return {{"containerd", "containerd.service"}};
  if (launcher == "docker") return {{"docker", "docker.service"}};
  return {{"login", ""}};
}

void limit(Draft& draft, std::string_view rule, std::string_view what, std::string_view pam,
           std::string_view unit, std::string_view value, std::string_view systemd_value,
           const std::string& reason) {
  const auto found = findings_of(draft, rule);
  if (found.empty()) return;
  if (draft.machine().container.value.value_or(false)) {
    auto action =
        person_action(fmt::format("{}-container", what), ActionKind::config, "container",
                      fmt::format("--ulimit {}={}", pam, value == "unlimited" ? "-1" : value), reason);
    action.precondition = "the container can be started again";
    action.read_back = fmt::format("/proc/self/limits inside the job: {} {}", what, value);
    action.undo = "start it without the option";
    draft.actions.push_back(for_finding(std::move(action), *found[0]));
    return;
  }
  for (const auto& layer : layers_of(draft)) {
    const bool login = layer.unit.empty();
    const auto path = login ? fmt::format("/etc/security/limits.d/90-topotune-{}.conf", what)
                            : fmt::format("/etc/systemd/system/{}.d/90-topotune-{}.conf", layer.unit, what);
    const auto text = login ? fmt::format("{}* soft {} {}\n* hard {} {}\nroot soft {} {}\nroot hard {} {}\n",
                                          kFileMark, pam, value, pam, value, pam, value, pam, value)
                            : fmt::format("{}[Service]\n{}={}\n", kFileMark, unit, systemd_value);
    auto action = file_action(
        fmt::format("{}-{}", what, layer.id), path, text,
        fmt::format("{}; {} hands the limit to the job", reason, login ? "the login" : layer.unit));
    action.undo += login ? "; holds from the next login"
                         : fmt::format("; systemctl daemon-reload; restart {} when idle", layer.unit);
    draft.actions.push_back(for_finding(std::move(action), *found[0]));
  }
}

void shared_memory(Draft& draft) {
  const auto found = findings_of(draft, "CONT01");
  if (found.empty()) return;
  auto action = person_action("shm-size", ActionKind::config, "container", "--shm-size=8g",
                              "NCCL and data loaders keep their shared buffers in /dev/shm");
  action.observed = found[0]->observed;
  action.precondition = "the container can be started again";
  action.read_back = "df /dev/shm inside the job";
  action.undo = "start it without the option";
  draft.actions.push_back(for_finding(std::move(action), *found[0]));
}

void peer_memory(Draft& draft) {
  const auto found = findings_of(draft, "GDR01");
  if (found.empty() || draft.machine().container.value.value_or(false)) return;
  auto load = command_action(
      "load-nvidia-peermem", "nvidia-peermem", {"modprobe", "nvidia-peermem"},
      "NICs cannot reach GPU memory: traffic is staged through the host (33 instead of 93 GB/s measured)");
  load.precondition = "/sys/module/nvidia_peermem does not exist";
  load.read_back = "/sys/module/nvidia_peermem exists";
  load.undo = "modprobe -r nvidia-peermem";
  draft.actions.push_back(for_finding(std::move(load), *found[0]));
  draft.actions.push_back(
      for_finding(file_action("load-nvidia-peermem-file", "/etc/modules-load.d/90-topotune.conf",
                              std::string(kFileMark) + "nvidia-peermem\n", "the same after the next boot"),
                  *found[0]));
}

// Kernel admin-guide/mm/transhuge.rst. "madvise" gives huge pages to who asks for them (allocators of loaders
// and of UCX do) and leaves all others alone; "always" can stall a process that touches memory for the first
// time.
void huge_pages(Draft& draft) {
  const auto& now = draft.machine().thp;
  if (!now || draft.topology().gpus.empty()) return;
  if (*now == "always") {
    draft.notes.push_back(
        "transparent huge pages stay at \"always\": changing them helps some loaders and hurts others; "
        "measure "
        "\"madvise\" against it (docs/plan.md) before it is set");
    return;
  }
  if (*now != "never" || draft.machine().container.value.value_or(false)) return;
  auto action =
      write_action("huge-pages-on-request", "/sys/kernel/mm/transparent_hugepage/enabled", "madvise", *now,
                   "no program can have huge pages: large host buffers of loaders cost a TLB miss every 4 "
                   "KiB; \"madvise\" "
                   "gives them only to programs that ask");
  action.source = "Linux admin-guide/mm/transhuge.rst";
  action.basis = ActionBasis::convention;
  draft.actions.push_back(std::move(action));
}

}  // namespace

void plan_kernel(Draft& draft) {
  numa_balancing(draft);
  governors(draft);
  aspm(draft);
  iommu(draft);
  limit(draft, "KERN01", "memlock", "memlock", "LimitMEMLOCK", "unlimited", "infinity",
        "RDMA registers memory by locking it");
  limit(draft, "KERN02", "nofile", "nofile", "LimitNOFILE", "1048576", "1048576",
        "every peer needs sockets at start");
  shared_memory(draft);
  peer_memory(draft);
  huge_pages(draft);
}

}  // namespace topotune::plan
