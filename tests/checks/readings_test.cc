#include "checks/readings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checks/build.h"

namespace topotune::checks::test {
namespace {

// A rail in two readings, an interval apart.
struct Twice {
  Machine before = gpu_and_nic_on_a_switch(), now = gpu_and_nic_on_a_switch();
  std::optional<double> seconds = 60;
  bool job = false;

  Twice() {
    for (auto* machine : {&before, &now})
      for (const char* name :
           {"link_downed", "symbol_error", "link_error_recovery", "local_link_integrity_errors",
            "excessive_buffer_overrun_errors", "port_rcv_errors", "port_xmit_discards", "out_of_sequence",
            "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err"})
        machine->ports[0].counters[name] = 3;
  }
  model::RdmaPort& port() { return now.ports[0]; }
  Said says(const std::string& rule) const {
    Evidence evidence;
    evidence.machine = &now;
    evidence.before = &before;
    evidence.seconds = seconds;
    evidence.multi_node_job = job;
    return said_in(run(evidence), rule);
  }
};

TEST(Readings, OneReadingProvesNothing) {
  const auto machine = gpu_and_nic_on_a_switch();
  for (const char* rule : {"CTR01", "CTR02", "CTR03", "CTR04", "CTR05", "CTR06", "PCIE05"}) {
    const auto said = says(rule, machine);
    EXPECT_TRUE(said.not_evaluated()) << rule;
    EXPECT_THAT(said.why, testing::HasSubstr("--since")) << rule;
  }
}

TEST(Readings, ABootBetweenThemProvesNothing) {
  Twice twice;
  twice.port().counters["link_downed"] = 9;
  twice.before.boot_id = known<std::string>("a");
  twice.now.boot_id = known<std::string>("b");
  EXPECT_TRUE(twice.says("CTR01").not_evaluated());
  twice.now.boot_id = known<std::string>("a");
  EXPECT_FALSE(twice.says("CTR01").not_evaluated());
}

// A redacted capture has no boot id that could be compared; when the machine was started tells.
TEST(Readings, TheTimeOfTheStartTellsTheBoot) {
  Twice twice;
  twice.port().counters["link_downed"] = 9;
  twice.before.read_at = 1000;
  twice.before.uptime_seconds = 500;
  twice.now.read_at = 4600;
  twice.now.uptime_seconds = 4100;
  EXPECT_FALSE(twice.says("CTR01").not_evaluated());
  twice.now.uptime_seconds = 60;
  EXPECT_TRUE(twice.says("CTR01").not_evaluated());
}

TEST(Ctr01, OneLossOnAnIdleActivePortIsAWarning) {
  Twice twice;
  EXPECT_TRUE(twice.says("CTR01").clean());
  twice.port().counters["link_downed"] = 4;
  EXPECT_TRUE(twice.says("CTR01").one(Severity::warn));
  twice.job = true;
  EXPECT_TRUE(twice.says("CTR01").one(Severity::error));
}

TEST(Ctr01, TwoLossesOrAPortThatIsDownAreErrors) {
  Twice twice;
  twice.port().counters["link_downed"] = 5;
  EXPECT_TRUE(twice.says("CTR01").one(Severity::error));
  twice.port().counters["link_downed"] = 4;
  twice.port().state = "DOWN";
  EXPECT_TRUE(twice.says("CTR01").one(Severity::error));
}

TEST(Ctr01, ResetAndSaturatedCountersAreNoLoss) {
  Twice twice;
  twice.port().counters["link_downed"] = 0;
  EXPECT_TRUE(twice.says("CTR01").clean());
  twice.before.ports[0].counters["link_downed"] = 255;
  twice.port().counters["link_downed"] = 255;
  EXPECT_TRUE(twice.says("CTR01").clean());
}

TEST(Ctr01, CarrierChangesCountToo) {
  Twice twice;
  twice.before.ports[0].carrier_changes = 2;
  twice.port().carrier_changes = 4;
  EXPECT_TRUE(twice.says("CTR01").clean());
  twice.port().carrier_changes = 5;
  EXPECT_TRUE(twice.says("CTR01").one(Severity::warn));
}

TEST(Ctr02, SymbolErrorsOfNrzLinksOnly) {
  Twice twice;
  twice.port().counters["symbol_error"] = 3 + 60 * 11;
  EXPECT_TRUE(twice.says("CTR02").clean()) << "400 Gb/s is PAM4";
  twice.port().gbits_per_s = 56;
  EXPECT_TRUE(twice.says("CTR02").one(Severity::warn));
  twice.port().counters["symbol_error"] = 3 + 60 * 9;
  EXPECT_TRUE(twice.says("CTR02").clean());
  twice.seconds = 7200;
  EXPECT_TRUE(twice.says("CTR02").one(Severity::error)) << "540 in two hours, sustained";
  twice.seconds = std::nullopt;
  EXPECT_TRUE(twice.says("CTR02").not_evaluated());
}

TEST(Ctr02, Recoveries) {
  Twice twice;
  twice.port().counters["link_error_recovery"] = 3 + 6;
  EXPECT_TRUE(twice.says("CTR02").one(Severity::warn));
  twice.port().counters["link_error_recovery"] = 3 + 5;
  EXPECT_TRUE(twice.says("CTR02").clean());
}

TEST(Ctr03, AnyRiseIsAnErrorReceiveErrorsOnlyWhenMany) {
  Twice twice;
  EXPECT_TRUE(twice.says("CTR03").clean());
  twice.port().counters["port_rcv_errors"] = 3 + 600;
  EXPECT_TRUE(twice.says("CTR03").clean());
  twice.port().counters["port_rcv_errors"] = 3 + 601;
  EXPECT_TRUE(twice.says("CTR03").one(Severity::warn));
  twice.port().counters["port_rcv_errors"] = 3;
  twice.port().counters["excessive_buffer_overrun_errors"] = 4;
  EXPECT_TRUE(twice.says("CTR03").one(Severity::error));
}

TEST(Ctr04, RetransmissionsAndReorderedPackets) {
  Twice twice;
  EXPECT_TRUE(twice.says("CTR04").clean());
  twice.port().counters["packet_seq_err"] = 3 + 61;
  EXPECT_TRUE(twice.says("CTR04").one(Severity::warn));
  twice.port().counters["packet_seq_err"] = 3 + 60;
  EXPECT_TRUE(twice.says("CTR04").clean());
  twice.port().counters["out_of_sequence"] = 3 + 6000;
  twice.port().counters["packet_seq_err"] = 3;
  EXPECT_TRUE(twice.says("CTR04").one(Severity::info));
  twice.port().counters["out_of_sequence"] = 3;
  twice.port().counters["rnr_nak_retry_err"] = 4;
  EXPECT_TRUE(twice.says("CTR04").one(Severity::error));
}

TEST(Ctr05, Discards) {
  Twice twice;
  twice.port().counters["port_xmit_discards"] = 3 + 6000;
  EXPECT_TRUE(twice.says("CTR05").clean());
  twice.port().counters["port_xmit_discards"] = 3 + 6001;
  EXPECT_TRUE(twice.says("CTR05").one(Severity::warn));
  twice.port().counters["link_downed"] = 4;
  EXPECT_TRUE(twice.says("CTR05").clean()) << "the link went down: discards follow from that";
}

TEST(Ctr06, OneRailWaitsTenTimesAsLongAsTheOthers) {
  Twice twice;
  for (auto* machine : {&twice.before, &twice.now}) add_nic(*machine, "0000:05:00.0", "0000:02:01.0");
  for (auto* machine : {&twice.before, &twice.now})
    for (auto& port : machine->ports) port.counters["port_xmit_wait"] = port.counters["port_xmit_data"] = 0;
  for (auto& port : twice.now.ports) port.counters["port_xmit_data"] = 100000;
  twice.now.ports[0].counters["port_xmit_wait"] = 20000;
  twice.now.ports[1].counters["port_xmit_wait"] = 2001;
  EXPECT_TRUE(twice.says("CTR06").clean());
  twice.now.ports[1].counters["port_xmit_wait"] = 1999;
  const auto said = twice.says("CTR06");
  EXPECT_TRUE(said.one(Severity::info));
  EXPECT_EQ(said.subject(), "mlx5_0");
  twice.now.ports[1].counters["port_xmit_data"] = 0;
  EXPECT_TRUE(twice.says("CTR06").not_evaluated()) << "nothing to compare with";
}

TEST(Pcie05, ErrorsByKind) {
  Twice twice;
  pci(twice.before, "0000:03:00.0").aer = {{"correctable", 1}, {"nonfatal", 0}, {"fatal", 0}};
  pci(twice.now, "0000:03:00.0").aer = {{"correctable", 33}, {"nonfatal", 0}, {"fatal", 0}};
  EXPECT_TRUE(twice.says("PCIE05").clean());
  pci(twice.now, "0000:03:00.0").aer["correctable"] = 34;
  EXPECT_TRUE(twice.says("PCIE05").one(Severity::warn));
  pci(twice.now, "0000:03:00.0").aer = {{"correctable", 1}, {"nonfatal", 1}, {"fatal", 0}};
  twice.seconds = std::nullopt;
  EXPECT_TRUE(twice.says("PCIE05").one(Severity::warn)) << "one is too many, whatever the time";
}

TEST(Pcie05, ReplaysByRateAndLanes) {
  Twice twice;
  for (auto* machine : {&twice.before, &twice.now}) {
    machine->gpu_states.push_back({});
    machine->gpu_states[0].gpu = "GPU0";
    machine->gpu_states[0].pcie_replays = 0;
    pci(*machine, "0000:03:00.0").capable = {16.0, 16};
  }
  twice.now.gpu_states[0].pcie_replays = 16;
  EXPECT_TRUE(twice.says("PCIE05").clean()) << "Gen4 x16: 16 a minute";
  twice.now.gpu_states[0].pcie_replays = 17;
  EXPECT_TRUE(twice.says("PCIE05").one(Severity::warn));
}

TEST(Nvl06, ErrorsOfLinks) {
  Twice twice;
  for (auto* machine : {&twice.before, &twice.now}) {
    machine->gpu_states.push_back({});
    machine->gpu_states[0].gpu = "GPU0";
    machine->gpu_states[0].nvlink_errors[4] = {{"replay", 0}, {"recovery", 0}, {"crc_flit", 10}};
  }
  EXPECT_TRUE(twice.says("NVL06").clean());
  auto& link = twice.now.gpu_states[0].nvlink_errors[4];
  link["replay"] = 1;
  EXPECT_TRUE(twice.says("NVL06").one(Severity::error));
  EXPECT_EQ(twice.says("NVL06").subject(), "GPU0 link 4");
  link["replay"] = 0;
  link["crc_flit"] = 10 + 60 * 5;
  EXPECT_TRUE(twice.says("NVL06").one(Severity::warn));
  link["crc_flit"] = 10 + 60 * 100;
  EXPECT_TRUE(twice.says("NVL06").one(Severity::error));
  link["crc_flit"] = 10 + 59;
  EXPECT_TRUE(twice.says("NVL06").clean());
}

TEST(Cont03, ThrottledPeriods) {
  Twice twice;
  EXPECT_TRUE(twice.says("CONT03").not_evaluated());
  twice.now.cpu_max = known<std::string>("max 100000");
  EXPECT_TRUE(twice.says("CONT03").clean());
  twice.now.cpu_max = known<std::string>("400000 100000");
  twice.before.cpu_throttled = known<std::uint64_t>(7);
  twice.now.cpu_throttled = known<std::uint64_t>(7);
  EXPECT_TRUE(twice.says("CONT03").clean());
  twice.now.cpu_throttled = known<std::uint64_t>(8);
  EXPECT_TRUE(twice.says("CONT03").one(Severity::warn));
}

// ---- QOS04

struct Marked {
  Machine machine = gpu_and_nic_on_a_switch("Ethernet");
  std::map<std::string, std::string> environment{{"NCCL_IB_TC", "106"}};

  Marked() {
    machine.ports[0].trust = "dscp";
    machine.ports[0].dscp_priority = {{26, 3}, {27, 3}, {0, 0}};
    machine.ports[0].pfc_priorities = 1u << 3;
  }
  Said says() const {
    Evidence evidence;
    evidence.machine = &machine;
    evidence.environment = environment;
    return said_in(run(evidence), "QOS04");
  }
};

TEST(Qos04, TheDscpGoesToAPriorityWithPfc) {
  Marked marked;
  EXPECT_TRUE(marked.says().clean());
  marked.machine.ports[0].dscp_priority[26] = 2;
  EXPECT_TRUE(marked.says().one(Severity::warn));
  marked.machine.ports[0].adaptive_retransmission = true;
  EXPECT_TRUE(marked.says().clean()) << "lossy by design";
}

TEST(Qos04, TrustOfThePcpIgnoresTheDscp) {
  Marked marked;
  marked.machine.ports[0].trust = "pcp";
  EXPECT_TRUE(marked.says().one(Severity::warn));
}

TEST(Qos04, WithoutMappingOrJobNothingIsSaid) {
  Marked marked;
  marked.machine.ports[0].dscp_priority.clear();
  EXPECT_TRUE(marked.says().not_evaluated());
  EXPECT_TRUE(says("QOS04", Marked().machine).not_evaluated());
  marked.environment.clear();
  EXPECT_TRUE(marked.says().clean()) << "the job marks nothing";
}

std::vector<std::string> losses(const std::string& text, int count, int hours_apart) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i)
    out.push_back(
        fmt::format("Aug {} {:02}:18:01 n {}", 10 + i * hours_apart / 24, i * hours_apart % 24, text));
  return out;
}

TEST(Ctr01, ALogOfAFlappingLinkIsEnough) {
  Machine machine = bare_metal();
  machine.kernel_log = known(losses("systemd-networkd[5398]: ib6: Lost carrier", 5, 1));
  const auto said = says("CTR01", machine);
  ASSERT_TRUE(said.one(Severity::warn));
  EXPECT_EQ(said.subject(), "ib6");
  machine.kernel_log = known(losses("systemd-networkd[5398]: ib6: Lost carrier", 4, 1));
  EXPECT_FALSE(says("CTR01", machine).one(Severity::warn)) << "four are too few";
  machine.kernel_log = known(losses("systemd-networkd[5398]: ib6: Lost carrier", 9, 12));
  EXPECT_FALSE(says("CTR01", machine).one(Severity::warn)) << "never five in one day";
  machine.kernel_log = known(losses("systemd-networkd[5398]: cali00a: Lost carrier", 9, 1));
  EXPECT_FALSE(says("CTR01", machine).one(Severity::warn)) << "no interface of an RDMA NIC";
  machine.kernel_log = known(losses("kernel: mlx5_core 0000:18:00.0 ens1np0: Link down", 5, 1));
  EXPECT_TRUE(says("CTR01", machine).one(Severity::warn));
}

}  // namespace
}  // namespace topotune::checks::test
