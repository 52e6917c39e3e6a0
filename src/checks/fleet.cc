#include "checks/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "checks/rule.h"

namespace topotune::checks {

namespace {

using model::Finding;
using model::FleetFact;
using model::FleetNode;
using model::FleetOutlier;
using model::Severity;

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

}  // namespace

model::FleetReport compare_fleet(std::span<const FleetNode> nodes) {
  model::FleetReport report;
  report.nodes = nodes.size();
  std::map<std::string, std::vector<const FleetNode*>> kinds;
  for (const auto& node : nodes) kinds[node.kind].push_back(&node);
  for (const auto& [kind, members] : kinds) {
    report.kinds.push_back(fmt::format("{} ({} nodes)", kind, members.size()));
    if (members.size() < 2) continue;
    for (const auto& column : columns_of(members)) compare_column(column, report);
    compare_gpudirect(members, report);
  }
  std::ranges::stable_sort(report.outliers, {},
                           [](const FleetOutlier& o) { return std::tie(o.node, o.rule, o.key); });
  for (const char* rule : {"FLEET01", "FLEET02", "FLEET03", "FLEET05", "FLEET06"}) {
    if (nodes.size() > 1)
      report.diagnosis.checked.emplace_back(rule);
    else
      report.diagnosis.not_checked.push_back({rule, "needs two nodes or more"});
  }
  report.diagnosis.not_checked.push_back(
      {"FLEET04", "the environments of the ranks are not in captures; give their files to lint"});
  report.diagnosis.not_checked.push_back({"FLEET07", "needs measurements of the nodes"});
  return report;
}

}  // namespace topotune::checks
