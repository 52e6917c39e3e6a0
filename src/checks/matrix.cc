// Rules about the columns of `nvidia-smi topo -m`.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "checks/facts_of.h"
#include "checks/families.h"

namespace topotune::checks {
namespace {

using model::Gpu;

bool is_matrix(const model::Topology& topology) { return !topology.stated.empty(); }

// ---- TOPO17

// What is wrong inside one list: the parser says it as a warning about the input.
void find_odd_lists(const model::Topology& topology, Judge& judge) {
  for (const auto& warning : topology.warnings) {
    if (warning.code != "reversed-range" && warning.code != "duplicate-cpu") continue;
    const auto line = warning.line.value_or(0);
    auto& found = judge.found(fmt::format("line {}", line), "a list of CPUs", warning.text,
                              {{fmt::format("{}:{}", topology.source.name, line), warning.text}});
    if (warning.line) found.line = warning.line, found.file = topology.source.name;
  }
}

void find_shared_cpus(const model::Topology& topology, Judge& judge) {
  std::map<int, const Gpu*> by_node;
  for (const auto& gpu : topology.gpus) {
    if (!gpu.numa || !gpu.cpus || gpu.cpus->empty()) continue;
    for (const auto& [node, other] : by_node) {
      if (node == *gpu.numa || !other->cpus->intersects(*gpu.cpus)) continue;
      judge.found(
          other->id + " and " + gpu.id, "no common CPU on different nodes",
          fmt::format("CPUs {} for nodes {} and {}", (*other->cpus & *gpu.cpus).to_list(), node, *gpu.numa),
          {{topology.source.name,
            fmt::format("{}: CPUs {}, node {}", other->id, other->cpus->to_list(), node)},
           {topology.source.name,
            fmt::format("{}: CPUs {}, node {}", gpu.id, gpu.cpus->to_list(), *gpu.numa)}});
    }
    by_node.try_emplace(*gpu.numa, &gpu);
  }
}

Outcome check_TOPO17(const Evidence& evidence) {
  const auto& topology = evidence.machine->topology;
  if (!is_matrix(topology)) return NotEvaluated{"no nvidia-smi matrix in the input"};
  Judge judge("TOPO17");
  find_odd_lists(topology, judge);
  find_shared_cpus(topology, judge);
  const bool any = std::ranges::any_of(topology.gpus, [](const Gpu& gpu) { return gpu.cpus.has_value(); });
  if (!any) judge.unknown("CPU affinity of the GPUs: not in the input");
  return judge.outcome();
}

// ---- TOPO18

bool far_apart(const std::vector<model::Path>& paths, const std::set<std::string_view>& gpus) {
  return std::ranges::any_of(paths, [&](const model::Path& path) {
    return path.type == model::PathType::sys && gpus.contains(path.a) && gpus.contains(path.b);
  });
}

// GPUs far apart by their NICs: NVLink hides the PCI path between GPUs, but a NIC that is SYS of one and near
// another shows that they are on different nodes.
bool nics_tell_apart(const std::vector<model::Path>& paths, const std::set<std::string_view>& gpus) {
  std::map<std::string_view, std::pair<bool, bool>> near_and_far;
  for (const auto& path : paths) {
    const bool a = gpus.contains(path.a), b = gpus.contains(path.b);
    if (a == b || !path.type) continue;
    auto& entry = near_and_far[a ? path.b : path.a];
    entry.first = entry.first || *path.type < model::PathType::sys;
    entry.second = entry.second || *path.type == model::PathType::sys;
  }
  return std::ranges::any_of(near_and_far,
                             [](const auto& entry) { return entry.second.first && entry.second.second; });
}

Outcome check_TOPO18(const Evidence& evidence) {
  const auto& topology = evidence.machine->topology;
  if (!is_matrix(topology)) return NotEvaluated{"no nvidia-smi matrix in the input"};
  std::map<std::string, std::set<std::string_view>> by_list;
  std::size_t with_list = 0;
  for (const auto& gpu : topology.gpus) {
    if (!gpu.cpus || gpu.cpus->empty()) continue;
    ++with_list;
    by_list[gpu.cpus->to_list()].insert(gpu.id);
  }
  Judge judge("TOPO18");
  for (const auto& warning : topology.warnings) {
    if (warning.code != "numa-range") continue;
    judge.found(fmt::format("line {}", warning.line.value_or(0)), "one NUMA node", warning.text,
                {{fmt::format("{}:{}", topology.source.name, warning.line.value_or(0)), warning.text}});
  }
  if (with_list == 0) judge.unknown("CPU affinity of the GPUs: not in the input");
  for (const auto& [text, gpus] : by_list) {
    const auto cpus = parse_cpu_list(text);
    const bool too_few = cpus && static_cast<std::size_t>(cpus->count()) < gpus.size();
    const bool one_for_all = gpus.size() > 1 && gpus.size() == topology.gpus.size() &&
                             (far_apart(*evidence.paths, gpus) || nics_tell_apart(*evidence.paths, gpus));
    if (!too_few && !one_for_all) continue;
    judge.found(fmt::format("{}", fmt::join(gpus, " ")), "the CPUs of each GPU's node",
                fmt::format("CPUs {} for {} GPUs", text, gpus.size()),
                {{topology.source.name, fmt::format("CPU Affinity {}", text)}});
  }
  return judge.outcome();
}

constexpr Rule kRules[] = {{"TOPO17", check_TOPO17}, {"TOPO18", check_TOPO18}};

}  // namespace

std::span<const Rule> matrix_rules() { return kRules; }

}  // namespace topotune::checks
