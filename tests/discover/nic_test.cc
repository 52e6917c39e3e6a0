#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "discover/discover.h"
#include "fake_host.h"

namespace topotune::discover {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

const std::string kZero = "0000:0000:0000:0000:0000:0000:0000:0000\n";

// One RDMA device; `bdf` "" is one without a PCI device.
void add_rdma(FakeHost& host, const std::string& name, const std::string& bdf,
              const std::string& layer = "InfiniBand", const std::string& port_number = "1") {
  const std::string device = "/sys/class/infiniband/" + name, port = device + "/ports/" + port_number;
  if (!bdf.empty()) {
    host.pci("pci0000:20/0000:20:00.0/" + bdf, "0x020700", "0x15b3", "0x1021", "1");
    host.links[device + "/device"] = "../../../" + bdf;
  }
  host.files[device + "/fw_ver"] = "28.39.1002\n";
  host.files[device + "/board_id"] = "MT_0000000838\n";
  host.files[port + "/state"] = "4: ACTIVE\n";
  host.files[port + "/phys_state"] = "5: LinkUp\n";
  host.files[port + "/link_layer"] = layer + "\n";
  host.files[port + "/rate"] = "400 Gb/sec (4X NDR)\n";
  host.files[port + "/lid"] = "0x12\n";
  host.files[port + "/sm_lid"] = "0x1\n";
  host.files[port + "/counters/link_downed"] = "3\n";
  host.files[port + "/hw_counters/out_of_sequence"] = "N/A (no PMA)\n";
}

TEST(DiscoverNic, RdmaPort) {
  FakeHost host;
  add_rdma(host, "mlx5_0", "0000:21:00.0");
  const auto machine = discover(host);
  ASSERT_EQ(machine.ports.size(), 1u);
  const auto& port = machine.ports[0];
  EXPECT_EQ(port.state, "ACTIVE");
  EXPECT_EQ(port.phys_state, "LinkUp");
  EXPECT_EQ(port.gbits_per_s, 400.0);
  EXPECT_EQ(port.lid, 18);
  EXPECT_EQ(port.sm_lid, 1);
  EXPECT_EQ(port.firmware, "28.39.1002");
  EXPECT_EQ(port.bdf, "0000:21:00.0");
  EXPECT_EQ(port.active_mtu, std::nullopt) << "sysfs does not tell it on InfiniBand";
  EXPECT_EQ(port.counters.at("link_downed"), 3u);
  EXPECT_FALSE(port.counters.contains("out_of_sequence"));
  ASSERT_EQ(machine.topology.nics.size(), 1u);
  EXPECT_EQ(machine.topology.nics[0].numa, 1);
  EXPECT_TRUE(machine.topology.nics[0].rdma);
}

TEST(DiscoverNic, NamesCountAsPeopleDo) {
  FakeHost host;
  add_rdma(host, "mlx5_10", "0000:22:00.0");
  add_rdma(host, "mlx5_2", "0000:21:00.0");
  add_rdma(host, "mlx5_bond_0", "0000:23:00.0");
  std::vector<std::string> names;
  for (const auto& nic : discover(host).topology.nics) names.push_back(nic.name.value_or(""));
  EXPECT_THAT(names, ElementsAre("mlx5_2", "mlx5_10", "mlx5_bond_0"));
}

TEST(DiscoverNic, GidsThatAreUsed) {
  FakeHost host;
  add_rdma(host, "mlx5_0", "0000:21:00.0", "Ethernet");
  const std::string port = "/sys/class/infiniband/mlx5_0/ports/1/";
  for (int i = 0; i < 64; ++i) host.files[port + "gids/" + std::to_string(i)] = kZero;
  host.files[port + "gids/0"] = "fe80:0000:0000:0000:0000:00ff:fe00:0010\n";
  host.files[port + "gids/3"] = "0000:0000:0000:0000:0000:ffff:0a4d:000a\n";
  host.files[port + "gid_attrs/types/3"] = "RoCE v2\n";
  host.files[port + "gid_attrs/ndevs/3"] = "ens1\n";
  host.files["/sys/class/net/ens1/mtu"] = "4200\n";
  const auto machine = discover(host);
  const auto& gids = machine.ports.at(0).gids;
  ASSERT_EQ(gids.size(), 2u);
  EXPECT_EQ(gids[1].index, 3);
  EXPECT_EQ(gids[1].type, "RoCE v2");
  EXPECT_EQ(gids[1].netdev, "ens1");
  EXPECT_EQ(machine.ports[0].gids_known, true);
  EXPECT_EQ(machine.ports[0].active_mtu, 4096);
}

TEST(DiscoverNic, EmptyGidTablesAreNotReadToTheEnd) {
  FakeHost host;
  add_rdma(host, "mlx5_0", "0000:21:00.0", "Ethernet");
  const std::string gids = "/sys/class/infiniband/mlx5_0/ports/1/gids/";
  for (int i = 0; i < 1024; ++i) host.files[gids + std::to_string(i)] = kZero;
  host.files[gids + "1000"] = "fe80:0000:0000:0000:0000:00ff:fe00:0010\n";
  EXPECT_THAT(discover(host).ports.at(0).gids, IsEmpty());
}

TEST(DiscoverNic, SoftRoceIsJoinedThroughItsNetdev) {
  FakeHost host;
  add_rdma(host, "rxe0", "", "Ethernet");
  host.files["/sys/class/infiniband/rxe0/parent"] = "eth0\n";
  host.pci("pci0000:20/0000:20:01.0/0000:29:00.0", "0x020000", "0x1af4", "0x1041", "0");
  host.links["/sys/class/net/eth0"] = "../../devices/pci0000:20/0000:20:01.0/0000:29:00.0/virtio4/net/eth0";
  const auto nics = discover(host).topology.nics;
  ASSERT_EQ(nics.size(), 1u) << "the netdev below an RDMA device is not a second NIC";
  EXPECT_EQ(nics[0].name, "rxe0");
  EXPECT_EQ(nics[0].bdf, "0000:29:00.0");
  EXPECT_FALSE(nics[0].is_virtual);
}

TEST(DiscoverNic, RdmaOverAVirtualNetdevIsVirtual) {
  FakeHost host;
  add_rdma(host, "rxe0", "", "Ethernet");
  host.files["/sys/class/infiniband/rxe0/parent"] = "br0\n";
  host.links["/sys/class/net/br0"] = "../../devices/virtual/net/br0";
  const auto nics = discover(host).topology.nics;
  ASSERT_EQ(nics.size(), 1u);
  EXPECT_TRUE(nics[0].is_virtual);
}

TEST(DiscoverNic, ADeviceOfTwoPortsShowsTheActiveOne) {
  FakeHost host;
  add_rdma(host, "mlx5_0", "0000:21:00.0");
  add_rdma(host, "mlx5_0", "0000:21:00.0", "Ethernet", "2");
  const std::string first = "/sys/class/infiniband/mlx5_0/ports/1/";
  host.files[first + "state"] = "1: DOWN\n";
  host.files[first + "rate"] = "10 Gb/sec (4X SDR)\n";
  const auto machine = discover(host);
  EXPECT_EQ(machine.ports.size(), 2u);
  ASSERT_EQ(machine.topology.nics.size(), 1u);
  EXPECT_EQ(machine.topology.nics[0].port, 2);
  EXPECT_EQ(machine.topology.nics[0].link_layer, "Ethernet");
  EXPECT_EQ(machine.topology.nics[0].rate->value, 400);
}

TEST(DiscoverNic, KernelWithoutRdmaHasNone) {
  FakeHost host;
  host.files["/proc/version"] = "Linux";
  const auto machine = discover(host);
  EXPECT_EQ(machine.rdma_read.value, true);
  EXPECT_THAT(machine.ports, IsEmpty());
}

TEST(DiscoverNic, DeniedClassIsUnknown) {
  FakeHost host;
  host.deny("/sys/class/infiniband");
  const auto machine = discover(host);
  EXPECT_FALSE(machine.rdma_read);
  EXPECT_EQ(machine.rdma_read.why, "denied");
}

TEST(DiscoverNic, DeviceWithoutReadablePortsIsADiagnostic) {
  FakeHost host;
  add_rdma(host, "mlx5_0", "0000:21:00.0");
  host.deny("/sys/class/infiniband/mlx5_0/ports");
  EXPECT_THAT(discover(host).diagnostics, Contains(Field(&model::Warning::code, "rdma-no-ports")));
}

}  // namespace
}  // namespace topotune::discover
