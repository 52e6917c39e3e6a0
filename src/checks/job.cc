// Rules about a job's variables that only the machine beside them can answer: which rails, paths and plugins
// there are. NCCL src/transport/net_ib, src/graph/paths.cc, src/plugin/net.cc; user guide, environment
// variables.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "checks/facts_of.h"
#include "checks/families.h"

namespace topotune::checks {
namespace {

using model::PathType;
using model::RdmaPort;
using model::Severity;
using sv = std::string_view;

// The value of a variable that the job sets to something.
std::optional<std::string> value_of(const Evidence& evidence, const char* name) {
  if (!evidence.environment) return std::nullopt;
  const auto at = evidence.environment->find(name);
  return at == evidence.environment->end() || at->second.empty() ? std::nullopt : std::optional(at->second);
}

const Outcome kNoJob = NotEvaluated{"the job's variables: not known"};

model::Evidence setting(const char* name, const std::string& value) {
  return {"environment", fmt::format("{}={}", name, value)};
}

// ---- NCCL10

// NCCL_IB_HCA: "^" leaves out what is listed, "=" compares whole names (once, at the start), items are
// DEVICE[:PORT].
struct HcaFilter {
  bool negated = false, exact = false;
  std::vector<std::pair<std::string, std::optional<int>>> items;

  explicit HcaFilter(sv text) {
    if (text.starts_with('^')) negated = true, text.remove_prefix(1);
    if (text.starts_with('=')) exact = true, text.remove_prefix(1);
    for (const auto item : split(text, ',')) {
      const auto colon = item.find(':');
      const auto port = colon == sv::npos ? std::nullopt : parse_int<int>(item.substr(colon + 1));
      if (!trim(item).empty()) items.emplace_back(std::string(item.substr(0, colon)), port);
    }
  }
  bool takes(const RdmaPort& port) const {
    const bool listed = std::ranges::any_of(items, [&](const auto& item) {
      const bool name = exact ? port.device == item.first : port.device.starts_with(item.first);
      return name && (!item.second || *item.second == port.port);
    });
    return listed != negated;
  }
};

Outcome check_NCCL10(const Evidence& evidence) {
  if (!evidence.environment) return kNoJob;
  const auto list = value_of(evidence, "NCCL_IB_HCA");
  if (!list) return Clean{"NCCL_IB_HCA is not set"};
  if (evidence.machine->ports.empty()) return NotEvaluated{"RDMA ports: " + evidence.machine->rdma_read.why};
  const HcaFilter filter(*list);
  Judge judge("NCCL10");
  std::vector<std::string> idle;
  const auto rails = active_rails(evidence, "", judge);
  for (const auto* port : rails)
    if (!filter.takes(*port)) idle.push_back(name_of_port(*port));
  if (idle.empty() || rails.size() < 2) return judge.outcome();
  judge.found(fmt::format("{}", fmt::join(idle, " ")), fmt::format("all {} active rails", rails.size()),
              fmt::format("{} of them", rails.size() - idle.size()), {setting("NCCL_IB_HCA", *list)});
  return judge.outcome();
}

// ---- NCCL13

// Distances as NCCL orders them (src/graph/topo.h); a number is the old form: 0 LOC, 1 PIX, 2 PXB, 3 PHB, 4
// SYS.
std::optional<int> level_of(sv text) {
  constexpr std::pair<sv, int> kLevels[] = {{"LOC", 0}, {"NVL", 1}, {"NVB", 2}, {"C2C", 3}, {"PIX", 4},
                                            {"PXB", 5}, {"P2C", 6}, {"PXN", 7}, {"PHB", 8}, {"SYS", 9},
                                            {"0", 0},   {"1", 4},   {"2", 5},   {"3", 8},   {"4", 9}};
  for (const auto& [word, level] : kLevels)
    if (text == word) return level;
  return std::nullopt;
}

// NCCL has no NODE: two host bridges of one node are PHB there.
int level_of(PathType type) {
  switch (type) {
    case PathType::pix:
      return 4;
    case PathType::pxb:
      return 5;
    case PathType::phb:
    case PathType::node:
      return 8;
    case PathType::sys:
      return 9;
    default:
      return 3;
  }
}

Outcome check_NCCL13(const Evidence& evidence) {
  constexpr int kThroughCpu = 8;
  if (!evidence.environment) return kNoJob;
  const auto value = value_of(evidence, "NCCL_NET_GDR_LEVEL");
  const auto level = value ? level_of(*value) : std::nullopt;
  if (!level) return Clean{value ? "the level is no word of NCCL (NCCL14)" : "NCCL_NET_GDR_LEVEL is not set"};
  const auto pairs = model::pairs_of(evidence.machine->topology, *evidence.paths);
  if (pairs.empty()) return NotEvaluated{"paths between GPUs and NICs: not captured"};
  Judge judge("NCCL13");
  for (const auto& pair : pairs) {
    const int best = level_of(pair.type);
    const auto* gpu = model::find_gpu(evidence.machine->topology, pair.gpu);
    const std::string path = fmt::format("{} to {} is {}", pair.gpu, pair.nics.front(), name_of(pair.type));
    if (gpu != nullptr && gpu->c2c && *level == 5) {
      judge.found(pair.gpu, "unset", *value, {setting("NCCL_NET_GDR_LEVEL", *value), {"paths", path}})
          .severity = Severity::info;
    } else if (*level < best && best < kThroughCpu) {
      judge.found(pair.gpu, "a level that reaches " + std::string(name_of(pair.type)),
                  *value + ": GPUDirect RDMA is off",
                  {setting("NCCL_NET_GDR_LEVEL", *value), {"paths", path}});
    } else if (*level >= kThroughCpu && best >= kThroughCpu) {
      judge.found(pair.gpu, "unset (PXB)", *value + ": GPUDirect RDMA through the CPU",
                  {setting("NCCL_NET_GDR_LEVEL", *value), {"paths", path}});
    }
  }
  return judge.outcome();
}

// ---- NCCL28, NCCL32

// A library of that name is on the loader's path: "libnccl-net-NAME.so", "NAME" itself, or a path that is not
// ours to look at.
bool is_installed(const std::vector<std::string>& found, const std::string& prefix, const std::string& name) {
  return std::ranges::any_of(found, [&](const std::string& path) {
    const auto file = path.substr(path.rfind('/') + 1);
    return file.starts_with(prefix + name + ".so") || file == name || file.starts_with(name + ".");
  });
}

Outcome check_NCCL28(const Evidence& evidence) {
  if (!evidence.environment) return kNoJob;
  const auto net = value_of(evidence, "NCCL_NET"), plugin = value_of(evidence, "NCCL_NET_PLUGIN");
  if ((!net && !plugin) || plugin == "none") return Clean{"no network is asked for"};
  const auto& found = evidence.machine->nccl_plugins;
  if (!found) return missing("NCCL plugins on the library path", found);
  Judge judge("NCCL28");
  const bool own = net && (iequals(*net, "IB") || iequals(*net, "Socket"));
  const bool any_net = std::ranges::any_of(
      *found, [](const auto& path) { return path.find("libnccl-net") != std::string::npos; });
  if (net && !own && !any_net)
    judge.found("NCCL_NET", "IB, Socket, or the network of a libnccl-net*.so",
                *net + ", and no network plugin is there",
                {setting("NCCL_NET", *net), evidence_of(found, "no libnccl-net*.so")});
  if (plugin && plugin->find('/') == std::string::npos && !is_installed(*found, "libnccl-net-", *plugin))
    judge
        .found("NCCL_NET_PLUGIN", fmt::format("libnccl-net-{}.so on the library path", *plugin),
               "it is not there",
               {setting("NCCL_NET_PLUGIN", *plugin),
                evidence_of(found, fmt::format("{}", fmt::join(*found, " ")))})
        .severity = Severity::warn;
  return judge.outcome();
}

Outcome check_NCCL32(const Evidence& evidence) {
  if (!evidence.environment) return kNoJob;
  const auto plugin = value_of(evidence, "NCCL_TUNER_PLUGIN");
  if (!plugin || *plugin == "none") return Clean{"no tuner plugin is asked for"};
  if (plugin->find('/') != std::string::npos)
    return NotEvaluated{"whether " + *plugin + " exists: not captured"};
  const auto& found = evidence.machine->nccl_plugins;
  if (!found) return missing("NCCL plugins on the library path", found);
  Judge judge("NCCL32");
  if (!is_installed(*found, "libnccl-tuner-", *plugin))
    judge.found("NCCL_TUNER_PLUGIN", fmt::format("libnccl-tuner-{}.so on the library path", *plugin),
                "it is not there",
                {setting("NCCL_TUNER_PLUGIN", *plugin),
                 evidence_of(found, fmt::format("{}", fmt::join(*found, " ")))});
  return judge.outcome();
}

constexpr Rule kRules[] = {
    {"NCCL10", check_NCCL10}, {"NCCL13", check_NCCL13}, {"NCCL28", check_NCCL28}, {"NCCL32", check_NCCL32}};

}  // namespace

std::span<const Rule> job_rules() { return kRules; }

}  // namespace topotune::checks
