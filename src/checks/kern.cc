// Rules about limits, CPUs and interrupts. setrlimit(2), capabilities(7), Linux admin-guide/pm/cpufreq.rst.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "checks/facts_of.h"
#include "checks/families.h"

namespace topotune::checks {
namespace {

using model::Machine;
using model::Severity;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20, kGiB = std::uint64_t{1} << 30;

// ---- KERN01

constexpr unsigned kCapIpcLock = 14;  // linux/capability.h

// CAP_IPC_LOCK counts in the initial user namespace only.
std::optional<bool> may_lock_everything(const Machine& machine) {
  if (!machine.cap_effective) return std::nullopt;
  if (((*machine.cap_effective >> kCapIpcLock) & 1U) == 0) return false;
  if (!machine.initial_user_namespace) return std::nullopt;
  return *machine.initial_user_namespace;
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes >= kGiB)
    return fmt::format("{} bytes ({:.1f} GiB)", bytes,
                       static_cast<double>(bytes) / static_cast<double>(kGiB));
  return fmt::format("{} bytes ({} KiB)", bytes, bytes >> 10);
}

Outcome check_KERN01(const Evidence& evidence) {
  constexpr std::uint64_t kComfortable = 16 * kGiB, kKnownFailure = 64 * kMiB;
  const auto& machine = *evidence.machine;
  if (machine.rdma_read && machine.ports.empty()) return Clean{"no RDMA device"};
  if (!machine.memlock) return missing("locked-memory limit", machine.memlock);
  if (!machine.memlock->soft) return Clean{"unlimited"};
  if (may_lock_everything(machine).value_or(false)) return Clean{"CAP_IPC_LOCK"};
  const auto limit = *machine.memlock->soft;
  Judge judge("KERN01");
  auto& found = judge.found("this process", "unlimited", bytes_text(limit),
                            {evidence_of(machine.memlock, "Max locked memory " + bytes_text(limit))});
  // The limit is this process's or shell's; the job may have another one.
  found.severity = limit >= kComfortable ? Severity::info : Severity::warn;
  found.title = limit < kKnownFailure ? found.title : "The locked-memory limit is finite";
  if (machine.cap_effective)
    found.evidence.push_back(
        {machine.cap_effective.source, fmt::format("CapEff {:016x}", *machine.cap_effective)});
  return judge.outcome();
}

// ---- KERN02

Outcome check_KERN02(const Evidence& evidence) {
  constexpr std::uint64_t kTooFew = 1024, kForManyRanks = 20480;
  const auto& machine = *evidence.machine;
  if (!machine.nofile) return missing("open-files limit", machine.nofile);
  const auto limit = *machine.nofile;
  if (limit >= kForManyRanks) return Clean{};
  if (limit >= kTooFew && !evidence.multi_node_job) return Clean{"enough for one node"};
  Judge judge("KERN02");
  auto& found =
      judge.found("this process", limit < kTooFew ? "at least 1024" : "at least 20480 on many-rank jobs",
                  fmt::format("{}", limit), {evidence_of(machine.nofile, fmt::format("nofile {}", limit))});
  if (limit < kTooFew) found.severity = Severity::error;
  return judge.outcome();
}

// ---- KERN03

bool saves_power(const Machine& machine, const std::string& cpu, const std::string& governor) {
  if (governor == "ondemand" || governor == "conservative") return true;
  if (governor != "powersave") return false;
  const auto driver = machine.cpufreq_driver.value.value_or("");
  const bool own_governor = driver.starts_with("intel_pstate") || driver.starts_with("amd-pstate") ||
                            driver.starts_with("amd_pstate");
  if (!own_governor) return true;
  if (!machine.energy_preferences) return false;
  const auto preference = machine.energy_preferences->find(cpu);
  return preference != machine.energy_preferences->end() &&
         (preference->second == "power" || preference->second == "balance_power");
}

// CPUs local to a GPU or rail NIC; all when no list is known.
std::optional<CpuSet> near_cpus(const Evidence& evidence) {
  CpuSet out;
  const auto& topology = evidence.machine->topology;
  for (const auto& gpu : topology.gpus)
    if (gpu.cpus) out = out | *gpu.cpus;
  const model::PciTree tree(topology);
  for (const auto* nic : rails_of(evidence).nics) {
    const auto* device = tree.route_to(*nic).device;
    if (device != nullptr && device->local_cpus) out = out | *device->local_cpus;
  }
  if (out.empty()) return std::nullopt;
  return out;
}

bool pstate_unclear(const Machine& machine) {
  const bool powersave =
      std::ranges::any_of(*machine.governors, [](const auto& entry) { return entry.second == "powersave"; });
  if (!powersave) return false;
  if (!machine.cpufreq_driver) return true;
  return machine.cpufreq_driver->find("pstate") != std::string::npos && !machine.energy_preferences;
}

Outcome check_KERN03(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  const auto& governors = machine.governors;
  if (!governors)
    return governors.why == "not found" ? Outcome(Clean{"no cpufreq: firmware or a hypervisor controls it"})
                                        : Outcome(missing("CPU governors", governors));
  if (governors->empty()) return Clean{"no cpufreq: firmware or a hypervisor controls it"};
  if (machine.topology.gpus.empty() && machine.topology.nics.empty()) return Clean{"no GPU and no NIC"};
  if (pstate_unclear(machine))
    return NotEvaluated{"powersave of which driver, with which preference: not captured"};
  const auto near = near_cpus(evidence);
  std::map<std::string, CpuSet> slow;
  for (const auto& [cpu, governor] : *governors) {
    const auto number = parse_cpu_list(cpu);
    if (!number || !saves_power(machine, cpu, governor)) continue;
    if (!near || near->intersects(*number)) slow[governor] = slow[governor] | *number;
  }
  Judge judge("KERN03");
  for (const auto& [governor, cpus] : slow)
    judge.found("CPUs " + cpus.to_list(), "performance", governor,
                {{governors.source.empty() ? "cpufreq/scaling_governor" : governors.source,
                  fmt::format("{} on CPUs {}, driver {}", governor, cpus.to_list(),
                              machine.cpufreq_driver.value.value_or("unknown"))}});
  return judge.outcome();
}

// ---- KERN04

Outcome check_KERN04(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (!machine.shm_free_bytes) return missing("free space of /dev/shm", machine.shm_free_bytes);
  if (*machine.shm_free_bytes >= kGiB) return Clean{"space is ample"};
  if (!machine.orphan_shm) return missing("owners of /dev/shm/nccl-*", machine.orphan_shm);
  if (machine.orphan_shm->empty()) return Clean{};
  Judge judge("KERN04");
  judge.found("/dev/shm", "no file of a dead job", fmt::format("{} files", machine.orphan_shm->size()),
              {{"/dev/shm", fmt::format("{}", fmt::join(*machine.orphan_shm, " "))},
               evidence_of(machine.shm_free_bytes, bytes_text(*machine.shm_free_bytes) + " free")});
  return judge.outcome();
}

constexpr Rule kKernRules[] = {
    {"KERN01", check_KERN01}, {"KERN02", check_KERN02}, {"KERN03", check_KERN03}, {"KERN04", check_KERN04}};

// ---- IRQ03

Outcome check_IRQ03(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (machine.interrupts.empty()) {
    if (machine.rdma_read && machine.ports.empty()) return Clean{"no RDMA NIC"};
    return NotEvaluated{"interrupts of the NICs: not captured"};
  }
  const model::PciTree tree(machine.topology);
  Judge judge("IRQ03");
  for (const auto& nic : machine.topology.nics) {
    const auto* device = tree.route_to(nic).device;
    if (device == nullptr || nic.is_virtual || !device->numa || !device->local_cpus ||
        device->local_cpus->empty())
      continue;
    int vectors = 0, outside = 0;
    CpuSet used;
    for (const auto& interrupt : machine.interrupts) {
      if (interrupt.device != name_of(nic) || !interrupt.effective || interrupt.effective->empty()) continue;
      ++vectors;
      used = used | *interrupt.effective;
      outside += interrupt.effective->intersects(*device->local_cpus) ? 0 : 1;
    }
    const bool far = vectors > 0 && outside * 2 > vectors, one_cpu = vectors > 1 && used.count() == 1;
    if (!far && !one_cpu) continue;
    auto& found = judge.found(
        name_of(nic), "CPUs of " + device->local_cpus->to_list(), "CPUs " + used.to_list(),
        {{fmt::format("/sys/class/infiniband/{}/device/msi_irqs", name_of(nic)),
          fmt::format("{} of {} vectors outside CPUs {}", outside, vectors, device->local_cpus->to_list())}});
    // Verbs poll: without the rate of the interrupts their effect is not proven.
    found.severity = Severity::info;
  }
  return judge.outcome();
}

constexpr Rule kIrqRules[] = {{"IRQ03", check_IRQ03}};

}  // namespace

std::span<const Rule> kern_rules() { return kKernRules; }
std::span<const Rule> irq_rules() { return kIrqRules; }

}  // namespace topotune::checks
