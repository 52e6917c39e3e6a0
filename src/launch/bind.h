#pragma once

#include <optional>
#include <string>

#include "base/cpuset.h"
#include "base/result.h"

namespace topotune::launch {

// How strictly the memory of a process keeps to a node. `preferred`: the node while it has room (mempolicy's
// MPOL_PREFERRED); `strict`: never another one (MPOL_BIND), so that a full node ends the process.
enum class MemoryPolicy { none, preferred, strict };

// The CPUs that the kernel would let this process run on whatever a launcher asked for: its cpuset. The mask
// that the process has now is put back.
Result<CpuSet> allowed_by_cpuset();
Result<CpuSet> current_cpus();

// For this process and everything it starts (sched_setaffinity(2), set_mempolicy(2): hwloc_set_cpubind and
// hwloc_set_membind make the same calls, after reading every file of sysfs about the machine first). The
// result is what the kernel reads back.
Result<CpuSet> bind_cpus(const CpuSet& cpus);
Result<bool> bind_memory(int node, MemoryPolicy policy);
// "bind:1", "preferred:0", "default": as numa_maps writes it.
Result<std::string> current_memory_policy();

}  // namespace topotune::launch
