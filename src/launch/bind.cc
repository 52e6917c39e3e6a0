#include "launch/bind.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace topotune::launch {

namespace {

constexpr int kMaxNodes = 1024;  // the kernel's MAX_NUMNODES at most
constexpr std::size_t kBits = 8 * sizeof(unsigned long);

// A mask of kMaxCpu bits as the system calls take it.
struct Mask {
  std::vector<unsigned long> words = std::vector<unsigned long>(CpuSet::kMaxCpu / kBits, 0UL);
  std::size_t bytes() const { return words.size() * sizeof(unsigned long); }
};

Mask mask_of(const CpuSet& cpus) {
  Mask out;
  for (const int cpu : cpus.to_vector())
    out.words[static_cast<std::size_t>(cpu) / kBits] |= 1UL << (static_cast<std::size_t>(cpu) % kBits);
  return out;
}

CpuSet set_of(const Mask& mask, std::size_t bytes) {
  CpuSet out;
  for (std::size_t cpu = 0; cpu < bytes * 8; ++cpu)
    if ((mask.words[cpu / kBits] >> (cpu % kBits) & 1UL) != 0) out.add(static_cast<int>(cpu));
  return out;
}

tl::unexpected<Error> failed(const char* what, int number) {
  const auto code = number == EPERM || number == EACCES ? Errc::denied
                    : number == ENOSYS                  ? Errc::unsupported
                                                        : Errc::io;
  return fail(code, "{}: {}", what, std::strerror(number));
}

bool set_mask(const Mask& mask) {
  return ::syscall(SYS_sched_setaffinity, 0, mask.bytes(), mask.words.data()) == 0;
}

}  // namespace

Result<CpuSet> current_cpus() {
  Mask mask;
  const long bytes = ::syscall(SYS_sched_getaffinity, 0, mask.bytes(), mask.words.data());
  if (bytes < 0) return failed("sched_getaffinity", errno);
  return set_of(mask, static_cast<std::size_t>(bytes));
}

Result<CpuSet> allowed_by_cpuset() {
  const auto before = current_cpus();
  if (!before) return before;
  Mask all;
  for (auto& word : all.words) word = ~0UL;
  if (!set_mask(all)) return before;  // a kernel that does not cut the mask
  const auto allowed = current_cpus();
  if (!set_mask(mask_of(*before))) return failed("sched_setaffinity", errno);
  return allowed;
}

Result<CpuSet> bind_cpus(const CpuSet& cpus) {
  if (cpus.empty()) return fail(Errc::unsupported, "no CPU to bind to");
  if (!set_mask(mask_of(cpus))) {
    const int number = errno;
    return fail(number == EPERM ? Errc::denied : Errc::unsupported, "cannot bind to CPUs {}: {}",
                cpus.to_list(), std::strerror(number));
  }
  return current_cpus();
}

Result<bool> bind_memory(int node, MemoryPolicy policy) {
  if (policy == MemoryPolicy::none) return true;
  if (node < 0 || node >= kMaxNodes)
    return fail(Errc::unsupported, "memory node {} is beyond {}", node, kMaxNodes);
  std::array<unsigned long, kMaxNodes / kBits> nodes{};
  nodes[static_cast<std::size_t>(node) / kBits] = 1UL << (static_cast<std::size_t>(node) % kBits);
  const int mode = policy == MemoryPolicy::strict ? MPOL_BIND : MPOL_PREFERRED;
  if (::syscall(SYS_set_mempolicy, mode, nodes.data(), static_cast<unsigned long>(kMaxNodes)) != 0)
    return failed("set_mempolicy", errno);
  return true;
}

Result<std::string> current_memory_policy() {
  int mode = 0;
  std::array<unsigned long, kMaxNodes / kBits> nodes{};
  if (::syscall(SYS_get_mempolicy, &mode, nodes.data(), static_cast<unsigned long>(kMaxNodes), nullptr,
                0UL) != 0)
    return failed("get_mempolicy", errno);
  CpuSet set;
  for (int node = 0; node < kMaxNodes; ++node)
    if ((nodes[static_cast<std::size_t>(node) / kBits] >> (static_cast<std::size_t>(node) % kBits) & 1UL) !=
        0)
      set.add(node);
  switch (mode & 0xff) {
    case MPOL_BIND:
      return "bind:" + set.to_list();
    case MPOL_PREFERRED:
      return set.empty() ? "local" : "prefer:" + set.to_list();
    case MPOL_INTERLEAVE:
      return "interleave:" + set.to_list();
    default:
      return "default";
  }
}

}  // namespace topotune::launch
