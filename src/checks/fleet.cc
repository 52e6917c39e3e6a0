#include "checks/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "checks/mutation.h"
#include "checks/rule.h"

namespace topotune::checks {

namespace {

using model::Finding;
using model::FleetFact;
using model::FleetNode;
using model::FleetOutlier;
using model::Severity;

constexpr std::string_view kEnvironmentKnown = "environment of the job";
constexpr std::size_t kNodesShown = 20;  // per finding; the table has them all

struct Seen {
  const FleetNode* node;
  const FleetFact* fact;
};

// All nodes' values of one key.
struct Column {
  std::string rule, key;
  std::vector<Seen> seen;
};

bool knows_environment(const FleetNode& node) {
  return std::ranges::any_of(node.facts, [](const FleetFact& fact) { return fact.key == kEnvironmentKnown; });
}

// A variable that some nodes set is "not set" on the others whose environment is known.
void fill_environment(const std::vector<const FleetNode*>& nodes, std::vector<Column>& columns) {
  static const FleetFact kNotSet{"FLEET04", "", "not set", "environment"};
  std::vector<const FleetNode*> known;
  for (const auto* node : nodes)
    if (knows_environment(*node)) known.push_back(node);
  for (auto& column : columns) {
    if (column.rule != "FLEET04") continue;
    std::unordered_set<const FleetNode*> seen;
    for (const auto& one : column.seen) seen.insert(one.node);
    for (const auto* node : known)
      if (!seen.contains(node)) column.seen.push_back({node, &kNotSet});
  }
}

std::vector<Column> columns_of(const std::vector<const FleetNode*>& nodes) {
  std::vector<Column> out;
  std::unordered_map<std::string, std::size_t> at;
  for (const auto* node : nodes) {
    for (const auto& fact : node->facts) {
      const auto [where, fresh] = at.try_emplace(fact.key, out.size());
      if (fresh) out.push_back({fact.rule, fact.key, {}});
      auto& seen = out[where->second].seen;
      if (seen.empty() || seen.back().node != node) seen.push_back({node, &fact});
    }
  }
  fill_environment(nodes, out);
  return out;
}

std::map<std::string, std::size_t> tally(const Column& column) {
  std::map<std::string, std::size_t> out;
  for (const auto& s : column.seen) ++out[s.fact->value];
  return out;
}

// The value that more than half of the nodes have, of at least three nodes.
std::string majority(const Column& column, const std::map<std::string, std::size_t>& values) {
  if (column.seen.size() < 3) return "";
  for (const auto& [value, count] : values) {
    if (count * 2 > column.seen.size()) return value;
  }
  return "";
}

// FLEET02 is about having less than the others; more is another kind of machine, not a fault.
bool is_fewer(const std::string& value, const std::string& expected) {
  const auto a = parse_int<long>(value);
  const auto b = parse_int<long>(expected);
  return !a || !b || *a < *b;
}

std::string spread(const std::map<std::string, std::size_t>& values) {
  std::string out;
  std::size_t shown = 0;
  for (const auto& [value, count] : values) {
    if (++shown > 6) return out + ", …";
    out += fmt::format("{}{} on {} node{}", out.empty() ? "" : ", ", value, count, count == 1 ? "" : "s");
  }
  return out;
}

// Variables of which two values in one communicator hang it or end it.
bool must_agree(std::string_view name) {
  static const std::set<std::string, std::less<>> kNames = {
      "NCCL_ALGO",          "NCCL_PROTO",          "NCCL_MIN_NCHANNELS",
      "NCCL_MAX_NCHANNELS", "NCCL_MIN_CTAS",       "NCCL_MAX_CTAS",
      "NCCL_MIN_NRINGS",    "NCCL_MAX_NRINGS",     "NCCL_BUFFSIZE",
      "NCCL_LL_BUFFSIZE",   "NCCL_P2P_DISABLE",    "NCCL_SHM_DISABLE",
      "NCCL_P2P_LEVEL",     "NCCL_LL128_BUFFSIZE", "NCCL_NCHANNELS_PER_NET_PEER",
      "NCCL_NTHREADS",      "NCCL_LL128_NTHREADS"};
  return kNames.contains(name);
}

Finding finding_for(const Column& column, const std::vector<Seen>& outliers, const std::string& expected,
                    const std::map<std::string, std::size_t>& values) {
  std::vector<model::Evidence> evidence;
  for (const auto& s : outliers) {
    if (evidence.size() == kNodesShown) {
      evidence.push_back({"fleet", fmt::format("and {} more nodes", outliers.size() - kNodesShown)});
      break;
    }
    evidence.push_back({s.node->name + ": " + s.fact->source, s.fact->value});
  }
  Finding f =
      finding(column.rule, column.key,
              expected.empty() ? "the same on all nodes" : fmt::format("{} (as on most nodes)", expected),
              spread(values), std::move(evidence));
  if (column.rule == "FLEET01" && column.key == "NCCL")
    f.severity = Severity::error;  // versions that differ hang a job
  if (column.rule == "FLEET04") {
    f.severity = must_agree(column.key) ? Severity::error : Severity::warn;
    return f;
  }
  if (expected.empty()) f.severity = std::min(f.severity, Severity::warn);
  return f;
}

// A column in which every node has its own value tells names, not settings.
bool is_identity(const Column& column, const std::map<std::string, std::size_t>& values) {
  return column.seen.size() >= 3 && values.size() * 2 > column.seen.size() + 1;
}

void compare_column(const Column& column, model::FleetReport& report) {
  const auto values = tally(column);
  if (values.size() < 2) return;
  const std::string expected = majority(column, values);
  if (expected.empty() && is_identity(column, values)) return;
  std::vector<Seen> outliers;
  for (const auto& s : column.seen) {
    if (s.fact->value == expected) continue;
    if (column.rule == "FLEET02" && !expected.empty() && !is_fewer(s.fact->value, expected)) continue;
    outliers.push_back(s);
    report.outliers.push_back(
        {s.node->name, column.rule, column.key, s.fact->value, expected, s.fact->source});
  }
  if (outliers.empty()) return;
  report.diagnosis.findings.push_back(finding_for(column, outliers, expected, values));
}

// GDR01 on some nodes of a kind and not on others.
void compare_gpudirect(const std::vector<const FleetNode*>& nodes, model::FleetReport& report) {
  std::vector<const FleetNode*> without;
  Severity worst = Severity::info;
  for (const auto* node : nodes) {
    const auto found = std::ranges::find(node->findings, "GDR01", &Finding::rule);
    if (found == node->findings.end()) continue;
    without.push_back(node);
    worst = std::max(worst, found->severity);
  }
  if (without.empty() || without.size() == nodes.size()) return;
  std::vector<model::Evidence> evidence;
  for (const auto* node : without) {
    if (evidence.size() < kNodesShown)
      evidence.push_back({node->name, "GDR01: no kernel path for GPUDirect RDMA"});
    report.outliers.push_back(
        {node->name, "FLEET03", "GPUDirect RDMA", "no kernel path", "available", "GDR01"});
  }
  Finding f = finding(
      "FLEET03", fmt::format("{} of {} nodes", without.size(), nodes.size()), "the same on all nodes",
      fmt::format("no kernel path on {} of {} nodes", without.size(), nodes.size()), std::move(evidence));
  f.severity = worst;
  report.diagnosis.findings.push_back(std::move(f));
}

// ---- CONT07

// /dev/shm of the containers of one host: NCCL uses shared memory between two processes only where it is one
// mount for both (the peers' shmDev).
void compare_shared_memory(const std::string& boot, const std::vector<const FleetNode*>& members,
                           model::FleetReport& report) {
  std::set<std::uint64_t> mounts;
  std::vector<model::Evidence> evidence;
  for (const auto* node : members) {
    if (!node->shm_device) continue;
    mounts.insert(*node->shm_device);
    if (evidence.size() < kNodesShown)
      evidence.push_back(
          {node->name, fmt::format("/dev/shm is device {}, boot id {}", *node->shm_device, boot)});
  }
  if (mounts.size() < 2) return;
  Finding f =
      finding("CONT07", members.front()->name, "one /dev/shm in all containers of a host",
              fmt::format("{} different /dev/shm with one boot id", mounts.size()), std::move(evidence));
  f.title = "Containers of one host have different /dev/shm";
  report.diagnosis.findings.push_back(std::move(f));
}

// Containers of one host: one boot id, several host names or several /dev/shm.
void compare_hosts(std::span<const FleetNode> nodes, model::FleetReport& report) {
  std::map<std::string, std::vector<const FleetNode*>> by_boot;
  std::size_t known = 0;
  for (const auto& node : nodes) {
    if (node.boot_id.empty() || node.hostname.empty()) continue;
    ++known;
    by_boot[node.boot_id].push_back(&node);
  }
  if (known < 2) {
    report.diagnosis.not_checked.push_back(
        {"CONT07",
         "boot ids and host names of two inputs or more: not known (captures replace boot ids unless "
         "--no-redact)"});
    return;
  }
  report.diagnosis.checked.emplace_back("CONT07");
  for (const auto& [boot, members] : by_boot) {
    std::set<std::string> names;
    std::vector<model::Evidence> evidence;
    for (const auto* node : members) {
      names.insert(node->hostname);
      if (evidence.size() < kNodesShown)
        evidence.push_back({node->name, fmt::format("host name {}, boot id {}", node->hostname, boot)});
    }
    if (names.size() < 2) {
      compare_shared_memory(boot, members, report);
      continue;
    }
    report.diagnosis.findings.push_back(
        finding("CONT07", members.front()->name, "one host name in all containers of a host",
                fmt::format("{} host names with one boot id", names.size()), std::move(evidence)));
  }
}

// ---- FLEET07

struct Sample {
  const FleetNode* node;
  const model::FleetMeasurement* measured;
};

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// How far a node may be from the median: 10 %, and with five nodes or more three robust standard deviations.
struct Band {
  double median = 0, width = 0, sigma = 0;
};
Band band_of(const std::vector<Sample>& samples) {
  constexpr double kShare = 0.10, kSigmas = 3, kNormal = 1.4826;  // MAD of a normal distribution
  constexpr std::size_t kForSigma = 5;
  std::vector<double> values, deviations;
  for (const auto& one : samples) values.push_back(one.measured->value);
  Band out;
  out.median = median_of(values);
  for (const double value : values) deviations.push_back(std::abs(value - out.median));
  if (values.size() >= kForSigma) out.sigma = kNormal * median_of(deviations);
  out.width = std::max(kSigmas * out.sigma, kShare * std::abs(out.median));
  return out;
}

void compare_samples(const std::string& key, const std::vector<Sample>& samples, model::FleetReport& report) {
  if (samples.size() < 3) return;
  const auto band = band_of(samples);
  for (const auto& one : samples) {
    const double below = one.measured->larger_is_better ? band.median - one.measured->value
                                                        : one.measured->value - band.median;
    if (below <= band.width) continue;
    const auto shown = fmt::format("{:.4g}", one.measured->value), usual = fmt::format("{:.4g}", band.median);
    report.outliers.push_back({one.node->name, "FLEET07", key, shown, usual, one.measured->source});
    auto f = finding(
        "FLEET07", fmt::format("{}: {}", one.node->name, key),
        fmt::format("about {} (median of {} nodes)", usual, samples.size()), shown,
        {{one.measured->source, fmt::format("median {} of {} samples; fleet median {}, robust sigma {:.3g}",
                                            shown, one.measured->samples, usual, band.sigma)}});
    if (one.measured->samples < 2) f.severity = Severity::info;  // not confirmed by a repeat
    report.diagnosis.findings.push_back(std::move(f));
  }
}

// Nodes of one kind; a noisy result proves nothing. Returns how many tests could be compared.
std::size_t compare_measurements(const std::vector<const FleetNode*>& nodes, model::FleetReport& report) {
  std::map<std::string, std::vector<Sample>> by_key;
  for (const auto* node : nodes) {
    std::set<std::string> once;
    for (const auto& measured : node->measurements)
      if (!measured.noisy && once.insert(measured.key).second)
        by_key[measured.key].push_back({node, &measured});
  }
  std::size_t compared = 0;
  for (const auto& [key, samples] : by_key) {
    compared += samples.size() >= 3 ? 1 : 0;
    compare_samples(key, samples, report);
  }
  return compared;
}

// ---- lists

void list_rules(std::span<const FleetNode> nodes, std::size_t measured, model::FleetReport& report) {
  auto& diagnosis = report.diagnosis;
  for (const char* rule : {"FLEET01", "FLEET02", "FLEET03", "FLEET05", "FLEET06"}) {
    if (nodes.size() > 1)
      diagnosis.checked.emplace_back(rule);
    else
      diagnosis.not_checked.push_back({rule, "needs two nodes or more"});
  }
  if (std::ranges::count_if(nodes, knows_environment) > 1)
    diagnosis.checked.emplace_back("FLEET04");
  else
    diagnosis.not_checked.push_back(
        {"FLEET04",
         "the job's variables: captures do not hold them; give a folder a node with its env files or log"});
  if (measured > 0)
    diagnosis.checked.emplace_back("FLEET07");
  else
    diagnosis.not_checked.push_back(
        {"FLEET07", "measurements of three nodes or more: give each node's topotune.measurement file"});
}

}  // namespace

std::vector<FleetFact> fleet_environment(const std::map<std::string, std::string>& environment,
                                         const std::string& source) {
  // Names of devices, hosts and files differ by node; debug output changes no job.
  static const std::set<std::string, std::less<>> kByNode = {
      "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA",    "NCCL_HOSTID",         "NCCL_COMM_ID",        "NCCL_CONF_FILE",
      "UCX_NET_DEVICES",    "NCCL_TOPO_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE"};
  std::vector<FleetFact> out{{"FLEET04", std::string(kEnvironmentKnown), "known", source}};
  for (const auto& [name, value] : environment) {
    const bool ours =
        name.starts_with("NCCL_") || name.starts_with("UCX_") || name.starts_with("TORCH_NCCL_");
    const bool debug = name.find("_DEBUG") != std::string::npos || name.find("_LOG_") != std::string::npos;
    if (ours && !debug && !kByNode.contains(name)) out.push_back({"FLEET04", name, value, source});
  }
  return out;
}

model::FleetReport compare_fleet(std::span<const FleetNode> nodes) {
  model::FleetReport report;
  report.nodes = nodes.size();
  std::map<std::string, std::vector<const FleetNode*>> kinds;
  for (const auto& node : nodes) kinds[node.kind].push_back(&node);
  std::size_t measured = 0;
  for (const auto& [kind, members] : kinds) {
    report.kinds.push_back(fmt::format("{} ({} nodes)", kind, members.size()));
    if (members.size() < 2) continue;
    for (const auto& column : columns_of(members)) compare_column(column, report);
    compare_gpudirect(members, report);
    measured += compare_measurements(members, report);
  }
  std::ranges::stable_sort(report.outliers, {},
                           [](const FleetOutlier& o) { return std::tie(o.node, o.rule, o.key); });
  list_rules(nodes, measured, report);
  compare_hosts(nodes, report);
  mutate(report.diagnosis);
  return report;
}

}  // namespace topotune::checks
