#include "checks/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  return {name, fleet_kind(m), fleet_facts(m), {}};
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
