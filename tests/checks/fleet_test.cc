#include "checks/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "checks/causes.h"

namespace topotune::checks {
namespace {

using model::Fact;
using model::FleetNode;
using model::Machine;
using model::Severity;

Machine node_machine(const std::string& driver, int width) {
  Machine m;
  m.nvidia_driver = Fact<std::string>::of(driver, "/proc/driver/nvidia/version");
  m.kernel_command_line = Fact<std::string>::of("ro root=UUID=1 iommu=pt", "/proc/cmdline");
  model::Gpu gpu;
  gpu.id = "GPU0";
  gpu.pci_vendor = 0x10de;
  gpu.pci_device = 0x2330;
  gpu.nvlinks = 18;
  m.topology.gpus.push_back(gpu);
  model::PciDevice nic;
  nic.id = "0000:23:00.0";
  nic.kind = model::PciKind::nic;
  nic.current.width = width;
  nic.source = "/sys/bus/pci/devices/0000:23:00.0";
  m.topology.pci.push_back(nic);
  return m;
}

FleetNode node(const std::string& name, const Machine& m) {
  return {name, fleet_kind(m), fleet_facts(m), {}, "", "", {}, {}};
}

TEST(Fleet, AlikeNodesHaveNoOutlier) {
  const auto m = node_machine("580.1", 16);
  const std::vector nodes{node("a", m), node("b", m), node("c", m)};
  const auto report = compare_fleet(nodes);
  EXPECT_TRUE(report.outliers.empty());
  EXPECT_EQ(model::verdict_of(report.diagnosis), model::Verdict::ok);
}

TEST(Fleet, TheOddNodeIsNamedWithFactAndSource) {
  const std::vector nodes{node("a", node_machine("580.1", 16)), node("b", node_machine("580.1", 8)),
                          node("c", node_machine("580.1", 16)), node("d", node_machine("570.9", 16))};
  const auto report = compare_fleet(nodes);
  ASSERT_EQ(report.outliers.size(), 2u);
  EXPECT_EQ(report.outliers[0].node, "b");
  EXPECT_EQ(report.outliers[0].key, "0000:23:00.0 (NIC) PCIe width");
  EXPECT_EQ(report.outliers[0].value, "8");
  EXPECT_EQ(report.outliers[0].expected, "16");
  EXPECT_EQ(report.outliers[0].source, "/sys/bus/pci/devices/0000:23:00.0");
  EXPECT_EQ(report.outliers[1].node, "d");
  EXPECT_EQ(report.outliers[1].rule, "FLEET01");
  std::set<std::string> rules;
  for (const auto& finding : report.diagnosis.findings) rules.insert(finding.rule);
  EXPECT_THAT(rules, testing::ElementsAre("FLEET01", "FLEET06"));
}

TEST(Fleet, TwoNodesHaveADifferenceButNoMajority) {
  const std::vector nodes{node("a", node_machine("580.1", 16)), node("b", node_machine("570.9", 16))};
  const auto report = compare_fleet(nodes);
  ASSERT_EQ(report.outliers.size(), 2u);
  EXPECT_EQ(report.outliers[0].expected, "");
}

TEST(Fleet, ValuesThatAreDifferentEverywhereAreNames) {
  std::vector<FleetNode> nodes;
  for (const char* driver : {"1", "2", "3", "4"}) nodes.push_back(node(driver, node_machine(driver, 16)));
  EXPECT_TRUE(compare_fleet(nodes).outliers.empty());
}

TEST(Fleet, FewerNvlinksAreAnErrorMoreAreNot) {
  auto fewer = node_machine("1", 16);
  fewer.topology.gpus[0].nvlinks = 17;
  const auto usual = node_machine("1", 16);
  const std::vector nodes{node("a", usual), node("b", fewer), node("c", usual)};
  const auto report = compare_fleet(nodes);
  ASSERT_EQ(report.diagnosis.findings.size(), 1u);
  EXPECT_EQ(report.diagnosis.findings[0].rule, "FLEET02");
  EXPECT_EQ(report.diagnosis.findings[0].severity, Severity::error);
  auto more = node_machine("1", 16);
  more.topology.gpus[0].nvlinks = 19;
  const std::vector other{node("a", usual), node("b", more), node("c", usual)};
  EXPECT_TRUE(compare_fleet(other).diagnosis.findings.empty());
}

TEST(Fleet, KindsAreComparedApart) {
  auto other = node_machine("570.9", 8);
  other.topology.gpus[0].pci_device = 0x20b2;
  const auto usual = node_machine("1", 16);
  const std::vector nodes{node("a", usual), node("b", other), node("c", usual)};
  EXPECT_TRUE(compare_fleet(nodes).outliers.empty());
}

TEST(Fleet, PerNodeKernelParametersAreNotCompared) {
  auto a = node_machine("1", 16);
  auto b = node_machine("1", 16);
  b.kernel_command_line = Fact<std::string>::of("root=UUID=2 ip=10.0.0.7 iommu=pt", "/proc/cmdline");
  const std::vector nodes{node("a", a), node("b", b), node("c", a)};
  EXPECT_TRUE(compare_fleet(nodes).outliers.empty());
  b.kernel_command_line = Fact<std::string>::of("root=UUID=2", "/proc/cmdline");
  const std::vector changed{node("a", a), node("b", b), node("c", a)};
  ASSERT_EQ(compare_fleet(changed).outliers.size(), 1u);
  EXPECT_EQ(compare_fleet(changed).outliers[0].value, "not set");
}

TEST(Fleet, GpuDirectOnSomeNodesOnly) {
  const auto m = node_machine("1", 16);
  std::vector nodes{node("a", m), node("b", m), node("c", m)};
  model::Finding gdr;
  gdr.rule = "GDR01";
  gdr.severity = Severity::error;
  nodes[1].findings.push_back(gdr);
  const auto report = compare_fleet(nodes);
  ASSERT_EQ(report.diagnosis.findings.size(), 1u);
  EXPECT_EQ(report.diagnosis.findings[0].rule, "FLEET03");
  for (auto& n : nodes) n.findings = {gdr};
  EXPECT_TRUE(compare_fleet(nodes).diagnosis.findings.empty());
}

// ---- FLEET04

FleetNode with_environment(const std::string& name, std::map<std::string, std::string> environment) {
  auto out = node(name, node_machine("1", 16));
  for (auto& fact : fleet_environment(environment, "job.env")) out.facts.push_back(std::move(fact));
  return out;
}

bool has_rule(const model::Diagnosis& d, const std::string& rule) {
  return std::ranges::find(d.findings, rule, &model::Finding::rule) != d.findings.end();
}

TEST(Fleet, VariablesThatMustAgreeAreErrors) {
  const std::vector nodes{with_environment("a", {{"NCCL_ALGO", "Ring"}}),
                          with_environment("b", {{"NCCL_ALGO", "Tree"}})};
  const auto report = compare_fleet(nodes);
  ASSERT_TRUE(has_rule(report.diagnosis, "FLEET04"));
  EXPECT_EQ(report.diagnosis.findings[0].severity, Severity::error);
  EXPECT_EQ(report.diagnosis.findings[0].subject, "NCCL_ALGO");
}

TEST(Fleet, AVariableThatOneNodeLacksIsNotSetThere) {
  const std::vector nodes{with_environment("a", {{"NCCL_IB_TC", "106"}}), with_environment("b", {}),
                          with_environment("c", {{"NCCL_IB_TC", "106"}})};
  const auto report = compare_fleet(nodes);
  ASSERT_EQ(report.outliers.size(), 1u);
  EXPECT_EQ(report.outliers[0].node, "b");
  EXPECT_EQ(report.outliers[0].value, "not set");
  EXPECT_EQ(report.diagnosis.findings[0].severity, Severity::warn);
}

TEST(Fleet, NamesOfDevicesAndDebugOutputMayDiffer) {
  const std::vector nodes{with_environment("a", {{"NCCL_SOCKET_IFNAME", "eth0"}, {"NCCL_DEBUG", "INFO"}}),
                          with_environment("b", {{"NCCL_SOCKET_IFNAME", "ens3"}})};
  EXPECT_FALSE(has_rule(compare_fleet(nodes).diagnosis, "FLEET04"));
  const std::vector unknown{node("a", node_machine("1", 16)), node("b", node_machine("1", 16))};
  EXPECT_THAT(compare_fleet(unknown).diagnosis.checked, testing::Not(testing::Contains("FLEET04")));
}

// ---- FLEET05, FLEET06

Machine rail_machine() {
  auto m = node_machine("1", 16);
  m.rdma_read = Fact<bool>::of(true, "/sys/class/infiniband");
  model::RdmaPort port;
  port.device = "mlx5_0";
  port.state = "ACTIVE";
  port.link_layer = "Ethernet";
  port.netdev = "eth0";
  port.networks = {"10.1.0.0/16"};
  port.pfc_priorities = 8;
  port.dscp_priority = {{24, 3}, {25, 3}, {26, 3}, {48, 6}};
  port.trust = "dscp";
  m.ports.push_back(port);
  model::Nic nic;
  nic.name = "mlx5_0";
  nic.bdf = "0000:23:00.0";
  m.topology.nics.push_back(nic);
  CpuSet local, other;
  local.add_range(0, 7);
  other.add_range(8, 15);
  m.topology.pci[0].local_cpus = local;
  m.interrupts.push_back({40, "mlx5_0", local});
  return m;
}

std::string differs(const std::function<void(Machine&)>& change) {
  auto odd = rail_machine();
  change(odd);
  const std::vector nodes{node("a", rail_machine()), node("b", odd), node("c", rail_machine())};
  const auto report = compare_fleet(nodes);
  if (report.outliers.size() != 1) return "";
  const auto& o = report.outliers[0];
  EXPECT_EQ(report.diagnosis.findings.size(), 1u);
  EXPECT_EQ(report.diagnosis.findings.empty() ? "" : report.diagnosis.findings[0].rule, o.rule);
  return o.rule + " " + o.key + ": " + o.value + ", not " + o.expected;
}

TEST(Fleet, RailsHaveOneNetworkPriorityAndTrust) {
  EXPECT_EQ(differs([](Machine& m) { m.ports[0].networks = {"10.1.0.0/24"}; }),
            "FLEET05 mlx5_0 port 1 IPv4 network: 10.1.0.0/24, not 10.1.0.0/16");
  EXPECT_EQ(differs([](Machine& m) { m.ports[0].pfc_priorities = 0; }),
            "FLEET05 mlx5_0 port 1 PFC priorities: 0x00, not 0x08");
  EXPECT_EQ(differs([](Machine& m) { m.ports[0].dscp_priority[26] = 0; }),
            "FLEET05 mlx5_0 port 1 priority of DSCP: 24-25:3 26:0 48:6, not 24-26:3 48:6");
  EXPECT_EQ(differs([](Machine& m) { m.ports[0].trust = "pcp"; }),
            "FLEET05 mlx5_0 port 1 trust: pcp, not dscp");
  EXPECT_EQ(differs([](Machine&) {}), "");
}

TEST(Fleet, InterruptsAndReadRequests) {
  EXPECT_EQ(differs([](Machine& m) {
              CpuSet other;
              other.add_range(8, 15);
              m.interrupts[0].effective = other;
            }),
            "FLEET06 mlx5_0 interrupts: on another node, not on the NIC's node");
  auto usual = rail_machine();
  usual.topology.pci[0].max_read_request = 4096;
  auto odd = usual;
  odd.topology.pci[0].max_read_request = 512;
  const std::vector nodes{node("a", usual), node("b", odd), node("c", usual)};
  const auto report = compare_fleet(nodes);
  ASSERT_EQ(report.outliers.size(), 1u);
  EXPECT_EQ(report.outliers[0].key, "0000:23:00.0 (NIC) MaxReadReq");
}

// ---- FLEET07

std::vector<FleetNode> measured(const std::vector<double>& values, bool larger = true,
                                std::size_t samples = 5) {
  std::vector<FleetNode> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.push_back(node("n" + std::to_string(i), node_machine("1", 16)));
    out.back().measurements.push_back({"coll.all_reduce", values[i], larger, false, samples, "n.json"});
  }
  return out;
}

std::string slow_node(const std::vector<FleetNode>& nodes) {
  const auto report = compare_fleet(nodes);
  EXPECT_EQ(report.diagnosis.findings.size(), report.outliers.size());
  return report.outliers.size() == 1 ? report.outliers[0].node : "";
}

TEST(Fleet, ANodeTenPercentBelowTheMedian) {
  EXPECT_EQ(slow_node(measured({400, 401, 355})), "n2");
  EXPECT_EQ(slow_node(measured({400, 401, 361})), "");
  EXPECT_EQ(slow_node(measured({10, 10.1, 12}, false)), "n2") << "seconds: more is worse";
  EXPECT_EQ(slow_node(measured({400, 300})), "") << "two nodes have no median";
}

TEST(Fleet, AWideSpreadWidensTheBand) {
  EXPECT_EQ(slow_node(measured({400, 330, 470, 365, 435, 340})), "") << "three robust sigmas, not 10 %";
  EXPECT_EQ(slow_node(measured({400, 401, 399, 402, 398, 340})), "n5");
}

TEST(Fleet, WithoutARepeatItIsARemark) {
  const auto once = compare_fleet(measured({400, 401, 300}, true, 1));
  ASSERT_EQ(once.diagnosis.findings.size(), 1u);
  EXPECT_EQ(once.diagnosis.findings[0].severity, Severity::info);
  auto noisy = measured({400, 401, 300});
  noisy[2].measurements[0].noisy = true;
  EXPECT_TRUE(compare_fleet(noisy).diagnosis.findings.empty());
  EXPECT_EQ(compare_fleet(measured({400, 401, 300})).diagnosis.findings[0].severity, Severity::warn);
}

// ---- CONT07

TEST(Fleet, ContainersOfOneHostHaveOneHostName) {
  std::vector nodes{node("a", node_machine("1", 16)), node("b", node_machine("1", 16))};
  EXPECT_THAT(compare_fleet(nodes).diagnosis.checked, testing::Not(testing::Contains("CONT07")));
  nodes[0].boot_id = nodes[1].boot_id = "3f2a";
  nodes[0].hostname = "pod-a";
  nodes[1].hostname = "pod-b";
  EXPECT_TRUE(has_rule(compare_fleet(nodes).diagnosis, "CONT07"));
  nodes[1].hostname = "pod-a";
  EXPECT_FALSE(has_rule(compare_fleet(nodes).diagnosis, "CONT07"));
  nodes[1].hostname = "pod-b";
  nodes[1].boot_id = "9999";
  EXPECT_FALSE(has_rule(compare_fleet(nodes).diagnosis, "CONT07")) << "two hosts";
}

TEST(Fleet, ContainersOfOneHostShareShm) {
  std::vector nodes{node("a", node_machine("1", 16)), node("b", node_machine("1", 16))};
  nodes[0].boot_id = nodes[1].boot_id = "3f2a";
  nodes[0].hostname = nodes[1].hostname = "host";
  EXPECT_FALSE(has_rule(compare_fleet(nodes).diagnosis, "CONT07")) << "mounts unknown";
  nodes[0].shm_device = nodes[1].shm_device = 84;
  EXPECT_FALSE(has_rule(compare_fleet(nodes).diagnosis, "CONT07")) << "one mount";
  nodes[1].shm_device = 91;
  const auto report = compare_fleet(nodes);
  ASSERT_TRUE(has_rule(report.diagnosis, "CONT07"));
  const auto found = std::ranges::find(report.diagnosis.findings, "CONT07", &model::Finding::rule);
  EXPECT_THAT(found->observed, testing::HasSubstr("2 different /dev/shm"));
  ASSERT_EQ(found->evidence.size(), 2u);
  EXPECT_THAT(found->evidence[1].text, testing::HasSubstr("device 91"));
  nodes[1].boot_id = "9999";
  EXPECT_FALSE(has_rule(compare_fleet(nodes).diagnosis, "CONT07")) << "two hosts";
}

TEST(Causes, NameOnlyFindingsThatAreThere) {
  model::Diagnosis d;
  model::Finding f;
  f.rule = "LOG01";
  d.findings.push_back(f);
  join_causes(d);
  EXPECT_TRUE(d.findings[0].because.empty());
  f.rule = "GDR01";
  d.findings.push_back(f);
  join_causes(d);
  EXPECT_THAT(d.findings[0].because, testing::ElementsAre("GDR01"));
}

// Walks from effect to cause; a walk longer than the table has met a cycle.
TEST(Causes, TableHasNoCycle) {
  std::size_t count = 0;
  const auto* table = cause_table(count);
  const auto depth = [&](auto&& self, std::string_view rule, std::size_t left) -> bool {
    if (left == 0) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (rule == table[i].effect && !self(self, table[i].cause, left - 1)) return false;
    }
    return true;
  };
  for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(depth(depth, table[i].effect, 12)) << table[i].effect;
}

}  // namespace
}  // namespace topotune::checks
