#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/cpuset.h"
#include "base/text.h"
#include "host/files.h"
#include "host/probe_list.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace topotune::host {
namespace {

using Json = nlohmann::ordered_json;

Json limit_json(rlim_t value) { return value == RLIM_INFINITY ? Json(nullptr) : Json(std::uint64_t{value}); }

Json limits_of(decltype(RLIMIT_MEMLOCK) which) {
  rlimit limit{};
  if (::getrlimit(which, &limit) != 0) return {{"error", "getrlimit failed"}};
  return {{"soft", limit_json(limit.rlim_cur)}, {"hard", limit_json(limit.rlim_max)}};
}

// The kernel wants a mask at least as long as its own: grow until it fits.
Json affinity() {
  for (int cpus = 1024; cpus <= CpuSet::kMaxCpu; cpus *= 2) {
    cpu_set_t* const mask = CPU_ALLOC(static_cast<std::size_t>(cpus));
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    const bool known = ::sched_getaffinity(0, size, mask) == 0;
    CpuSet set;
    for (int cpu = 0; known && cpu < cpus; ++cpu)
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), size, mask)) set.add(cpu);
    CPU_FREE(mask);
    if (known) return set.to_list();
  }
  return {{"error", "sched_getaffinity failed"}};
}

Json effective_capabilities() {
  const auto status = read_file("/proc/self/status", "/proc/self/status");
  if (!status) return {{"error", status.error().text}};
  for (const auto line : lines(*status))
    if (line.starts_with("CapEff:")) return std::string(trim(line.substr(7)));
  return {{"error", "/proc/self/status: no CapEff"}};
}

// CPUID leaf 1, ECX bit 31; the vendor's 12 letters in leaf 0x40000000 (Linux:
// arch/x86/include/asm/processor.h).
void add_hypervisor(Json& out) {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return;
  const bool present = (c & 1u << 31) != 0;
  out["hypervisor"] = present;
  if (!present) return;
  __cpuid(0x40000000, a, b, c, d);
  std::string vendor;
  for (const unsigned word : {b, c, d})
    for (int i = 0; i < 4; ++i) vendor += static_cast<char>(word >> (8 * i) & 0xff);
  vendor = vendor.substr(0, vendor.find('\0'));
  out["hypervisor_vendor"] = printable(trim(vendor));
#else
  out["hypervisor"] = Json{{"error", "this processor does not tell"}};
#endif
}

}  // namespace

Result<std::string> probe_process(const ProbeQuestion&) {
  Json out{{"uid", ::getuid()}, {"euid", ::geteuid()}};
  out["cap_effective"] = effective_capabilities();
  out["affinity"] = affinity();
  out["memlock"] = limits_of(RLIMIT_MEMLOCK);
  out["nofile"] = limits_of(RLIMIT_NOFILE);
  add_hypervisor(out);
  return out.dump();
}

}  // namespace topotune::host
