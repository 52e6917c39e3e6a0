#include "model/diff.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace topotune::model {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

template <class T>
Fact<T> known(T value) {
  return Fact<T>::of(std::move(value), "test");
}

Gpu gpu(int index, std::string bdf) {
  Gpu out;
  out.id = fmt::format("GPU{}", index);
  out.index = index;
  out.bdf = std::move(bdf);
  out.name = "NVIDIA H100 80GB HBM3";
  out.numa = 0;
  out.nvlinks = 18;
  return out;
}

PciDevice function(std::string id, PciKind kind) {
  PciDevice out;
  out.id = std::move(id);
  out.kind = kind;
  out.current = {32.0, 16};
  out.capable = {32.0, 16};
  return out;
}

Machine machine() {
  Machine out;
  auto& t = out.topology;
  t.tree_known = true;
  t.gpus = {gpu(0, "0000:1b:00.0"), gpu(1, "0000:43:00.0")};
  t.gpus[0].links = {{"GPU1", 18, false, {}, true}};
  t.gpus[1].links = {{"GPU0", 18, false, {}, true}};
  Nic nic;
  nic.id = "NIC0";
  nic.name = "mlx5_0";
  nic.bdf = "0000:1c:00.0";
  nic.rdma = true;
  t.nics = {nic};
  t.pci = {function("0000:1a:00.0", PciKind::bridge), function("0000:1b:00.0", PciKind::gpu),
           function("0000:43:00.0", PciKind::gpu), function("0000:1c:00.0", PciKind::nic)};
  t.numa.push_back({0, *parse_cpu_list("0-31"), std::uint64_t{64} << 30, {{0, 10}}});
  RdmaPort port;
  port.device = "mlx5_0";
  port.bdf = "0000:1c:00.0";
  port.state = "ACTIVE";
  port.gbits_per_s = 400;
  port.active_mtu = 4096;
  port.gids_known = true;
  port.gids = {{0, "fe80:0000:0000:0000:a288:c2ff:feab:1234", "RoCE v2", "eth0"},
               {3, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2", "eth0"}};
  out.ports = {port};
  out.rdma_read = known(true);
  out.nvidia_driver = known<std::string>("570.86.10");
  out.kernel_command_line = known<std::string>("root=UUID=1 iommu=pt console=tty0 console=ttyS0");
  out.modules = known(
      std::map<std::string, std::string>{{"nvidia", "570.86.10"}, {"ext4", ""}, {"nvidia_peermem", ""}});
  out.memlock = known(MemoryLimit{std::nullopt, std::nullopt});
  return out;
}

const Change* find(const Diff& diff, std::string_view subject, std::string_view what) {
  const auto found = std::ranges::find_if(
      diff.changes, [&](const Change& c) { return c.subject == subject && c.what == what; });
  return found == diff.changes.end() ? nullptr : &*found;
}

void expect_change(const Diff& diff, std::string_view subject, std::string_view what,
                   std::optional<std::string> before, std::optional<std::string> after) {
  const auto* change = find(diff, subject, what);
  ASSERT_NE(change, nullptr) << subject << " " << what;
  EXPECT_EQ(change->before, before);
  EXPECT_EQ(change->after, after);
}

TEST(Diff, AMachineDoesNotDifferFromItself) {
  const auto result = diff(machine(), machine());
  EXPECT_THAT(result.changes, IsEmpty());
  EXPECT_THAT(result.one_sided, IsEmpty());
  EXPECT_GT(result.compared, 40U);
}

TEST(Diff, TellsEachChangedFactOnce) {
  auto after = machine();
  after.topology.pci[1].current = {16.0, 8};
  after.topology.gpus[0].numa = 1;
  after.topology.gpus[1].nvlinks = 16;
  after.topology.numa[0].cpus = *parse_cpu_list("0-15");
  after.nvidia_driver = known<std::string>("580.159.04");
  after.ports[0].state = "DOWN";
  after.ports[0].active_mtu = 1024;
  after.memlock = known(MemoryLimit{65536, std::nullopt});
  const auto result = diff(machine(), after);
  expect_change(result, "GPU0 0000:1b:00.0", "pcie_current_width", "16", "8");
  expect_change(result, "GPU0 0000:1b:00.0", "pcie_current_gts", "32", "16");
  EXPECT_EQ(find(result, "GPU0 0000:1b:00.0", "pcie_current_gts")->note, "an idle GPU lowers its link speed");
  expect_change(result, "GPU0 0000:1b:00.0", "numa", "0", "1");
  expect_change(result, "GPU1 0000:43:00.0", "nvlinks", "18", "16");
  expect_change(result, "node 0", "cpus", "0-31", "0-15");
  expect_change(result, "host", "nvidia_driver", "570.86.10", "580.159.04");
  expect_change(result, "mlx5_0 port 1", "state", "ACTIVE", "DOWN");
  expect_change(result, "mlx5_0 port 1", "active_mtu_bytes", "4096", "1024");
  expect_change(result, "host", "memlock_soft_bytes", "unlimited", "65536");
  EXPECT_THAT(result.changes, SizeIs(9));
}

TEST(Diff, GpusAreMatchedByAddressNotByNumber) {
  auto after = machine();
  after.topology.gpus.erase(after.topology.gpus.begin());
  after.topology.gpus[0].id = "GPU0";
  after.topology.gpus[0].links.clear();
  after.topology.pci.erase(after.topology.pci.begin() + 1);
  const auto result = diff(machine(), after);
  expect_change(result, "GPU0 0000:1b:00.0", "", "NVIDIA H100 80GB HBM3", std::nullopt);
  EXPECT_EQ(find(result, "GPU0 0000:1b:00.0", "")->kind, DiffKind::removed);
  expect_change(result, "GPU1 0000:43:00.0", "number", "GPU1", "GPU0");
  EXPECT_EQ(find(result, "GPU0 0000:1b:00.0", "numa"), nullptr) << "its removal says it";
}

TEST(Diff, AnExchangedGpuIsNotMistakenForTheOldOne) {
  auto after = machine();
  after.topology.gpus[0] = gpu(0, "0000:9a:00.0");
  const auto result = diff(machine(), after);
  expect_change(result, "GPU0 0000:1b:00.0", "bdf", "0000:1b:00.0", "0000:9a:00.0");
  auto more = machine();
  more.topology.gpus.insert(more.topology.gpus.begin(), gpu(0, "0000:05:00.0"));
  more.topology.gpus[1].id = "GPU1";
  more.topology.gpus[2].id = "GPU2";
  const auto added = diff(machine(), more);
  const auto* change = find(added, "GPU0 0000:05:00.0", "");
  ASSERT_NE(change, nullptr);
  EXPECT_EQ(change->kind, DiffKind::added);
}

TEST(Diff, RenamedRdmaDeviceStaysTheSame) {
  auto after = machine();
  after.ports[0].device = "mlx5_2";
  after.topology.nics[0].name = "mlx5_2";
  const auto result = diff(machine(), after);
  expect_change(result, "mlx5_0 port 1", "device", "mlx5_0", "mlx5_2");
  expect_change(result, "mlx5_0 0000:1c:00.0", "name", "mlx5_0", "mlx5_2");
  EXPECT_THAT(result.changes, SizeIs(2));
}

TEST(Diff, GidsAreComparedByIndexAndKind) {
  auto after = machine();
  after.ports[0].gids[0].address = "fe80:0000:0000:0000:1111:22ff:fe33:4444";  // another stand-in
  after.ports[0].gids[1].address = "0000:0000:0000:0000:0000:ffff:0a00:0002";
  after.ports[0].gids.push_back({4, "2001:0db8:0000:0000:0000:0000:0000:0001", "RoCE v2", "eth0"});
  const auto result = diff(machine(), after);
  expect_change(result, "mlx5_0 port 1", "gid_3", "RoCE v2, 10.0.0.1", "RoCE v2, 10.0.0.2");
  expect_change(result, "mlx5_0 port 1", "gid_4", std::nullopt, "RoCE v2, IPv6");
  EXPECT_THAT(result.changes, SizeIs(2));
}

TEST(Diff, UnknownIsNoChange) {
  auto after = machine();
  after.nvidia_driver = Fact<std::string>::missing("denied");
  after.topology.gpus[0].numa.reset();
  after.modules = Fact<std::map<std::string, std::string>>::missing("not captured");
  after.topology.pci.clear();
  after.topology.tree_known = false;
  const auto result = diff(machine(), after);
  for (const auto& change : result.changes) EXPECT_EQ(change.group, DiffGroup::path) << change.what;
  const auto has = [&](std::string_view what) {
    return std::ranges::find(result.one_sided, what, &OneSided::what) != result.one_sided.end();
  };
  EXPECT_TRUE(has("nvidia_driver"));
  EXPECT_TRUE(has("numa"));
  EXPECT_TRUE(has("module_nvidia"));
  EXPECT_TRUE(has("pcie_current_width"));
  EXPECT_TRUE(result.one_sided[0].known_before);
}

TEST(Diff, ACutOffInputRemovesNothing) {
  auto after = machine();
  after.topology.source.complete = false;
  after.topology.gpus.pop_back();
  const auto result = diff(machine(), after);
  EXPECT_EQ(find(result, "GPU1 0000:43:00.0", ""), nullptr);
  EXPECT_NE(std::ranges::find(result.one_sided, "GPU1 0000:43:00.0", &OneSided::subject),
            result.one_sided.end());
}

TEST(Diff, WhatIsNotLoadedOrNotSetIsAChange) {
  auto after = machine();
  after.modules.value->erase("nvidia_peermem");
  after.modules.value->erase("ext4");
  after.kernel_command_line = known<std::string>("root=UUID=2 quiet console=tty0 console=ttyS0");
  const auto result = diff(machine(), after);
  expect_change(result, "host", "module_nvidia_peermem", "loaded", std::nullopt);
  expect_change(result, "host", "parameter_iommu", "pt", std::nullopt);
  expect_change(result, "host", "parameter_quiet", std::nullopt, "set");
  EXPECT_THAT(result.changes, SizeIs(3)) << "volumes and other modules are not compared";
}

TEST(Diff, PathsBetweenMatchedDevicesAreCompared) {
  auto before = machine(), after = machine();
  before.topology.stated = {{"GPU0", "GPU1", PathType::nvl, 18, {}, "", {}},
                            {"GPU0", "NIC0", PathType::pix, {}, {}, "", {}}};
  after.topology.stated = {{"GPU0", "GPU1", PathType::sys, {}, {}, "", {}},
                           {"GPU0", "NIC0", PathType::pix, {}, {}, "", {}}};
  const auto result = diff(before, after);
  expect_change(result, "GPU0-GPU1", "type", "NVL (18 links)", "SYS");
}

TEST(Diff, BridgesComeAndGo) {
  auto after = machine();
  after.topology.pci[0].id = "0000:2a:00.0";
  const auto result = diff(machine(), after);
  expect_change(result, "0000:1a:00.0", "", "PCI bridge", std::nullopt);
  expect_change(result, "0000:2a:00.0", "", std::nullopt, "PCI bridge");
}

TEST(Diff, TenThousandDevicesTakeNoTime) {
  Machine big;
  for (int i = 0; i < 10'000; ++i) big.topology.gpus.push_back(gpu(i, fmt::format("{:04x}:00:00.0", i)));
  auto after = big;
  std::ranges::reverse(after.topology.gpus);
  EXPECT_TRUE(diff(big, after).identical());
}

TEST(Diff, NothingInCommonIsToldAsNothing) {
  const auto result = diff(Machine{}, Machine{});
  EXPECT_EQ(result.compared, 0U);
  EXPECT_TRUE(result.identical());
}

}  // namespace
}  // namespace topotune::model
