#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/measurement.h"
#include "parse/ip_link.h"
#include "parse/measurement.h"
#include "parse/port_counters.h"
#include "parse/port_qos.h"
#include "parse/sysfs_pci.h"
#include "parse/sysfs_proc.h"

namespace topotune::parse {
namespace {

TEST(PortQos, MlnxQos) {
  constexpr std::string_view kText =
      "DCBX mode: OS controlled\n"
      "Priority trust state: dscp\n"
      "dscp2prio mapping:\n"
      "\tprio:0 dscp:07,06,05,04,03,02,01,00,\n"
      "\tprio:3 dscp:31,30,29,28,27,26,25,24,\n"
      "PFC configuration:\n"
      "\tpriority    0   1   2   3   4   5   6   7\n"
      "\tenabled     0   0   0   1   0   0   0   0\n"
      "tc: 0 ratelimit: unlimited, tsa: vendor\n"
      "\t priority:  1\n";
  ASSERT_TRUE(looks_like_port_qos(kText));
  const auto qos = parse_port_qos(kText, "mlnx_qos -i ens1f0np0");
  ASSERT_TRUE(qos);
  EXPECT_EQ(qos->netdev, "ens1f0np0");
  EXPECT_EQ(qos->trust, "dscp");
  EXPECT_EQ(qos->pfc_priorities, 8u);
  EXPECT_EQ(qos->dscp_priority.at(26), 3);
  EXPECT_EQ(qos->dscp_priority.at(0), 0);
  EXPECT_EQ(qos->dscp_priority.size(), 16u);
}

TEST(PortQos, Dcb) {
  const auto qos = parse_port_qos(
      "pfc-cap 8 macsec-bypass off delay 0\n"
      "prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off\n"
      "dscp-prio 26:3 AF41:4 CS6:6 EF:5\n"
      "order: dscp pcp\n",
      "dcb pfc show dev eth2");
  ASSERT_TRUE(qos);
  EXPECT_EQ(qos->netdev, "eth2");
  EXPECT_EQ(qos->pfc_priorities, 8u);
  EXPECT_EQ(qos->dscp_priority, (std::map<int, int>{{26, 3}, {34, 4}, {48, 6}, {46, 5}}));
  EXPECT_EQ(qos->trust, "dscp");
}

TEST(PortQos, RefusesNonsense) {
  EXPECT_FALSE(parse_port_qos("nothing of the kind\n", ""));
  const auto odd = parse_port_qos("prio-pfc 0:on 1:off\nenabled 0 1 x 0 0 0 0 0\nprio:9 dscp:99,\n", "");
  ASSERT_TRUE(odd);
  EXPECT_FALSE(odd->pfc_priorities) << "not all eight";
  EXPECT_TRUE(odd->dscp_priority.empty());
  EXPECT_TRUE(odd->netdev.empty());
}

TEST(PortCounters, Perfquery) {
  const auto records = parse_port_counters(
      "# Port counters: Lid 12 port 1 (CapMask: 0x5A00)\n"
      "PortSelect:......................1\n"
      "SymbolErrorCounter:..............7\n"
      "LinkDownedCounter:...............2\n"
      "PortXmitData:....................123456\n");
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 1u);
  EXPECT_EQ((*records)[0].lid, 12);
  EXPECT_EQ((*records)[0].counters.at("symbol_error"), 7u);
  EXPECT_EQ((*records)[0].counters.at("link_downed"), 2u);
  EXPECT_EQ((*records)[0].counters.size(), 3u);
}

TEST(PortCounters, GrepAndRdmaStatistic) {
  const auto records = parse_port_counters(
      "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:3\n"
      "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence:9\n"
      "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait:N/A (no PMA)\n"
      "link mlx5_1/1 rx_write_requests 0 rx_read_requests 0 packet_seq_err 4\n");
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 2u);
  EXPECT_EQ((*records)[0].device, "mlx5_0");
  EXPECT_EQ((*records)[0].counters.at("out_of_sequence"), 9u);
  EXPECT_FALSE((*records)[0].counters.contains("port_xmit_wait"));
  EXPECT_EQ((*records)[1].counters.at("packet_seq_err"), 4u);
  EXPECT_FALSE(parse_port_counters("PortXmitWait:....4\n")) << "of which port?";
}

TEST(IpAddr, NetworksHaveTheRealPrefix) {
  const auto found = parse_ip_link(
      "2: eth0: <BROADCAST,UP> mtu 9000 qdisc mq state UP group default qlen 1000\n"
      "    inet 10.7.131.9/18 brd 10.7.191.255 scope global eth0\n"
      "    inet 192.168.5.1/31 scope global eth0\n"
      "    inet 300.1.1.1/24 scope global eth0\n"
      "    inet 10.0.0.1 peer 10.0.0.2/32 scope global eth0\n");
  ASSERT_TRUE(found);
  EXPECT_THAT((*found)[0].networks, testing::ElementsAre("10.7.128.0/18", "192.168.5.0/31"));
}

TEST(Measurement, ResultsWithParametersAndUnit) {
  const std::string text =
      R"({"schema":"topotune.measurement/1","results":[
        {"name":"p2p","params":{"src":"GPU0","bytes":64},"unit":"gbytes_per_s","samples":[3,1,2],"status":"ok"},
        {"name":"lat","params":{},"unit":"seconds","median":1e-6,"samples":[],"status":"noisy"},
        {"name":"bad","unit":"s"},{"unit":"s","median":1},7]})";
  ASSERT_TRUE(looks_like_measurement(text));
  const auto found = parse_measurement(text);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].key, "p2p bytes=64 src=GPU0 (gbytes_per_s)");
  EXPECT_EQ((*found)[0].median, 2);
  EXPECT_EQ((*found)[0].samples, 3u);
  EXPECT_EQ((*found)[1].status, "noisy");
  EXPECT_TRUE(model::larger_is_better("gbytes_per_s"));
  EXPECT_FALSE(model::larger_is_better("seconds"));
  EXPECT_FALSE(model::larger_is_better("us"));
  model::Measurement time;
  time.unit = "us";
  EXPECT_FALSE(time.higher_is_better());
}

TEST(Measurement, RefusesOthers) {
  EXPECT_FALSE(looks_like_measurement("# topotune.measurement/1"));
  EXPECT_FALSE(parse_measurement("{\"schema\":\"topotune.findings/1\"}"));
  EXPECT_FALSE(parse_measurement("{\"schema\":\"topotune.measurement/1\"}"));
  EXPECT_FALSE(parse_measurement("{\"schema\":\"topotune.measurement/1\",\"results\":"));
  EXPECT_FALSE(parse_measurement(std::string(100000, '[')));
}

TEST(SmallFiles, AerThrottledAndTime) {
  EXPECT_EQ(parse_aer_total("RxErr 3\nBadTLP 0\nTOTAL_ERR_COR 3\n"), 3u);
  EXPECT_FALSE(parse_aer_total("RxErr 3\n"));
  EXPECT_EQ(parse_throttled("usage_usec 9\nnr_periods 5\nnr_throttled 2\n"), 2u);
  EXPECT_FALSE(parse_throttled("usage_usec 9\n"));
  EXPECT_EQ(parse_utc("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(parse_utc("2026-01-31T12:00:00Z"), 1769860800);
  EXPECT_EQ(parse_utc("2024-02-29T23:59:59Z"), 1709251199);
  EXPECT_FALSE(parse_utc("2026-13-01T00:00:00Z"));
  EXPECT_FALSE(parse_utc("yesterday"));
}

}  // namespace
}  // namespace topotune::parse
