#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpuset.h"
#include "base/result.h"

namespace topotune::parse {

struct LscpuNode {
  int id = 0;
  CpuSet cpus;
  int line = 0;
};

struct LscpuCpu {  // a row of `lscpu -e` or `lscpu -p`
  int cpu = 0;
  std::optional<int> node, socket, core;
};

struct Lscpu {
  std::optional<std::string> architecture, vendor, model_name, hypervisor;
  std::optional<int> cpus, sockets, numa_nodes, threads_per_core, cores_per_socket, family, model;
  std::optional<CpuSet> online;
  // The "hypervisor" bit of the flags; nothing where no flags are printed.
  std::optional<bool> hypervisor_flag;
  int hypervisor_line = 0, online_line = 0, flags_line = 0;
  std::vector<LscpuNode> nodes;
  std::vector<LscpuCpu> table;
};

// `lscpu`, `lscpu -e` and `lscpu -p`.
bool looks_like_lscpu(std::string_view text);
Result<Lscpu> parse_lscpu(std::string_view text);

}  // namespace topotune::parse
