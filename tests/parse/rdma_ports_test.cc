#include "parse/rdma_ports.h"

#include <gtest/gtest.h>

#include "parse/ibdev2netdev.h"
#include "parse/ibstat.h"
#include "parse/ibstatus.h"
#include "parse/ibv_devinfo.h"
#include "parse/rdma_link.h"
#include "parse/show_gids.h"

namespace topotune::parse {
namespace {

constexpr std::string_view kIbstat =
    "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.1\n"
    "\tNode GUID: 0x0011223344556677\n\tSystem image GUID: 0x0011223344556678\n\tPort 1:\n\t\tState: Active\n"
    "\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tBase lid: 9\n\t\tSM lid: 3\n\t\tLink layer: InfiniBand\n"
    "CA 'mlx5_1'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Initializing\n\t\tPhysical state: Polling\n";

TEST(Ibstat, ReadsPorts) {
  const auto out = parse_ibstat(kIbstat);
  ASSERT_TRUE(out);
  ASSERT_EQ(out->ports.size(), 2u);
  const auto& port = out->ports[0].port;
  EXPECT_EQ(port.device, "mlx5_0");
  EXPECT_EQ(port.hca_type, "MT4129");
  EXPECT_EQ(port.firmware, "28.1");
  EXPECT_EQ(port.node_guid, "0011:2233:4455:6677");
  EXPECT_EQ(port.state, "ACTIVE");
  EXPECT_EQ(port.phys_state, "LinkUp");
  EXPECT_EQ(port.gbits_per_s, 400);
  EXPECT_EQ(port.lid, 9);
  EXPECT_EQ(port.sm_lid, 3);
  EXPECT_EQ(port.link_layer, "InfiniBand");
  EXPECT_EQ(out->ports[0].lines.at("state"), 8);
  EXPECT_FALSE(out->ports[0].cut);
  EXPECT_EQ(out->ports[1].port.state, "INIT");
  EXPECT_TRUE(out->ports[1].cut);
}

TEST(Ibstat, KeepsWhatStandsBeforeAPanic) {
  const auto out =
      parse_ibstat(std::string(kIbstat) + "ibpanic: [1] main: stat of IB device 'mlx5_2' failed\n");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->ports.size(), 2u);
  ASSERT_EQ(out->errors.size(), 1u);
  EXPECT_FALSE(parse_ibstat("CA x"));
}

TEST(Ibstatus, ReadsPorts) {
  const auto out = parse_ibstatus(
      "Infiniband device 'mlx5_ib0' port 2 status:\n\tdefault gid:\t fe80::1\n\tbase lid:\t 0x96\n\tsm "
      "lid:\t 0x11c\n"
      "\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n\trate:\t\t 200 Gb/sec (4X HDR)\n\tlink_layer:\t "
      "InfiniBand\n"
      "Infiniband device 'x' port 1 status:\n\tstate:\t 1: DOWN\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->ports.size(), 2u);
  const auto& port = out->ports[0].port;
  EXPECT_EQ(port.device, "mlx5_ib0");
  EXPECT_EQ(port.port, 2);
  EXPECT_EQ(port.lid, 0x96);
  EXPECT_EQ(port.sm_lid, 0x11c);
  EXPECT_EQ(port.state, "ACTIVE");
  EXPECT_EQ(port.phys_state, "LinkUp");
  EXPECT_EQ(port.gbits_per_s, 200);
  EXPECT_EQ(out->ports[1].port.state, "DOWN");
  EXPECT_TRUE(out->ports[1].cut);
}

TEST(IbvDevinfo, ReadsPortsRatesAndGids) {
  const auto out = parse_ibv_devinfo(
      "hca_id:\tmlx5_0\n\ttransport:\tInfiniBand (0)\n\tfw_ver:\t28.39\n\tnode_guid:\t0011:2233:4455:6677\n"
      "\tvendor_id:\t0x02c9\n\tvendor_part_id:\t4129\n\tboard_id:\tMT_0000000838\n\t\tport:\t1\n"
      "\t\t\tstate:\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t4096 (5)\n\t\t\tactive_mtu:\t1024 "
      "(3)\n\t\t\tsm_lid:\t0\n"
      "\t\t\tlink_layer:\tEthernet\n\t\t\tactive_width:\t4X (2)\n\t\t\tactive_speed:\t100.0 Gbps (128)\n"
      "\t\t\tphys_state:\tLINK_UP (5)\n\t\t\tGID[  0]:\tfe80::1, RoCE v1\n\t\t\tGID[  3]:\t::ffff:10.0.0.2, "
      "RoCE v2\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->ports.size(), 1u);
  const auto& port = out->ports[0].port;
  EXPECT_EQ(port.hca_type, "MT4129");
  EXPECT_EQ(port.board_id, "MT_0000000838");
  EXPECT_EQ(port.gbits_per_s, 400);
  EXPECT_EQ(port.max_mtu, 4096);
  EXPECT_EQ(port.active_mtu, 1024);
  EXPECT_EQ(port.phys_state, "LinkUp");
  EXPECT_EQ(port.gids_known, true);
  ASSERT_EQ(port.gids.size(), 2u);
  EXPECT_EQ(port.gids[0].type, "IB/RoCE v1");
  EXPECT_EQ(port.gids[1].index, 3);
  EXPECT_EQ(port.gids[1].address, "0000:0000:0000:0000:0000:ffff:0a00:0002");
}

TEST(IbvDevinfo, ACutTableIsNotWhole) {
  const auto out = parse_ibv_devinfo(
      "hca_id: a\n port: 1\n state: PORT_DOWN (1)\n link_layer: Ethernet\n GID[  0]: fe80::1, RoCE v1\n GID[ "
      " 1]: fe8");
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->ports[0].cut);
  EXPECT_EQ(out->ports[0].port.gids_known, std::nullopt);
}

TEST(IbvDevinfo, SaysWhenThereIsNone) {
  const auto out = parse_ibv_devinfo("No IB devices found\n");
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->none_found);
  EXPECT_EQ(
      parse_ibv_devinfo("    device       node GUID\n    ------       ----\n    a    505400fffe000010\n")
          ->devices,
      std::vector<std::string>{"a"});
}

TEST(Ibdev2netdev, TellsInterfacesNotPorts) {
  const auto out =
      parse_ibdev2netdev("mlx5_0 port 1 ==> ibp26s0 (Down)  # note\nmlx5_1   port  1  ==>  eth1  (Up)\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->ports.size(), 2u);
  EXPECT_EQ(out->ports[0].port.netdev, "ibp26s0");
  EXPECT_EQ(out->ports[0].netdev_up, false);
  EXPECT_EQ(out->ports[0].port.state, std::nullopt);
  EXPECT_EQ(out->ports[1].netdev_up, true);
}

TEST(Ibdev2netdev, VerboseTellsAddressAndPort) {
  const auto out = parse_ibdev2netdev(
      "0000:3b:00.0 mlx5_0 (MT4123 - P-1) ConnectX-6 VPI adapter fw 20.31.1 port 1 (ACTIVE) ==> ib0 (Up)\n");
  ASSERT_TRUE(out);
  const auto& port = out->ports[0].port;
  EXPECT_EQ(port.device, "mlx5_0");
  EXPECT_EQ(port.bdf, "0000:3b:00.0");
  EXPECT_EQ(port.hca_type, "MT4123");
  EXPECT_EQ(port.firmware, "20.31.1");
  EXPECT_EQ(port.state, "ACTIVE");
}

TEST(ShowGids, ReadsTheTable) {
  const auto out = parse_show_gids(
      "DEV\tPORT\tINDEX\tGID\tIPv4\tVER\tDEV\n---\t----\n"
      "mlx5_0\t1\t4\tfe80:0000:0000:0000:0200:00ff:fe00:0000\t\tv1\tnet1\n"
      "mlx5_0\t1\t7\t0000:0000:0000:0000:0000:ffff:0a00:000c\t10.0.0.12\tv2\tnet1\n"
      "n_gids_found=2\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->ports.size(), 1u);
  const auto& port = out->ports[0].port;
  EXPECT_EQ(port.gids_known, true);
  ASSERT_EQ(port.gids.size(), 2u);
  EXPECT_EQ(port.gids[0].index, 4);
  EXPECT_EQ(port.gids[1].type, "RoCE v2");
  EXPECT_EQ(port.gids[1].netdev, "net1");
}

TEST(ShowGids, ACutRowMakesTheTableUnknown) {
  const auto out = parse_show_gids(
      "DEV PORT INDEX GID IPv4 VER DEV\nb0 1 12 0000:0000:0000:0000:0000:ffff:c0a8:0016 192.168.0.22 v1 "
      "eth0\nb0 1\n");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->ports[0].port.gids_known, std::nullopt);
  EXPECT_TRUE(out->ports[0].cut);
}

TEST(RdmaLink, ReadsBothForms) {
  const auto out = parse_rdma_link(
      "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1\n"
      "1/1: mlx5_1/1: state DOWN physical_state DISABLED\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->ports.size(), 2u);
  EXPECT_EQ(out->ports[0].port.netdev, "ens1");
  EXPECT_EQ(out->ports[1].port.device, "mlx5_1");
  EXPECT_EQ(out->ports[1].port.phys_state, "Disabled");
}

TEST(RdmaWords, UnknownWordsStayUnknown) {
  EXPECT_EQ(rdma::port_state("5: ACTIVE_DEFER"), std::nullopt);
  EXPECT_EQ(rdma::gid("::"), std::nullopt);
  EXPECT_EQ(rdma::gid("1:2:3"), std::nullopt);
  EXPECT_EQ(rdma::gid("::1:2:3:4:5:6:7:8"), std::nullopt);
  EXPECT_EQ(rdma::guid("0x0"), std::nullopt);
  EXPECT_EQ(rdma::rate("-5"), std::nullopt);
  EXPECT_EQ(rdma::rate("1e300"), 1.0);
  EXPECT_EQ(rdma::lid("99999"), std::nullopt);
}

}  // namespace
}  // namespace topotune::parse
