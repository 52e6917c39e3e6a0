#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "discover/discover.h"
#include "fake_host.h"
#include "model/paths.h"

namespace topotune::discover {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two root ports of one host bridge; behind the first a switch with a GPU and a NIC.
void add_one_switch(FakeHost& host) {
  host.pci("pci0000:20/0000:20:00.0", "0x060400", "0x8086", "0x1000");
  host.pci("pci0000:20/0000:20:00.0/0000:21:00.0", "0x060400", "0x1000", "0xc030");
  host.pci("pci0000:20/0000:20:00.0/0000:21:00.0/0000:22:00.0", "0x060400", "0x1000", "0xc030");
  host.pci("pci0000:20/0000:20:00.0/0000:21:00.0/0000:22:01.0", "0x060400", "0x1000", "0xc030");
  const auto gpu = host.pci("pci0000:20/0000:20:00.0/0000:21:00.0/0000:22:00.0/0000:23:00.0", "0x030200",
                            "0x10de", "0x2330");
  host.files[gpu + "/current_link_speed"] = "16.0 GT/s PCIe\n";
  host.files[gpu + "/current_link_width"] = "8\n";
  host.files[gpu + "/max_link_speed"] = "32.0 GT/s PCIe\n";
  host.files[gpu + "/max_link_width"] = "16\n";
  host.files[gpu + "/local_cpulist"] = "0-3\n";
  host.links[gpu + "/driver"] = "../../../bus/pci/drivers/nvidia";
  const auto nic = host.pci("pci0000:20/0000:20:00.0/0000:21:00.0/0000:22:01.0/0000:24:00.0", "0x020000",
                            "0x15b3", "0x1021");
  host.links["/sys/class/net/ens1"] =
      "../../devices/pci0000:20/0000:20:00.0/0000:21:00.0/0000:22:01.0/0000:24:00.0/net/ens1";
  host.files["/sys/class/net/ens1/speed"] = "100000\n";
}

FakeHost one_switch() { return FakeHost(add_one_switch); }

std::string type_between(const model::Topology& topology, const std::string& a, const std::string& b) {
  for (const auto& path : model::paths_of(topology))
    if (path.a == a && path.b == b && path.type) return model::name_of(*path.type);
  return "";
}

TEST(DiscoverPci, TreeFollowsFromTheKernelsLinks) {
  const auto machine = discover(one_switch());
  const auto& topology = machine.topology;
  ASSERT_EQ(topology.gpus.size(), 1u);
  EXPECT_EQ(topology.gpus[0].id, "GPU0");
  EXPECT_EQ(topology.gpus[0].bdf, "0000:23:00.0");
  ASSERT_EQ(topology.nics.size(), 1u);
  EXPECT_EQ(topology.nics[0].name, "ens1");
  EXPECT_EQ(topology.nics[0].rate->value, 100);
  EXPECT_EQ(type_between(topology, "GPU0", "NIC0"), "PIX");
  ASSERT_EQ(topology.switches.size(), 1u);
  EXPECT_EQ(topology.switches[0].bdf, "0000:21:00.0");
  const auto* root = model::find_pci(topology, "0000:20:00.0");
  ASSERT_NE(root, nullptr);
  EXPECT_TRUE(root->root_port) << "the first bridge, where configuration space does not tell";
  EXPECT_TRUE(model::find_pci(topology, "0000:22:01.0")->pcie_switch_port);
}

TEST(DiscoverPci, LinksAndDrivers) {
  const auto machine = discover(one_switch());
  const auto* gpu = model::find_pci(machine.topology, "0000:23:00.0");
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->current, (model::PcieLink{16.0, 8}));
  EXPECT_EQ(gpu->capable, (model::PcieLink{32.0, 16}));
  EXPECT_EQ(gpu->driver, "nvidia");
  EXPECT_EQ(gpu->virtual_function, false);
  EXPECT_EQ(machine.topology.gpus[0].cpus->to_list(), "0-3");
  EXPECT_THAT(*machine.nvidia_pci_gpus, ElementsAre("0000:23:00.0"));
}

TEST(DiscoverPci, UnknownNumbersStayUnknown) {
  auto host = one_switch();
  const std::string gpu = "/sys/bus/pci/devices/0000:23:00.0/";
  host.files[gpu + "numa_node"] = "-1\n";
  host.files[gpu + "max_link_speed"] = "Unknown\n";
  host.files[gpu + "max_link_width"] = "255\n";
  const auto machine = discover(host);
  const auto* device = model::find_pci(machine.topology, "0000:23:00.0");
  EXPECT_EQ(device->numa, std::nullopt);
  EXPECT_EQ(device->capable, model::PcieLink{});
  EXPECT_EQ(machine.topology.gpus[0].numa, std::nullopt);
}

TEST(DiscoverPci, DeniedConfigurationSpaceIsNotAcsOff) {
  auto host = one_switch();
  host.deny("/sys/bus/pci/devices/0000:22:00.0/config");
  const auto machine = discover(host);
  const auto* port = model::find_pci(machine.topology, "0000:22:00.0");
  EXPECT_EQ(port->acs_control, std::nullopt);
  EXPECT_EQ(port->config_why, "denied");
}

TEST(DiscoverPci, DeadDeviceIsKept) {
  auto host = one_switch();
  host.files["/sys/bus/pci/devices/0000:23:00.0/config"] = std::string(4096, '\xff');
  EXPECT_EQ(model::find_pci(discover(host).topology, "0000:23:00.0")->config_all_ones, true);
}

TEST(DiscoverPci, UnreadablePlaceIsADiagnosticNotALostGpu) {
  auto host = one_switch();
  host.links["/sys/bus/pci/devices/0000:23:00.0"] = "somewhere";
  const auto machine = discover(host);
  EXPECT_EQ(machine.topology.gpus.size(), 1u);
  EXPECT_THAT(machine.diagnostics, Contains(testing::Field(&model::Warning::code, "no-position")));
}

TEST(DiscoverPci, ConsolesAndCpuGraphicsAreNoGpus) {
  FakeHost host;
  host.pci("pci0000:00/0000:00:02.0", "0x030000", "0x8086", "0x4680");
  host.pci("pci0000:00/0000:00:1c.0/0000:01:00.0", "0x030000", "0x1a03", "0x2000");
  host.pci("pci0000:00/0000:00:1d.0/0000:02:00.0", "0x030000", "0x1002", "0x515e");
  EXPECT_THAT(discover(host).topology.gpus, IsEmpty());
}

TEST(DiscoverPci, ComputeCardsWithoutAConsoleAreGpus) {
  FakeHost host;
  host.pci("pci0000:00/0000:00:01.0/0000:01:00.0", "0x038000", "0x1002", "0x740f");
  host.pci("pci0000:00/0000:00:02.0/0000:02:00.0", "0x120000", "0x1002", "0x74a1");
  const auto machine = discover(host);
  EXPECT_EQ(machine.topology.gpus.size(), 2u);
  EXPECT_THAT(*machine.nvidia_pci_gpus, IsEmpty());
}

TEST(DiscoverPci, NvswitchesAreSwitches) {
  FakeHost host;
  host.pci("pci0000:80/0000:80:01.0/0000:81:00.0", "0x068000", "0x10de", "0x22a3");
  const auto machine = discover(host);
  ASSERT_EQ(machine.topology.switches.size(), 1u);
  EXPECT_EQ(machine.topology.switches[0].kind, "nvswitch");
}

TEST(DiscoverPci, MachineWithoutSysfsIsStillAMachine) {
  const FakeHost host;
  const auto machine = discover(host);
  EXPECT_THAT(machine.topology.gpus, IsEmpty());
  EXPECT_FALSE(machine.topology.tree_known);
  EXPECT_FALSE(machine.nvidia_pci_gpus);
  EXPECT_EQ(machine.nvidia_pci_gpus.why, "not found");
  EXPECT_THAT(machine.diagnostics, Contains(testing::Field(&model::Warning::code, "no-pci")));
}

TEST(DiscoverPci, NothingCapturedIsNotFine) {
  FakeHost host;
  for (const auto* path : {"/sys", "/proc", "/etc", "/run", "/dev", "nvml", "hwloc", "process", "libraries"})
    host.errors[path] = Error{Errc::not_captured, "", {}, {}, {}, {}};
  const auto machine = discover(host);
  EXPECT_EQ(machine.memlock.why, "not captured");
  EXPECT_EQ(machine.rdma_read.why, "not captured");
  EXPECT_EQ(machine.modules.why, "not captured");
  EXPECT_EQ(machine.peermem.why, "not captured");
  EXPECT_EQ(machine.nvml_gpu_count.why, "not captured");
}

TEST(DiscoverNuma, NodesFromTheKernelWhereHwlocIsAbsent) {
  FakeHost host;
  const std::string node = "/sys/devices/system/node/node";
  for (const int id : {0, 1}) {
    host.files[node + std::to_string(id) + "/cpulist"] = id == 0 ? "0-1\n" : "2-3\n";
    host.files[node + std::to_string(id) + "/distance"] = id == 0 ? "10 21\n" : "21 10\n";
    host.files[node + std::to_string(id) + "/meminfo"] = "Node 0 MemTotal:  1024 kB\n";
  }
  const auto numa = discover(host).topology.numa;
  ASSERT_EQ(numa.size(), 2u);
  EXPECT_EQ(numa[1].cpus->to_list(), "2-3");
  EXPECT_EQ(numa[1].distances, (std::map<int, int>{{0, 21}, {1, 10}}));
  EXPECT_EQ(numa[0].memory_bytes, 1024u * 1024);
}

}  // namespace
}  // namespace topotune::discover
