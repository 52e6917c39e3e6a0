// Rules about NVLink, NVSwitch and the fabric. NVML (nvmlDeviceGetNvLinkState, nvmlDeviceGetGpuFabricInfo),
// data/machines/ for what a model has.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/bdf.h"
#include "base/text.h"
#include "checks/facts_of.h"
#include "checks/families.h"
#include "checks/readings.h"

namespace topotune::checks {
namespace {

using model::Gpu;
using model::Machine;
using model::PathType;

// "all links are inActive" names none of them: 0 active is a statement too.
bool states_its_links(const Gpu& gpu) {
  return gpu.nvlinks && (*gpu.nvlinks == 0 || !gpu.inactive_links.empty() || !gpu.link_speeds.empty() ||
                         gpu.nvlinks_capable);
}

bool mig_on(const Machine& machine) {
  return std::ranges::any_of(machine.topology.gpus, [](const Gpu& gpu) { return gpu.mig.value_or(false); });
}

std::string list(const std::vector<int>& numbers) { return fmt::format("{}", fmt::join(numbers, ", ")); }

// The most active links of another GPU of this model; nothing when there is none.
std::optional<int> best_sibling(const Machine& machine, const Gpu& gpu) {
  std::optional<int> best;
  for (const auto& other : machine.topology.gpus)
    if (&other != &gpu && states_its_links(other) && same_model(other, gpu).value_or(false))
      best = std::max(best.value_or(0), *other.nvlinks);
  return best;
}

// ---- NVL01

model::Severity severity_of_loss(const Machine& machine, const KnownGpu* known, std::optional<int> sibling,
                                 int active, int expected) {
  if (machine.nvlink_disabled.value.value_or(false)) return model::Severity::info;
  const bool others_are_whole = sibling && *sibling >= expected && *sibling > active;
  if (others_are_whole)
    return known != nullptr && known->nvlinks ? model::Severity::error : model::Severity::warn;
  // All GPUs of the model have equally few: a board, a slice of one in a virtual machine, or a fault of all.
  return machine.virtual_machine.value.value_or(false) ? model::Severity::info : model::Severity::warn;
}

std::string model_name(const KnownGpu& known) {
  return known.names.empty() ? fmt::format("{:04x}:{:04x}", known.vendor, known.device)
                             : std::string(known.names.front());
}

void judge_links(const Machine& machine, const Gpu& gpu, Judge& judge) {
  const auto* known = known_gpu(gpu);
  if (known != nullptr && known->wiring != Wiring::board) return;  // cards with or without bridge
  const auto sibling = best_sibling(machine, gpu);
  const auto expected = known != nullptr && known->nvlinks ? known->nvlinks : sibling;
  if (!expected) return judge.unknown(gpu.id + ": how many NVLinks its model has is not known");
  if (*gpu.nvlinks >= *expected) return;
  const bool by_model = known != nullptr && known->nvlinks;
  const auto why = by_model
                       ? fmt::format("{} ({})", *expected, model_name(*known))
                       : fmt::format("{}, as its siblings (how many its model has is not known)", *expected);
  auto& found = judge.found(gpu.id, why, fmt::format("{} active", *gpu.nvlinks),
                            {{"nvmlDeviceGetNvLinkState",
                              gpu.inactive_links.empty() ? fmt::format("{} links active", *gpu.nvlinks)
                                                         : "inactive links: " + list(gpu.inactive_links)}});
  found.severity = severity_of_loss(machine, known, sibling, *gpu.nvlinks, *expected);
}

// Why it is not known of every pair of GPUs whether links join it; "" when it is.
std::string unknown_pairs(const Evidence& evidence) {
  const auto& topology = evidence.machine->topology;
  if (evidence.paths->empty() && topology.gpus.size() != 1) return "paths between the GPUs: not captured";
  const auto may_have_links = [&](const std::string& id) {
    const auto* gpu = model::find_gpu(topology, id);
    const auto* known = gpu == nullptr ? nullptr : known_gpu(*gpu);
    return gpu != nullptr && (known == nullptr || known->wiring != Wiring::none);
  };
  const auto untold = std::ranges::find_if(*evidence.paths, [&](const model::Path& path) {
    return !path.links_told && may_have_links(path.a) && may_have_links(path.b);
  });
  if (untold != evidence.paths->end())
    return fmt::format("NVLink between {} and {}: not captured", untold->a, untold->b);
  return topology.source.complete ? "" : "not every pair of GPUs is in the input";
}

// Links of each GPU as the pairs show them: to a switch, a GPU has its own number in every pair unless the
// other has fewer. Empty where the links end elsewhere.
std::map<std::string, int> links_to_switch(const Evidence& evidence) {
  std::map<std::string, int> out;
  const bool switched = model::shape_of(evidence.machine->topology, *evidence.paths).name == "NVSwitch";
  if (!switched || !unknown_pairs(evidence).empty()) return out;
  for (const auto& path : *evidence.paths) {
    if (path.type != PathType::nvl || !path.nvlinks) continue;
    for (const auto* id : {&path.a, &path.b}) out[*id] = std::max(out[*id], *path.nvlinks);
  }
  return out;
}

// GPUs that do not state their links, by the pairs of the machine.
void judge_pairs(const Evidence& evidence, Judge& judge) {
  const auto& machine = *evidence.machine;
  const auto links = links_to_switch(evidence);
  int most = 0;
  for (const auto& [id, count] : links) most = std::max(most, count);
  for (const auto& [id, count] : links) {
    const auto* gpu = model::find_gpu(machine.topology, id);
    if (count == most || gpu == nullptr || states_its_links(*gpu)) continue;
    const bool other_model = std::ranges::any_of(
        machine.topology.gpus, [&](const Gpu& other) { return !same_model(other, *gpu).value_or(true); });
    if (other_model) continue;
    auto& found =
        judge.found(id, fmt::format("{}, as its siblings", most), fmt::format("{} active", count),
                    {{machine.topology.source.name, fmt::format("NV{} at most in its pairs", count)}});
    found.severity =
        machine.virtual_machine.value.value_or(false) ? model::Severity::info : model::Severity::warn;
  }
}

Outcome check_NVL01(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  const auto& gpus = machine.topology.gpus;
  if (mig_on(machine)) return NotEvaluated{"MIG is on: NVLink state cannot be asked"};
  Judge judge("NVL01");
  std::size_t stated = 0;
  for (const auto& gpu : gpus) {
    const auto* known = known_gpu(gpu);
    if (known != nullptr && known->wiring == Wiring::none) continue;
    if (!states_its_links(gpu)) {
      judge.unknown(gpu.id + ": state of its NVLinks: not captured");
      continue;
    }
    ++stated;
    // "GPU 6" alone is one of several: the text is a part.
    const bool alone = gpus.size() == 1 && gpu.index == 0;
    const bool whole = known != nullptr && known->wiring == Wiring::board && known->nvlinks &&
                       *gpu.nvlinks >= *known->nvlinks;
    if (!alone)
      judge_links(machine, gpu, judge);
    else if (!whole && known == nullptr)
      judge.unknown(gpu.id + ": its model is not known, and it has no sibling");
  }
  if (gpus.empty()) return NotEvaluated{"no GPU in the input"};
  judge_pairs(evidence, judge);
  return judge.outcome(stated == 0 ? "no GPU with NVLink" : gpus.size() == 1 ? "a single GPU" : "");
}

// ---- NVL02

bool one_model(const std::vector<Gpu>& gpus) {
  return std::ranges::all_of(gpus,
                             [&](const Gpu& gpu) { return same_model(gpu, gpus.front()).value_or(false); });
}

bool several_models(const std::vector<Gpu>& gpus) {
  return std::ranges::any_of(gpus,
                             [&](const Gpu& gpu) { return !same_model(gpu, gpus.front()).value_or(true); });
}

bool any_card(const std::vector<Gpu>& gpus) {
  return std::ranges::any_of(gpus, [](const Gpu& gpu) {
    const auto* known = known_gpu(gpu);
    return known != nullptr && (known->wiring == Wiring::bridge || known->wiring == Wiring::none);
  });
}

// Of every pair of this GPU it is known that no link joins it.
bool surely_alone(const std::vector<model::Path>& paths, const std::vector<Gpu>& gpus,
                  const std::string& id) {
  std::set<std::string_view> others;
  for (const auto& gpu : gpus)
    if (gpu.id != id) others.insert(gpu.id);
  std::size_t known = 0;
  for (const auto& path : paths) {
    const auto& other = path.a == id ? path.b : path.a;
    if ((path.a != id && path.b != id) || !others.contains(other)) continue;
    if (!path.links_told || path.type == PathType::nvl || path.type == PathType::xgmi) return false;
    ++known;
  }
  return known == others.size();
}

// GPUs whose links are all inactive although a sibling of the model has active ones.
void find_dark_gpus(const Machine& machine, const std::set<std::string>& said, Judge& judge) {
  for (const auto& gpu : machine.topology.gpus) {
    if (said.contains(gpu.id) || !states_its_links(gpu) || *gpu.nvlinks > 0) continue;
    const auto* known = known_gpu(gpu);
    if (known != nullptr && known->wiring != Wiring::board) continue;
    const auto sibling = best_sibling(machine, gpu);
    if (!sibling || *sibling == 0) continue;
    judge.found(gpu.id, fmt::format("{} active links, as its siblings", *sibling), "all links inactive",
                {{"nvmlDeviceGetNvLinkState", gpu.inactive_links.empty()
                                                  ? std::string("all links are inactive")
                                                  : "inactive links: " + list(gpu.inactive_links)}});
  }
}

// GPUs outside of the one island that holds most: one beside an island that is no bridge, or up to half of
// the machine's beside NVSwitches.
std::vector<std::string> outside(const Evidence& evidence, const std::vector<std::string>& island) {
  constexpr std::size_t kNoBridge = 3;  // an island of two is a bridge
  const auto& gpus = evidence.machine->topology.gpus;
  std::vector<std::string> out;
  for (const auto& gpu : gpus)
    if (std::ranges::find(island, gpu.id) == island.end()) out.push_back(gpu.id);
  const bool switched = model::shape_of(evidence.machine->topology, *evidence.paths).name == "NVSwitch" &&
                        out.size() <= island.size();
  const bool fits = island.size() >= kNoBridge && (out.size() == 1 || switched);
  if (!fits || several_models(gpus) || any_card(gpus)) out.clear();
  return out;
}

Outcome check_NVL02(const Evidence& evidence) {
  constexpr std::size_t kSurelyAFabric = 7;  // no bridge joins so many: the eighth has dropped out
  const auto& machine = *evidence.machine;
  const auto& gpus = machine.topology.gpus;
  if (gpus.size() < 2)
    return gpus.empty() ? Outcome(NotEvaluated{"no GPU in the input"}) : Outcome(Clean{"a single GPU"});
  if (mig_on(machine)) return NotEvaluated{"MIG is on: NVLink state cannot be asked"};
  Judge judge("NVL02");
  std::set<std::string> said;
  const auto islands = model::islands_of(machine.topology, *evidence.paths);
  const bool xgmi =
      std::ranges::any_of(*evidence.paths, [](const auto& path) { return path.type == PathType::xgmi; });
  if (islands.size() == 1) {
    const auto& island = islands.front();
    for (const auto& lost : outside(evidence, island)) {
      if (!surely_alone(*evidence.paths, gpus, lost)) continue;
      if (xgmi && island.size() < kSurelyAFabric) {
        judge.unknown("the models are not known: a bridge may join as many cards");
        continue;
      }
      auto& found = judge.found(
          lost, "NVLink to the other GPUs", "no NVLink to any of them",
          {{machine.topology.source.name, fmt::format("NVLink joins {}", fmt::join(island, " "))}});
      if (xgmi || (island.size() < kSurelyAFabric && !one_model(gpus)))
        found.severity = model::Severity::warn;
      said.insert(lost);
    }
  }
  find_dark_gpus(machine, said, judge);
  if (const auto why = unknown_pairs(evidence); !why.empty()) judge.unknown(why);
  return judge.outcome();
}

// ---- NVL03

// Cards of one model: GPUs known as cards, or, where nothing tells models, islands of two only (bridges).
bool bridged_cards(const Machine& machine, const std::vector<std::vector<std::string>>& islands) {
  const auto& gpus = machine.topology.gpus;
  const auto bridge = [](const Gpu& gpu) {
    const auto* known = known_gpu(gpu);
    return known == nullptr || known->wiring == Wiring::bridge;
  };
  if (!std::ranges::all_of(gpus, bridge) || several_models(gpus)) return false;
  return std::ranges::all_of(islands, [](const auto& island) { return island.size() == 2; });
}

Outcome check_NVL03(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  const auto& gpus = machine.topology.gpus;
  if (gpus.empty()) return NotEvaluated{"no GPU in the input"};
  if (gpus.size() % 2 != 0) return Clean{"an odd number of GPUs"};
  if (const auto why = unknown_pairs(evidence); !why.empty()) return NotEvaluated{why};
  const auto islands = model::islands_of(machine.topology, *evidence.paths);
  if (islands.empty()) return Clean{"no NVLink pair"};
  if (!bridged_cards(machine, islands)) return Clean{"not bridged cards of one model"};
  std::set<std::string> joined;
  for (const auto& island : islands) joined.insert(island.begin(), island.end());
  std::map<int, std::vector<std::string>> alone;  // by NUMA node
  for (const auto& gpu : gpus)
    if (!joined.contains(gpu.id) && gpu.numa) alone[*gpu.numa].push_back(gpu.id);
  Judge judge("NVL03");
  for (const auto& [node, ids] : alone) {
    if (ids.size() < 2) continue;
    judge.found(fmt::format("{}-{}", ids[0], ids[1]),
                "a bridge, as between " + fmt::format("{}", fmt::join(islands.front(), " and ")), "no NVLink",
                {{machine.topology.source.name,
                  fmt::format("node {}: {} without NVLink", node, fmt::join(ids, " "))}});
  }
  return judge.outcome();
}

// ---- NVL04

struct BridgedPair {
  const Gpu *a = nullptr, *b = nullptr;
  int links = 0;
};

std::vector<BridgedPair> bridged_pairs(const Evidence& evidence) {
  std::vector<BridgedPair> out;
  const auto& topology = evidence.machine->topology;
  for (const auto& path : *evidence.paths) {
    const auto *a = model::find_gpu(topology, path.a), *b = model::find_gpu(topology, path.b);
    if (a == nullptr || b == nullptr) continue;
    if (path.type == PathType::nvl && path.nvlinks) out.push_back({a, b, *path.nvlinks});
    // The links of a machine's two GPUs lead to each other.
    if (!path.type && topology.gpus.size() == 2 && a->nvlinks && b->nvlinks &&
        std::min(*a->nvlinks, *b->nvlinks) > 0)
      out.push_back({a, b, std::min(*a->nvlinks, *b->nvlinks)});
  }
  return out;
}

// How many links a whole bridge of this pair carries: from the model, else from the other bridges of the
// machine.
std::optional<int> whole_bridge(const BridgedPair& pair, const std::vector<BridgedPair>& all,
                                bool pairs_only) {
  const auto* known = known_gpu(*pair.a);
  if (known != nullptr) {
    if (known->wiring != Wiring::bridge || known->links_per_bridge == 0) return std::nullopt;
    const int bridges = (pair.links + known->links_per_bridge - 1) / known->links_per_bridge;
    constexpr int kMostBridges = 3;  // places that a card has for them: more links are not a bridge's
    if (bridges > kMostBridges) return std::nullopt;
    return bridges * known->links_per_bridge;
  }
  if (!pairs_only || all.size() < 2 || !same_model(*pair.a, *pair.b).value_or(true)) return std::nullopt;
  return std::ranges::max_element(all, {}, &BridgedPair::links)->links;
}

Outcome check_NVL04(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  const auto all = bridged_pairs(evidence);
  auto why = unknown_pairs(evidence);
  if (std::ranges::any_of(*evidence.paths, [](const model::Path& path) {
        return path.type == PathType::nvl && !path.nvlinks;
      }))
    why = "how many links join the GPUs: not told";
  if (all.empty()) return why.empty() ? Outcome(Clean{"no NVLink pair"}) : Outcome(NotEvaluated{why});
  const auto islands = model::islands_of(machine.topology, *evidence.paths);
  const bool pairs_only = std::ranges::all_of(islands, [](const auto& island) { return island.size() == 2; });
  Judge judge("NVL04");
  for (const auto& pair : all) {
    const auto whole = whole_bridge(pair, all, pairs_only);
    if (!whole || pair.links >= *whole) continue;
    judge.found(pair.a->id + "-" + pair.b->id, fmt::format("{} links", *whole),
                fmt::format("{} links", pair.links),
                {{machine.topology.source.name, fmt::format("NV{}", pair.links)}});
  }
  const bool cards_unknown = pairs_only && all.size() == 1 && known_gpu(*all.front().a) == nullptr;
  if (cards_unknown) judge.unknown("the model is not known: how many links its bridge carries");
  if (!why.empty() && all.size() * 2 < machine.topology.gpus.size()) judge.unknown(why);
  return judge.outcome();
}

// ---- NVL05

Outcome check_NVL05(const Evidence& evidence) {
  constexpr double kRounding = 0.02;  // 26.562 is printed for 26.5625
  Judge judge("NVL05");
  bool any = false;
  for (const auto& gpu : evidence.machine->topology.gpus) {
    if (gpu.link_speeds.empty()) continue;
    any = true;
    const auto* known = known_gpu(gpu);
    double best = known != nullptr ? known->link_gbytes_per_s : 0;
    for (const auto& [link, speed] : gpu.link_speeds) best = std::max(best, speed.value);
    for (const auto& [link, speed] : gpu.link_speeds) {
      if (speed.value >= best * (1 - kRounding)) continue;
      const bool by_model = known != nullptr && known->link_gbytes_per_s == best;
      judge.found(fmt::format("{} link {}", gpu.id, link),
                  fmt::format("{} GB/s, as {}", best, by_model ? "its model has" : "its other links"),
                  fmt::format("{} GB/s", speed.value),
                  {{"nvidia-smi nvlink -s", fmt::format("Link {}: {} GB/s", link, speed.value)}});
    }
  }
  if (!any) judge.unknown("speed of the NVLinks: not captured");
  return judge.outcome();
}

// One link in both readings. Replays and recoveries: one a minute; CRC errors of flits: one a second, error
// from 100.
void judge_link_errors(const Evidence& evidence, const std::string& subject,
                       const std::map<std::string, std::uint64_t>& before,
                       const std::map<std::string, std::uint64_t>& now, Judge& judge) {
  constexpr double kRetriesPerSecond = 1.0 / 60, kCrcPerSecond = 1, kCrcFatal = 100;
  for (const char* name : {"replay", "recovery", "crc_flit"}) {
    const auto events = rise(value_of(before, name), value_of(now, name));
    if (events.value_or(0) == 0) continue;
    const auto rate = per_second(evidence, *events);
    if (!rate) {
      judge.unknown("the time between the readings: unknown (--interval SECONDS tells it)");
      continue;
    }
    const bool crc = std::string_view(name) == "crc_flit";
    if (*rate < (crc ? kCrcPerSecond : kRetriesPerSecond)) continue;
    auto& found =
        judge.found(subject, fmt::format("the {} counter stands still", name),
                    fmt::format("it rose by {} {}", *events, interval_text(evidence)),
                    {{"NVLink counters", fmt::format("{} {} -> {}", name, before.at(name), now.at(name))}});
    if (!crc || *rate >= kCrcFatal) found.severity = model::Severity::error;
  }
}

Outcome check_NVL06(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  const bool none =
      !machine.topology.gpus.empty() &&
      std::ranges::all_of(machine.topology.gpus, [](const Gpu& gpu) { return gpu.nvlinks == 0; });
  if (none) return Clean{"no NVLink"};
  if (const auto why = no_earlier_reading(evidence)) return *why;
  Judge judge("NVL06");
  bool any = false;
  for (const auto& now : machine.gpu_states) {
    const auto* before = model::find_state(*evidence.before, now.gpu);
    if (before == nullptr) continue;
    for (const auto& [link, errors] : now.nvlink_errors) {
      const auto then = before->nvlink_errors.find(link);
      if (then == before->nvlink_errors.end()) continue;
      any = true;
      judge_link_errors(evidence, fmt::format("{} link {}", now.gpu, link), then->second, errors, judge);
    }
  }
  if (!any) judge.unknown("error counters of the NVLinks: not in both readings");
  return judge.outcome();
}

// ---- NVL07

constexpr int kFabricNotSupported = 0, kFabricInProgress = 2, kFabricCompleted = 3;

// nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*: two bits a fact (bandwidth degraded, route recovery, route
// unhealthy, access timeout recovery): 0 not supported, 1 true, 2 false.
struct Health {
  bool degraded = false, recovering = false, unhealthy = false;
};

Health health_of(std::uint32_t mask) {
  constexpr unsigned kTrue = 1, kFactBits = 2, kConfigBits = 0xf, kConfigShift = 8, kConfigNone = 1;
  const auto is_true = [&](unsigned fact) { return ((mask >> (fact * kFactBits)) & 3U) == kTrue; };
  const auto config = (mask >> kConfigShift) & kConfigBits;  // 0 not supported, 1 none, others name a fault
  return {is_true(0), is_true(1) || is_true(3), is_true(2) || config > kConfigNone};
}

bool zero_uuid(const std::string& uuid) { return uuid.find_first_not_of("0-") == std::string::npos; }

std::string fabric_text(const model::GpuState& state) {
  const auto number = [](const auto& value) {
    return value ? fmt::format("{}", *value) : std::string("unknown");
  };
  const auto mask = state.fabric_health_mask ? fmt::format("0x{:x}", *state.fabric_health_mask) : "unknown";
  return fmt::format("state {}, status {}, healthMask {}, cliqueId {}, clusterUuid {}",
                     number(state.fabric_state), number(state.fabric_status), mask,
                     state.clique.value_or("unknown"), state.cluster_uuid.value_or("unknown"));
}

const char* name_of_state(int state) {
  constexpr const char* kNames[] = {"not supported", "not started", "in progress", "completed"};
  return state >= 0 && state <= kFabricCompleted ? kNames[state] : "unknown";
}

void judge_fabric(const model::GpuState& state, Judge& judge) {
  const std::vector<model::Evidence> lines{{"nvmlDeviceGetGpuFabricInfo", fabric_text(state)}};
  if (*state.fabric_state != kFabricCompleted) {
    auto& found = judge.found(state.gpu, "state completed",
                              fmt::format("state {}", name_of_state(*state.fabric_state)), lines);
    // Also seen for some seconds after boot or a restart of the fabric manager: read again.
    if (*state.fabric_state == kFabricInProgress) found.severity = model::Severity::warn;
    return;
  }
  if (state.fabric_status.value_or(0) != 0) {
    judge.found(state.gpu, "status 0 (success)", fmt::format("status {}", *state.fabric_status), lines);
    return;
  }
  const auto health = health_of(state.fabric_health_mask.value_or(0));
  if (health.unhealthy || health.degraded || health.recovering) {
    auto& found = judge.found(state.gpu, "a healthy fabric",
                              health.unhealthy  ? "unhealthy route or wrong configuration"
                              : health.degraded ? "reduced bandwidth"
                                                : "recovery in progress",
                              lines);
    if (!health.unhealthy) found.severity = model::Severity::warn;
  }
}

// GPUs of one node belong to one clique of one cluster.
void compare_cliques(const std::vector<const model::GpuState*>& states, Judge& judge) {
  std::map<std::pair<std::string, std::string>, std::vector<const model::GpuState*>> groups;
  for (const auto* state : states)
    if (state->clique && state->cluster_uuid) groups[{*state->cluster_uuid, *state->clique}].push_back(state);
  if (groups.size() < 2) return;
  const auto most =
      std::ranges::max_element(groups, {}, [](const auto& group) { return group.second.size(); });
  for (const auto& [key, members] : groups) {
    if (key == most->first) continue;
    for (const auto* state : members)
      judge.found(
          state->gpu,
          fmt::format("clique {} of cluster {}, as the others", most->first.second, most->first.first),
          fmt::format("clique {} of cluster {}", key.second, key.first),
          {{"nvmlDeviceGetGpuFabricInfo", fabric_text(*state)}});
  }
}

Outcome check_NVL07(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (mig_on(machine)) return Clean{"MIG is on"};
  Judge judge("NVL07");
  std::vector<const model::GpuState*> with_fabric;
  bool any = false;
  for (const auto& state : machine.gpu_states) {
    if (!state.fabric_state) continue;
    any = true;
    const auto* gpu = model::find_gpu(machine.topology, state.gpu);
    const auto* known = gpu == nullptr ? nullptr : known_gpu(*gpu);
    const bool card = known != nullptr && (known->wiring == Wiring::bridge || known->wiring == Wiring::none);
    if (*state.fabric_state == kFabricNotSupported || card) continue;
    with_fabric.push_back(&state);
    judge_fabric(state, judge);
  }
  compare_cliques(with_fabric, judge);
  if (!any) return NotEvaluated{"fabric state of the GPUs: not captured"};
  return judge.outcome(with_fabric.empty() ? "no GPU with a fabric" : "");
}

// ---- NVL08, NVL09: the fabric manager

constexpr std::uint16_t kSwitchV100 = 0x1ac2, kSwitchA100 = 0x1af1, kSwitchH100 = 0x22a3;

std::vector<const model::PciDevice*> switches_of(const model::Topology& topology) {
  std::vector<const model::PciDevice*> out;
  for (const auto& device : topology.pci)
    if (device.kind == model::PciKind::nvswitch) out.push_back(&device);
  return out;
}

bool needs_fabric_manager(const model::PciDevice& device) {
  return device.device == kSwitchV100 || device.device == kSwitchA100 || device.device == kSwitchH100;
}

Outcome check_NVL08(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  const auto switches = switches_of(machine.topology);
  const bool any =
      std::ranges::any_of(switches, [](const auto* device) { return needs_fabric_manager(*device); });
  if (!any && (lists_devices(machine.topology) || !switches.empty()))
    return Clean{"no NVSwitch that needs it"};
  if (!any) return NotEvaluated{"NVSwitches: not captured"};
  if (!machine.fabric_manager) return missing("state of nvidia-fabricmanager", machine.fabric_manager);
  if (machine.container.value.value_or(false))
    return NotEvaluated{"in a container, the host's services are not seen"};
  Judge judge("NVL08");
  const auto devices = fmt::format("{} NVSwitches", switches.size());
  if (*machine.fabric_manager != "active") {
    judge.found(
        "host", "nvidia-fabricmanager active", *machine.fabric_manager,
        {evidence_of(machine.fabric_manager, *machine.fabric_manager), {"/sys/bus/pci/devices", devices}});
  } else if (!machine.fabric_manager_version || !machine.nvidia_driver) {
    judge.unknown("version of the fabric manager: " + machine.fabric_manager_version.why);
  } else if (*machine.fabric_manager_version != *machine.nvidia_driver) {
    judge.found("host", "fabric manager " + *machine.nvidia_driver + ", as the driver",
                *machine.fabric_manager_version,
                {evidence_of(machine.fabric_manager_version, *machine.fabric_manager_version),
                 evidence_of(machine.nvidia_driver, *machine.nvidia_driver)});
  }
  return judge.outcome();
}

Outcome check_NVL09(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (!switches_of(machine.topology).empty()) return Clean{"NVSwitches are present"};
  if (!machine.fabric_manager) return missing("state of nvidia-fabricmanager", machine.fabric_manager);
  if (!lists_devices(machine.topology)) return NotEvaluated{"NVSwitches: not captured"};
  if (*machine.fabric_manager != "failed" && *machine.fabric_manager != "active") return Clean{};
  Judge judge("NVL09");
  judge.found("host", "not enabled", *machine.fabric_manager,
              {evidence_of(machine.fabric_manager, *machine.fabric_manager),
               {"/sys/bus/pci/devices", "no NVSwitch"}});
  return judge.outcome();
}

// ---- NVL10

Outcome check_NVL10(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  const auto in_domain = [](const model::GpuState& state) {
    return state.fabric_state == kFabricCompleted && state.cluster_uuid && !zero_uuid(*state.cluster_uuid);
  };
  const auto any_fabric = [](const model::GpuState& state) { return state.fabric_state.has_value(); };
  if (std::ranges::none_of(machine.gpu_states, any_fabric))
    return NotEvaluated{"fabric state of the GPUs: not captured"};
  const auto member = std::ranges::find_if(machine.gpu_states, in_domain);
  if (member == machine.gpu_states.end()) return Clean{"no multi-node NVLink domain"};
  Judge judge("NVL10");
  if (machine.imex_service && *machine.imex_service != "active")
    judge.found("host", "nvidia-imex active", *machine.imex_service,
                {evidence_of(machine.imex_service, *machine.imex_service),
                 {"nvmlDeviceGetGpuFabricInfo", fabric_text(*member)}});
  else if (machine.imex_channel && !*machine.imex_channel)
    judge.found("host", "an IMEX channel device", "none",
                {evidence_of(machine.imex_channel, "no channel"),
                 {"nvmlDeviceGetGpuFabricInfo", fabric_text(*member)}});
  if (!machine.imex_service) judge.unknown("state of nvidia-imex: " + machine.imex_service.why);
  if (!machine.imex_channel) judge.unknown("IMEX channels: " + machine.imex_channel.why);
  return judge.outcome();
}

// ---- NVL11: NVSwitch errors of the kernel log and of the fabric manager's

// Where the error stands in the line: the driver's "SXid (PCI:0000:86:00.0): 20034, Fatal, ...", or the
// fabric manager's "NVSwitch fatal error 20034 on ... NVSwitch pci bus id 00000000:86:00.0 physical id 3 port
// 61".
struct SwitchError {
  std::string subject = "NVSwitch";
  std::size_t at = 0;
};
std::optional<SwitchError> switch_error_of(const std::string& line) {
  SwitchError out;
  if (out.at = line.find("SXid"); out.at != std::string::npos) {
    const auto open = line.find("(PCI:", out.at);
    const auto close = open == std::string::npos ? open : line.find(')', open);
    if (close != std::string::npos) out.subject = line.substr(open + 5, close - open - 5);
    return out;
  }
  out.at = std::min(line.find("NVSwitch fatal error"), line.find("NVSwitch non-fatal error"));
  if (out.at == std::string::npos) return std::nullopt;
  constexpr std::string_view kAddress = "pci bus id ";
  if (const auto at = line.find(kAddress, out.at); at != std::string::npos) {
    const auto rest = std::string_view(line).substr(at + kAddress.size());
    const auto bdf = parse_bdf(rest.substr(0, rest.find(' ')));
    if (bdf) out.subject = bdf->to_string();
  }
  return out;
}

Outcome check_NVL11(const Evidence& evidence) {
  const auto& log = evidence.machine->kernel_log;
  if (!log) return missing("kernel log", log);
  Judge judge("NVL11");
  for (std::size_t i = 0; i < log->size(); ++i) {
    const auto& line = (*log)[i];
    const auto error = switch_error_of(line);
    if (!error) continue;
    const auto text = to_lower(line);
    const bool non_fatal =
        text.find("non-fatal") != std::string::npos || text.find("nonfatal") != std::string::npos;
    const bool multicast =
        text.find("multicast team") != std::string::npos && text.find("release") != std::string::npos;
    if (multicast) continue;
    auto& found = judge.found(error->subject, "no NVSwitch error since the last boot", line.substr(error->at),
                              {kernel_line(*evidence.machine, i)});
    const bool fatal = !non_fatal && text.find("fatal") != std::string::npos;
    found.severity = fatal ? model::Severity::error : model::Severity::warn;
  }
  return judge.outcome();
}

// ---- NVL13, NVL14

Outcome check_NVL13(const Evidence& evidence) {
  const auto& gpus = evidence.machine->topology.gpus;
  Judge judge("NVL13");
  bool known = false;
  for (const auto& gpu : gpus) {
    known = known || gpu.mig.has_value();
    if (!gpu.mig.value_or(false)) continue;
    auto& found = judge.found(gpu.id, "MIG off for jobs of several GPUs", "MIG on",
                              {{"nvml", "MIG Mode Current: Enabled"}});
    // Whether a job of several GPUs is meant to run here is not known: MIG may be wanted.
    if (!evidence.multi_node_job) found.severity = model::Severity::info;
  }
  if (!known) judge.unknown(gpus.empty() ? "no GPU in the input" : "MIG mode: not captured");
  return judge.outcome();
}

Outcome check_NVL14(const Evidence& evidence) {
  constexpr int kHopper = 90;
  const auto& machine = *evidence.machine;
  if (mig_on(machine)) return Clean{"MIG is on"};
  if (machine.topology.gpus.size() == 1) return Clean{"a single GPU"};
  Judge judge("NVL14");
  bool any = false;
  for (const auto& state : machine.gpu_states) {
    const auto* gpu = model::find_gpu(machine.topology, state.gpu);
    const auto* known = gpu == nullptr ? nullptr : known_gpu(*gpu);
    if (known == nullptr || known->sm < kHopper || known->wiring != Wiring::board) continue;
    const bool fabric = state.fabric_state.value_or(kFabricNotSupported) == kFabricCompleted;
    if (!fabric) continue;  // no NVSwitch, or NVL07
    any = true;
    if (!state.multicast)
      judge.unknown(state.gpu + ": multicast attribute not captured");
    else if (!*state.multicast && !machine.container.value.value_or(false))
      judge.found(state.gpu, "1", "0", {{"CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED", "0"}});
  }
  if (!any && machine.gpu_states.empty()) judge.unknown("state of the GPUs: not captured");
  return judge.outcome(any ? "" : "no GPU with NVLink multicast");
}

constexpr Rule kRules[] = {{"NVL01", check_NVL01}, {"NVL02", check_NVL02}, {"NVL03", check_NVL03},
                           {"NVL04", check_NVL04}, {"NVL05", check_NVL05}, {"NVL06", check_NVL06},
                           {"NVL07", check_NVL07}, {"NVL08", check_NVL08}, {"NVL09", check_NVL09},
                           {"NVL10", check_NVL10}, {"NVL11", check_NVL11}, {"NVL13", check_NVL13},
                           {"NVL14", check_NVL14}};

}  // namespace

std::span<const Rule> nvl_rules() { return kRules; }

}  // namespace topotune::checks
