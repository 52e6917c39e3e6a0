// What two readings and fleets are compared by: error counters, priorities, networks, CPU limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "discover/discover.h"
#include "discover/folder.h"
#include "fake_host.h"

namespace topotune::discover {
namespace {

FakeHost roce_machine() {
  return FakeHost([](FakeHost& host) {
    const auto folder = host.pci("pci0000:20/0000:20:00.0/0000:21:00.0", "0x020000", "0x15b3", "0x1021");
    host.files[folder + "/aer_dev_correctable"] = "RxErr 4\nBadTLP 1\nTOTAL_ERR_COR 5\n";
    host.files[folder + "/aer_dev_fatal"] = "TOTAL_ERR_FATAL 0\n";
    const std::string device = "/sys/class/infiniband/mlx5_0", port = device + "/ports/1";
    host.links[device + "/device"] = "../../../0000:21:00.0";
    host.files[port + "/state"] = "4: ACTIVE\n";
    host.files[port + "/link_layer"] = "Ethernet\n";
    host.files[port + "/gids/0"] = "fe80:0000:0000:0000:0000:0000:0000:0001\n";
    host.files[port + "/gid_attrs/ndevs/0"] = "eth0\n";
    host.files["/sys/class/net/eth0/carrier_changes"] = "4\n";
    for (int i = 0; i < 8; ++i)
      host.files["/sys/class/net/eth0/ecn/roce_np/enable/" + std::to_string(i)] = i == 3 ? "1\n" : "0\n";
    host.files["/sys/class/net/eth0/qos/trust"] = "dscp\n";
    // One text for both questions: each takes its own lines.
    host.programs["dcb"] = "prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off\ndscp-prio 26:3\n";
    host.programs["ip"] =
        "2: eth0: <UP> mtu 9000 qdisc mq state UP group default\n    inet 10.3.9.1/22 scope global eth0\n";
  });
}

TEST(DiscoverCounters, PortsOfRoce) {
  const auto host = roce_machine();
  const auto machine = discover(host);
  ASSERT_EQ(machine.ports.size(), 1u);
  const auto& port = machine.ports[0];
  EXPECT_EQ(port.carrier_changes, 4u);
  EXPECT_EQ(port.pfc_priorities, 8u);
  EXPECT_EQ(port.dscp_priority.at(26), 3);
  EXPECT_EQ(port.trust, "dscp");
  EXPECT_EQ(port.ecn, true);
  EXPECT_THAT(port.networks, testing::ElementsAre("10.3.8.0/22"));
  const auto* device = model::find_pci(machine.topology, "0000:21:00.0");
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->aer.at("correctable"), 5u);
  EXPECT_EQ(device->aer.at("fatal"), 0u);
  EXPECT_FALSE(device->aer.contains("nonfatal"));
}

TEST(DiscoverCounters, WithoutToolsNothingIsInvented) {
  auto host = roce_machine();
  host.programs.clear();
  host.files.erase("/sys/class/net/eth0/ecn/roce_np/enable/0");
  const auto machine = discover(host);
  const auto& port = machine.ports.at(0);
  EXPECT_FALSE(port.pfc_priorities);
  EXPECT_TRUE(port.dscp_priority.empty());
  EXPECT_FALSE(port.ecn);
  EXPECT_TRUE(port.networks.empty());
}

TEST(DiscoverCounters, TheNearestGroupThatLimits) {
  FakeHost host;
  host.files["/proc/self/cgroup"] = "0::/kubepods/pod1/c1\n";
  host.files["/sys/fs/cgroup/kubepods/pod1/c1/cpu.max"] = "max 100000\n";
  host.files["/sys/fs/cgroup/kubepods/pod1/cpu.max"] = "400000 100000\n";
  host.files["/sys/fs/cgroup/kubepods/pod1/cpu.stat"] = "usage_usec 1\nnr_periods 9\nnr_throttled 7\n";
  host.files["/proc/sys/kernel/hostname"] = "pod-a\n";
  host.files["/proc/uptime"] = "120.50 9.00\n";
  const auto machine = discover(host);
  ASSERT_TRUE(machine.cpu_max);
  EXPECT_EQ(*machine.cpu_max, "400000 100000");
  EXPECT_EQ(machine.cpu_throttled.value, 7u);
  EXPECT_EQ(machine.hostname.value, "pod-a");
  EXPECT_EQ(machine.uptime_seconds, 120.5);
}

TEST(DiscoverCounters, WithoutALimitAndInOldGroups) {
  FakeHost free;
  free.files["/proc/self/cgroup"] = "0::/\n";
  free.files["/sys/fs/cgroup/cgroup.controllers"] = "cpu\n";
  EXPECT_EQ(discover(free).cpu_max.value, "max");
  FakeHost old;
  old.files["/proc/self/cgroup"] = "3:cpu,cpuacct:/x\n2:cpuset:/x\n";
  const auto machine = discover(old);
  EXPECT_FALSE(machine.cpu_max);
}

TEST(FolderCounters, TextsOfPorts) {
  const std::vector<NamedText> texts = {
      {"ibstat.txt",
       "CA 'mlx5_0'\n\tCA type: MT4123\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tPhysical "
       "state: LinkUp\n"
       "\t\tRate: 200\n\t\tBase lid: 12\n\t\tSM lid: 1\n\t\tLink layer: InfiniBand\n"},
      {"perf.txt",
       "# Port extended counters: Lid 12 port 1 (CapMask: 0x5A00)\nLinkDownedCounter:...............2\n"},
      {"nvlink.txt",
       "GPU 0: NVIDIA X100 (UUID: GPU-a)\n\t Link 0: Replay Errors: 5\n\t Link 0: Recovery Errors: 0\n"
       "\t Link 0: CRC Errors: 0\n"}};
  const auto read = read_texts(texts);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->machine.ports.size(), 1u);
  EXPECT_EQ(read->machine.ports[0].counters.at("link_downed"), 2u);
  ASSERT_EQ(read->machine.gpu_states.size(), 1u);
  EXPECT_EQ(read->machine.gpu_states[0].nvlink_errors.at(0).at("replay"), 5u);
  EXPECT_EQ(read->machine.gpu_states[0].nvlink_errors.at(0).at("crc_flit"), 0u);
}

TEST(FolderCounters, PrioritiesNeedTheInterfacesName) {
  const std::string qos = "Priority trust state: dscp\nPFC configuration:\n\tenabled 0 0 0 1 0 0 0 0\n";
  const std::string link = "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1\n";
  const auto named =
      read_texts(std::vector<NamedText>{{"rdma.txt", link}, {"q.txt", "$ mlnx_qos -i ens1\n" + qos}});
  ASSERT_TRUE(named);
  EXPECT_EQ(named->machine.ports.at(0).pfc_priorities, 8u);
  EXPECT_EQ(named->machine.ports.at(0).trust, "dscp");
  const auto unnamed = read_texts(std::vector<NamedText>{{"rdma.txt", link}, {"q.txt", qos}});
  ASSERT_TRUE(unnamed);
  EXPECT_FALSE(unnamed->machine.ports.at(0).pfc_priorities);
  EXPECT_TRUE(std::ranges::any_of(unnamed->machine.diagnostics,
                                  [](const auto& one) { return one.code == "interface-unknown"; }));
}

}  // namespace
}  // namespace topotune::discover
