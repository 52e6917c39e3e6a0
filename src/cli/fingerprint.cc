#include "cli/fingerprint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/text.h"

extern char** environ;

namespace topotune::cli {

namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

std::string fact(const model::Fact<std::string>& f) { return f ? *f : ""; }

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return std::string(trim(line.substr(line.find(':') + 1)));
  return "";
}

// Only what is set: a variable that is absent has no entry. Debug output changes no number.
void add_variables(Entries& out) {
  Entries found;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry(*at);
    const auto mark = entry.find('=');
    if (mark == std::string_view::npos || !(entry.starts_with("NCCL_") || entry.starts_with("UCX_")))
      continue;
    const auto name = entry.substr(0, mark);
    if (name.starts_with("NCCL_DEBUG") || name == "UCX_LOG_LEVEL") continue;
    found.emplace_back(name, printable(entry.substr(mark + 1)));
  }
  std::ranges::sort(found);
  out.insert(out.end(), found.begin(), found.end());
}

}  // namespace

std::string gpus_text(const model::Topology& topology) {
  std::map<std::string, int> names;
  for (const auto& gpu : topology.gpus) ++names[gpu.name.value_or("unknown")];
  std::string out;
  for (const auto& [name, count] : names)
    out += fmt::format("{}{} x {}", out.empty() ? "" : ", ", count, name);
  return out;
}

Entries fingerprint(const model::Machine& machine) {
  Entries out{{"gpus", gpus_text(machine.topology)},
              {"driver", fact(machine.nvidia_driver)},
              {"cuda_driver", fact(machine.cuda_driver)},
              {"cpu", cpu_name()},
              {"cpus", std::to_string(std::max(1l, ::sysconf(_SC_NPROCESSORS_ONLN)))},
              {"numa_nodes", std::to_string(machine.topology.numa.size())},
              {"kernel", fact(machine.kernel)},
              {"hypervisor", fact(machine.hypervisor)}};
  if (machine.numa_balancing) out.emplace_back("numa_balancing", std::to_string(*machine.numa_balancing));
  if (machine.thp) out.emplace_back("transparent_hugepage", *machine.thp);
  add_variables(out);
  return out;
}

}  // namespace topotune::cli
