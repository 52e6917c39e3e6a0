#include "checks/log_rules.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "checks/language.h"
#include "parse/nccl_log.h"

namespace topotune::checks {
namespace {

using model::Severity;

std::string line(std::string_view host, int dev, std::string_view message) {
  return fmt::format("{}:{}:{} [{}] NCCL INFO {}\n", host, 100 + dev, 200 + dev, dev, message);
}
std::string warning(std::string_view message, std::string_view source = "x.cc:1") {
  return fmt::format("a:1:2 [0] {} NCCL WARN {}\n", source, message);
}

// What a rank says of itself: `device` is its GPU on its host.
std::string init_start(int rank, int ranks, int device) {
  return fmt::format(
      "ncclCommInitRank comm 0x{} rank {} nranks {} cudaDev {} nvmlDev {} busId {}000 commId 0xabc - Init "
      "START",
      rank + 1, rank, ranks, device, device, device + 1);
}
std::string init_complete(int rank, int ranks, int device) {
  return fmt::format("comm 0x{} rank {} nranks {} cudaDev {} busId {}000 - Init COMPLETE", rank + 1, rank,
                     ranks, device, device + 1);
}
std::string nodes_of(int rank, int ranks, std::string_view nodes, int local_ranks, int local_rank) {
  return fmt::format("comm 0x{} rank {} nRanks {} nNodes {} localRanks {} localRank {} MNNVL 0", rank + 1,
                     rank, ranks, nodes, local_ranks, local_rank);
}

model::Diagnosis diagnose(std::string_view text, const model::Machine* machine = nullptr) {
  const auto d = diagnose_log(parse::parse_nccl_log(text), machine, "job.log");
  for (const auto& f : d.findings)
    for (const auto& said : {f.title, f.impact, f.remedy}) {
      const auto translated = is_prose(said) ? translated_message(said) : said;
      EXPECT_TRUE(translated) << f.rule << " has no Chinese text for: " << said;
    }
  return d;
}

const model::Finding* find(const model::Diagnosis& d, std::string_view rule) {
  const auto found = std::ranges::find(d.findings, rule, &model::Finding::rule);
  return found == d.findings.end() ? nullptr : &*found;
}
std::optional<Severity> severity(const model::Diagnosis& d, std::string_view rule) {
  const auto* f = find(d, rule);
  return f == nullptr ? std::nullopt : std::optional(f->severity);
}

const std::string kShm = line("a", 0, "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct") +
                         line("a", 1, "Channel 00 : 1[1] -> 0[0] via SHM/direct/direct");
const std::string kNvlinkGraph =
    line("a", 0, "=== System : maxBw 48.0 totalBw 370.8 ===") + line("a", 0, "CPU/0-0 (1/1/4)") +
    line("a", 0, "+ PCI[48.0] - GPU/0-60 (0)") + line("a", 0, "              + NVL[370.8] - NVS/0-0") +
    line("a", 0, "+ PCI[48.0] - GPU/0-70 (1)") + line("a", 0, "              + NVL[370.8] - NVS/0-0");

TEST(LogRules, ASwitchThatTookNvlinkAwayIsAnError) {
  const auto d = diagnose(line("a", 0, "NCCL_P2P_DISABLE set by environment to 1") + kNvlinkGraph + kShm);
  EXPECT_EQ(severity(d, "LOG06"), Severity::error);
  EXPECT_EQ(find(d, "LOG06")->line, 1);
  EXPECT_EQ(severity(d, "LOG05"), Severity::warn);
}

TEST(LogRules, WithoutKnowledgeOfTheHardwareItIsAWarning) {
  EXPECT_EQ(severity(diagnose(line("a", 0, "NCCL_P2P_DISABLE set by environment to 1") + kShm), "LOG06"),
            Severity::warn);
  EXPECT_EQ(find(diagnose(line("a", 0, "NCCL_P2P_DISABLE set by environment to 0") + kShm), "LOG06"),
            nullptr);
}

TEST(LogRules, SharedMemoryIsJudgedByWhatTheTopologyHas) {
  model::Machine machine;
  for (int i = 0; i < 2; ++i) {
    model::Gpu gpu;
    gpu.id = fmt::format("GPU{}", i);
    gpu.index = i;
    machine.topology.gpus.push_back(gpu);
  }
  machine.topology.stated.push_back({"GPU0", "GPU1", model::PathType::nvl, 18, {}, {}, {}});
  const auto fast = diagnose(kShm, &machine);
  ASSERT_NE(find(fast, "LOG05"), nullptr);
  EXPECT_THAT(find(fast, "LOG05")->observed, testing::HasSubstr("NV18"));
  machine.topology.stated[0].type = model::PathType::sys;
  EXPECT_EQ(severity(diagnose(kShm, &machine), "LOG05"), Severity::info);
  EXPECT_EQ(find(diagnose(kShm), "LOG05"), nullptr);  // not known: not evaluated
}

model::Machine two_gpus(int numa_of_second) {
  model::Machine machine;
  for (int i = 0; i < 2; ++i) {
    model::Gpu gpu;
    gpu.id = fmt::format("GPU{}", i);
    gpu.index = i;
    gpu.numa = i == 0 ? 0 : numa_of_second;
    machine.topology.gpus.push_back(gpu);
  }
  machine.topology.stated.push_back({"GPU0", "GPU1", model::PathType::nvl, 18, {}, {}, {}});
  return machine;
}

TEST(LogRules, ATopologyFileOfAnotherMachine) {
  const std::string file = line("a", 0, "NCCL_TOPO_FILE set by environment to /etc/topo.xml");
  const auto graph = [](std::string_view nvlinks) {
    return line("a", 0, "=== System : maxBw 48.0 totalBw 48.0 ===") + line("a", 0, "CPU/0-0 (1/1/4)") +
           line("a", 0, "+ PCI[48.0] - GPU/0-60 (0)") + std::string(nvlinks) +
           line("a", 0, "+ PCI[48.0] - GPU/0-70 (1)") + std::string(nvlinks);
  };
  const auto linked = graph(line("a", 0, "              + NVL[370.8] - NVS/0-0"));
  const auto paths = line("a", 0, "GPU/0-60 :GPU/0-60 (0/5000.0/LOC) GPU/0-70 (2/48.0/PHB)");
  const auto machine = two_gpus(0);
  const auto without = diagnose(file + graph("") + paths + kShm, &machine);
  ASSERT_NE(find(without, "TOPO03"), nullptr);
  EXPECT_EQ(find(without, "TOPO03")->observed,
            "ranks 0 and 1: no NVLink in NCCL's graph, NV18 on the machine");
  EXPECT_EQ(find(diagnose(file + linked + kShm, &machine), "TOPO03"), nullptr);
  const auto elsewhere = two_gpus(1);
  const auto moved = diagnose(file + linked + kShm, &elsewhere);
  ASSERT_NE(find(moved, "TOPO03"), nullptr);
  EXPECT_EQ(find(moved, "TOPO03")->observed,
            "GPU1 hangs on CPU 0 in NCCL's graph, on NUMA node 1 of the machine");
  // No file, a file that was not there, or nothing to compare with: no finding.
  EXPECT_EQ(find(diagnose(linked + kShm, &elsewhere), "TOPO03"), nullptr);
  EXPECT_EQ(
      find(diagnose(file + line("a", 0, "Could not open XML topology file /etc/topo.xml : No such file") +
                        linked + kShm,
                    &elsewhere),
           "TOPO03"),
      nullptr);
  EXPECT_EQ(find(diagnose(file + linked + kShm), "TOPO03"), nullptr);
  // A virtual machine's file that NCCL finds by itself counts too.
  const auto found = line("a", 0, "Loading topology file /var/run/nvidia-topologyd/virtualTopology.xml");
  EXPECT_NE(find(diagnose(found + linked + kShm, &elsewhere), "TOPO03"), nullptr);
}

TEST(LogRules, ATopologyFileThatNcclRefuses) {
  for (const auto* text : {"XML Parse : Unexpected EOF", "XML Topology has wrong version 2, 1 needed",
                           "XML Mismatch : cpu / pci", "Error : too many XML nodes (max 256)"}) {
    const auto d = diagnose(warning(text, "graph/xml.cc:40"));
    EXPECT_EQ(severity(d, "TOPO01"), Severity::error) << text;
  }
  EXPECT_EQ(find(diagnose(warning("Could not open XML graph file /x : No such file")), "TOPO01"), nullptr);
}

TEST(LogRules, ABenchmarkOfOneRank) {
  const auto head = [](int ranks) {
    std::string text =
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 1048576(bytes) warmup iters: 5 iters: 20 "
        "agg iters: 1 validation: 1 graph: 0\n";
    for (int r = 0; r < ranks; ++r) text += line("a", r, init_start(r, ranks, r));
    return text + "# Avg bus bandwidth    : 0\n";
  };
  EXPECT_EQ(severity(diagnose(head(1)), "BENCH01"), Severity::warn);
  EXPECT_EQ(find(diagnose(head(2)), "BENCH01"), nullptr);
}

TEST(LogRules, NetworkWithoutGpuDirect) {
  const auto both = [](std::string_view tail_a, std::string_view tail_b) {
    return line("a", 0, fmt::format("Channel 00 : 0[1000] -> 1[1000] [send] via NET/IB/0{}", tail_a)) +
           line("b", 0, fmt::format("Channel 00 : 0[1000] -> 1[1000] [receive] via NET/IB/0{}", tail_b));
  };
  EXPECT_EQ(severity(diagnose(both("", "")), "LOG01"), Severity::warn);
  EXPECT_EQ(find(diagnose(both("/GDRDMA", "/GDRDMA")), "LOG01"), nullptr);
  EXPECT_EQ(severity(diagnose(both("/GDRDMA", "")), "LOG02"), Severity::warn);
  EXPECT_EQ(find(diagnose(both("/GDRDMA", "")), "LOG01"), nullptr);
  EXPECT_EQ(
      severity(diagnose(line("a", 0, "NET/IB : Using [0]hfi1_0:1/IB ; OOB ib0:10.0.0.1<0>") + both("", "")),
               "LOG01"),
      Severity::info);
  EXPECT_EQ(find(diagnose(line("a", 0, "Channel 00 : 0[1] -> 1[1] [send] via NET/Socket/0")), "LOG01"),
            nullptr);
}

TEST(LogRules, SocketsBecauseNoDeviceWasFound) {
  const std::string none = line("a", 0, "NET/IB : No device found.") + line("a", 0, "Using network Socket");
  EXPECT_EQ(severity(diagnose(none), "LOG03"), Severity::info);
  const std::string hosts = line("a", 0, nodes_of(0, 2, "2", 1, 0));
  EXPECT_EQ(severity(diagnose(none + hosts), "LOG03"), Severity::warn);
  EXPECT_EQ(severity(diagnose(none + hosts + line("a", 0, "NET/Socket : Using [0]ib0:10.0.0.1<0>")), "LOG03"),
            Severity::error);
  EXPECT_EQ(find(diagnose(none + line("a", 0, "NCCL_IB_DISABLE set by environment to 1.")), "LOG03"),
            nullptr);
}

TEST(LogRules, Faults) {
  const struct {
    const char* text;
    const char* rule;
    Severity severity;
  } cases[] = {
      {"NET/IB : Got completion from peer 10.0.0.2<5> with error 12, opcode 0, len 0, vendor err 129",
       "LOG07", Severity::error},
      {"NET/IB: Got completion from peer 10.0.0.2<5> with status=IBV_WC_RETRY_EXC_ERR(12) "
       "opcode=IBV_WC_SEND(0)",
       "LOG07", Severity::error},
      {"Call to posix_fallocate failed : No space left on device", "LOG08", Severity::error},
      {"Error: failed to extend /dev/shm/nccl-aB3dE6 to 4194660 bytes", "LOG08", Severity::error},
      {"Error: failed to extend /dev/shm/nccl-aB3dE6 to 4194660 bytes, error: No space left on device (28)",
       "LOG08", Severity::error},
      {"Call to ibv_reg_mr failed with error Cannot allocate memory", "LOG09", Severity::error},
      {"Call to ibv_create_qp failed", "LOG09", Severity::warn},
      {"Call to ibv_modify_qp failed with error Connection timed out", "LOG10", Severity::error},
      {"Call to ibv_modify_qp failed with 22 Invalid argument", "LOG10", Severity::error},
      {"Call to ibv_modify_qp failed with 61 No data available, on dev m:1, local GID ::", "LOG10",
       Severity::error},
      {"Mismatched NCCL version detected : rank 0 version 21803 rank 1 version 21903", "LOG11",
       Severity::error},
      {"Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000", "LOG12", Severity::error},
      {"NET/Socket : peer 10.0.0.2 message truncated : receiving 8 bytes instead of 4", "LOG13",
       Severity::error},
      {"Error : no algorithm/protocol available", "LOG14", Severity::error},
      {"Could not find a path for pattern 4, falling back to simple order", "LOG15", Severity::warn},
      {"Call to connect failed : Connection refused", "LOG17", Severity::error},
      {"NET/OFI Could not find any optimal provider", "LOG18", Severity::warn},
      {"NET/OFI aws-ofi-nccl initialization failed", "LOG18", Severity::warn},
      {"NET/OFI Request 0x1 completed with error. RC: 103. Error: 4126 (Unresponsive receiver)", "LOG07",
       Severity::error},
      {"socketStartConnect: Connect to 10.1.0.3<379> failed : Cannot assign requested address", "LOG17",
       Severity::error},
      {"NET/IB : Unable to open device mlx5_3", "CONT05", Severity::warn},
      {"MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX channel "
       "configuration",
       "NVL10", Severity::warn},
      {"HSA_FORCE_FINE_GRAIN_PCIE=1 is missing", "LOG20", Severity::warn},
      {"NET/IB : mlx5_0:1 Got async event : port error", "LOG22", Severity::error},
      {"NET/IB : mlx5_0:1 Got async event : port active", "LOG22", Severity::info},
      {"Missing \"iommu=pt\" from kernel command line", "ACS04", Severity::warn},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(severity(diagnose(warning(c.text)), c.rule), c.severity) << c.text;
    EXPECT_EQ(find(diagnose(line("a", 0, "Connected all rings")), c.rule), nullptr) << c.rule;
  }
  EXPECT_EQ(
      severity(diagnose(warning("Cuda failure 1 'invalid argument'", "transport/nvls.cc:254")), "NVL12"),
      Severity::warn);
  EXPECT_EQ(find(diagnose(warning("Cuda failure 1 'invalid argument'", "init.cc:254")), "NVL12"), nullptr);
}

// Two hosts with two ranks and two rails each.
std::string two_hosts(int second_device) {
  std::string text = line("a", 0, "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB e0:1.1.1.1<0>");
  for (int r = 0; r < 4; ++r) {
    const auto* host = r < 2 ? "a" : "b";
    text += line(host, r % 2, init_start(r, 4, r % 2)) + line(host, r % 2, nodes_of(r, 4, "2", 2, r % 2));
    text +=
        line(host, r % 2,
             "4 coll channels, 4 collnet channels, 0 nvls channels, 4 p2p channels, 2 p2p channels per peer");
  }
  text += line("a", 0, "Channel 00/0 : 0[0] -> 2[0] [send] via NET/IB/0");
  text += line("b", 0, "Channel 00/0 : 0[0] -> 2[0] [receive] via NET/IB/0");
  text += line("a", 1, fmt::format("Channel 01/0 : 1[1] -> 3[1] [send] via NET/IB/{}", second_device));
  text += line("b", 1, fmt::format("Channel 01/0 : 1[1] -> 3[1] [receive] via NET/IB/{}", second_device));
  return text;
}

TEST(LogRules, ASegmentRefusedForAnotherReasonIsNotFull) {
  EXPECT_EQ(find(diagnose(warning("Error: failed to extend /dev/shm/nccl-aB3dE6 to 9 bytes, error: Bad file "
                                  "descriptor (9)")),
                 "LOG08"),
            nullptr);
}

TEST(LogRules, AnInterfaceNameThatMatchesNothingIsNamed) {
  const auto d = diagnose(line("a", 0, "NCCL_SOCKET_IFNAME set by environment to enp") +
                          warning("Bootstrap : no socket interface found"));
  ASSERT_NE(find(d, "LOG17"), nullptr);
  EXPECT_THAT(find(d, "LOG17")->observed, testing::HasSubstr("NCCL_SOCKET_IFNAME=enp matches none"));
  EXPECT_THAT(
      find(diagnose(warning("socketStartConnect: Connect to 172.17.0.1<3> failed : Connection refused")),
           "LOG17")
          ->observed,
      testing::HasSubstr("Docker"));
}

// Over lo two "hosts" can only be one machine, and then it is no fault; where they do not meet it is.
TEST(LogRules, LoReachesNoOtherHostUnlessTheyMet) {
  std::string text = line("a", 0, "Bootstrap: Using lo:127.0.0.1<0>");
  for (int r = 0; r < 2; ++r)
    text += line("a", 0, init_start(r, 2, 0)) + line("a", 0, nodes_of(r, 2, "2", 1, 0));
  EXPECT_EQ(severity(diagnose(text), "LOG17"), Severity::error);
  EXPECT_EQ(
      find(diagnose(text + line("a", 0, "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0")), "LOG17"),
      nullptr);
}

// What sets the ranks of one host apart is named, where the log tells it.
TEST(LogRules, RanksOfOneHostThatCallThemselvesTwo) {
  std::string text;
  for (int r = 0; r < 2; ++r)
    text += line("a", 0, init_start(r, 2, 0)) + line("a", 0, nodes_of(r, 2, "2", 1, 0)) +
            line("a", 0, fmt::format("NCCL_HOSTID set by environment to own{}", r));
  const auto diagnosis = diagnose(text);
  const auto* found = find(diagnosis, "CONT07");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->observed, testing::HasSubstr("NCCL_HOSTID is own0, own1"));
}

// NVIDIA's RDMA plugin writes "enabled" in small letters; nothing says that GPUDirect is off.
TEST(LogRules, GpuDirectThatIsEnabledIsNotDisabled) {
  const std::string enabled =
      line("a", 0, "NET/IB : GPU Direct RDMA (nvidia-peermem) enabled for HCA 0 'mlx5_0");
  EXPECT_EQ(find(diagnose(enabled + line("a", 0, "Using network IBext_v9")), "LOG01"), nullptr);
  const std::string off = line("a", 0, "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'");
  const std::string used = line("a", 0, "Using network IB");
  EXPECT_EQ(severity(diagnose(off + used), "LOG01"), Severity::warn);
  EXPECT_EQ(find(diagnose(line("a", 0, "NET/IB : GPU Direct RDMA (nvidia-p") + used), "LOG01"), nullptr);
  const std::string one_host = line("a", 0, nodes_of(0, 2, "1", 2, 0));
  EXPECT_EQ(find(diagnose(off + used + one_host), "LOG01"), nullptr);
}

TEST(LogRules, PortsOfTwoKindsOfWhichOneIsUsed) {
  auto text = two_hosts(0);
  text.replace(text.find("mlx5_1:1/IB"), 11, "mlx5_1:1/RoCE");
  EXPECT_EQ(severity(diagnose(text), "RDMA08"), Severity::info);
  text = two_hosts(1);
  text.replace(text.find("mlx5_1:1/IB"), 11, "mlx5_1:1/RoCE");
  EXPECT_EQ(severity(diagnose(text), "RDMA08"), Severity::warn);
}

TEST(LogRules, ACollectionOfDevicesOfTwoLinkLayers) {
  EXPECT_EQ(
      severity(
          diagnose(line("a", 0, "NET/IB : Using [0]m0:1/IB [1]m1:1/IB [2]m2:1/RoCE [RO]; OOB e0:1.1.1.1<0>")),
          "RDMA08"),
      Severity::warn);
  EXPECT_EQ(
      find(diagnose(line("a", 0, "NET/IB : Using [0]m0:1/IB [1]m1:1/IB [RO]; OOB e0:1.1.1.1<0>")), "RDMA08"),
      nullptr);
}

TEST(LogRules, NvlsIsMissedOnHopperOnly) {
  const std::string none = line("a", 0, "NVLS multicast support is not available on dev 0");
  EXPECT_EQ(severity(diagnose(none), "LOG23"), Severity::info);
  const std::string hopper =
      "#  Rank  0 Group  0 Pid  100 on a device  0 [0000:01:00] NVIDIA H100 80GB HBM3\n";
  EXPECT_EQ(severity(diagnose(hopper + none + kNvlinkGraph), "NVL14"), Severity::warn);
}

TEST(LogRules, CudaOfTheBuildAndOfTheDriver) {
  EXPECT_EQ(
      severity(diagnose("NCCL version 2.26.5+cuda12.9\n" + line("a", 0, "cudaDriverVersion 12080")), "VER04"),
      Severity::info);
  EXPECT_EQ(
      severity(diagnose("NCCL version 2.28.9+cuda13.0\n" + line("a", 0, "cudaDriverVersion 12080")), "VER04"),
      Severity::error);
  EXPECT_EQ(
      find(diagnose("NCCL version 2.28.9+cuda12.8\n" + line("a", 0, "cudaDriverVersion 13000")), "VER04"),
      nullptr);
}

TEST(LogRules, ASlowPciLinkInNcclsGraph) {
  const std::string graph =
      line("a", 0, "=== System : maxBw 24.0 totalBw 24.0 ===") + line("a", 0, "CPU/0 (1/1/2)");
  EXPECT_EQ(severity(diagnose(graph + line("a", 0, "+ PCI[0.2] - PCI/1000") +
                              line("a", 0, "             + PCI[24.0] - GPU/2000 (0)")),
                     "LOG16"),
            Severity::warn);
  EXPECT_EQ(find(diagnose(graph + line("a", 0, "+ PCI[24.0] - PCI/1000") +
                          line("a", 0, "              + PCI[24.0] - GPU/2000 (0)")),
                 "LOG16"),
            nullptr);
}

TEST(LogRules, AnIdleLinkIsNoFaultWhereTheCurrentSpeedIsRead) {
  const auto text = [](std::string_view version) {
    return line("a", 0, fmt::format("NCCL version {}+cuda13.0", version)) +
           line("a", 0, "=== System : maxBw 2.0 totalBw 24.0 ===") + line("a", 0, "CPU/0 (1/1/2)") +
           line("a", 0, "+ PCI[2.0] - GPU/1000 (0)");
  };
  EXPECT_EQ(severity(diagnose(text("2.28.9")), "LOG16"), Severity::warn);
  EXPECT_EQ(severity(diagnose(text("2.30.7")), "LOG16"), Severity::info);
}

TEST(LogRules, TheWatchdogsRanksWaitedTheOthersAreLookedAt) {
  std::string text;
  for (int r = 0; r < 3; ++r) text += line("a", r, init_complete(r, 3, r));
  EXPECT_EQ(find(diagnose(text), "LOG21"), nullptr);
  text += "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)\n";
  text += "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)\n";
  const auto d = diagnose(text);
  ASSERT_NE(find(d, "LOG21"), nullptr);
  EXPECT_EQ(find(d, "LOG21")->subject, "ranks 1");
  EXPECT_EQ(find(d, "LOG21")->title, "A collective timed out");
  // A far end of a connection has no lines of its own: nothing is known of it.
  std::string part = line("a", 0, init_complete(0, 2, 0)) +
                     line("a", 0, "Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA");
  const auto one =
      diagnose(part + "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)\n");
  EXPECT_THAT(find(one, "LOG21")->observed, testing::HasSubstr("ranks 1: their log is not here"));
}

std::string timed_out(int rank, int number, std::string_view call) {
  return fmt::format(
      "[rank{0}]:[E626 06:24:44.9 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective "
      "operation timeout: WorkNCCL(SeqNum={1}, OpType={2}, Timeout(ms)=600000) ran for 600020\n"
      "[rank{0}]:[E626 06:24:44.9 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {0}] "
      "Exception (either an error or timeout) detected by watchdog at work: {1}, last enqueued NCCL "
      "work: 811\n",
      rank, number, call);
}

TEST(LogRules, TimeoutsTellNumbersAndCalls) {
  const std::string job = line("a", 0, init_complete(0, 2, 0)) + line("a", 1, init_complete(1, 2, 1));
  constexpr auto kSum = "ALLREDUCE, NumelIn=98, NumelOut=98";
  const auto all = diagnose(job + timed_out(0, 808, kSum) + timed_out(1, 808, kSum));
  EXPECT_EQ(find(all, "LOG21")->title, "A collective timed out although every rank reached it");
  EXPECT_EQ(find(all, "LOG13"), nullptr);
  const auto apart = diagnose(job + timed_out(0, 805, kSum) + timed_out(1, 808, kSum));
  EXPECT_EQ(find(apart, "LOG21")->subject, "ranks 0");
  EXPECT_EQ(find(apart, "LOG21")->title, "Some ranks are behind in the collective order");
  const auto calls =
      diagnose(job + timed_out(0, 808, kSum) + timed_out(1, 808, "_ALLGATHER_BASE, NumelIn=64"));
  ASSERT_EQ(severity(calls, "LOG13"), Severity::error);
  EXPECT_THAT(find(calls, "LOG13")->observed, testing::HasSubstr("rank 1 calls _ALLGATHER_BASE"));
  EXPECT_EQ(find(calls, "LOG21")->title, "A collective timed out");
  // Without the group's line the numbers may be those of two groups.
  const auto first = [](const std::string& text) { return text.substr(0, text.find('\n') + 1); };
  EXPECT_EQ(severity(diagnose(first(timed_out(0, 808, kSum)) + first(timed_out(1, 808, "_ALLGATHER_BASE"))),
                     "LOG13"),
            Severity::warn);
}

TEST(LogRules, AHostNameIsNoMachine) {
  const auto rank = [](int r, std::string_view address) {
    const auto say = [&](const std::string& text) {
      return fmt::format("ubuntu:{0}:{0} [0] NCCL INFO {1}\n", 1000 + r, text);
    };
    return say(fmt::format("Bootstrap : Using eth0:{}<0>", address)) +
           say(fmt::format("Channel 00/0 : {}[0] -> {}[0] [send] via NET/IB/0", r, 1 - r)) +
           say(fmt::format("comm 0x5{0} rank {0} nranks 2 cudaDev 0 busId {1}000 commId 0xb1 - Init COMPLETE",
                           r, r + 1));
  };
  const auto nodes = [](const std::string& text) {
    return parse::parse_nccl_log(text).communicators[0].nnodes;
  };
  const auto two = rank(0, "10.0.0.1") + rank(1, "10.0.0.2");
  EXPECT_EQ(nodes(two), std::nullopt);
  EXPECT_EQ(severity(diagnose(two), "LOG01"), Severity::warn);
  // The network alone makes it doubtful, unless the ranks were kept from anything else.
  const auto doubt = rank(0, "10.0.0.1") + rank(1, "10.0.0.1");
  EXPECT_EQ(nodes(doubt), std::nullopt);
  EXPECT_EQ(nodes(doubt + "ubuntu:1000:1000 [0] NCCL INFO NCCL_SHM_DISABLE set by environment to 1.\n"), 1);
  // NCCL's own number goes first.
  EXPECT_EQ(
      nodes(two +
            "ubuntu:1000:1000 [0] NCCL INFO comm 0x50 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 "
            "MNNVL 0\n"),
      1);
  // One PCI address with two ranks is two machines', or one GPU that both use.
  auto same = line("a", 0, init_complete(0, 2, 0)) + "a:9:9 [0] NCCL INFO " + init_complete(1, 2, 0) + "\n";
  EXPECT_EQ(nodes(same), std::nullopt);
  EXPECT_EQ(nodes(same + warning("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000")), 1);
}

TEST(LogRules, ANetworkToRanksOutsideTheLogLeadsToOtherHosts) {
  const auto job = line("a", 0, "NET/IB : No device found.") + line("a", 0, "Using network Socket") +
                   line("a", 0, "Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0");
  EXPECT_EQ(severity(diagnose(job), "LOG03"), Severity::warn);
  EXPECT_EQ(severity(diagnose(job + line("a", 0, "NCCL_SHM_DISABLE set by environment to 1.")), "LOG03"),
            Severity::info);
}

TEST(LogRules, TheHeaderOfNcclTestsNamesAllHosts) {
  const auto rank = [](int r, const char* host) {
    return fmt::format("#  Rank  {} Group  0 Pid {} on {} device  0 [0x00] NVIDIA H100\n", r, 9 + r, host);
  };
  const auto failed = line("a", 1, "Failed to open libibverbs.so[.1]") + line("a", 1, "Using network Socket");
  EXPECT_EQ(severity(diagnose(rank(0, "a") + rank(1, "a") + failed), "LOG04"), Severity::info);
  EXPECT_EQ(severity(diagnose(rank(0, "a") + rank(1, "b") + failed), "LOG04"), Severity::warn);
}

TEST(LogRules, AFailedCompletionIsToldByItsStatus) {
  const auto title = [](int status) {
    const auto d = diagnose(warning(fmt::format(
        "NET/IB : Got completion from peer 192.168.0.12<6> with error {}, opcode 0, len 0", status)));
    return find(d, "LOG07") == nullptr ? std::string() : find(d, "LOG07")->title;
  };
  EXPECT_EQ(title(4), "An RDMA operation failed on its own host (IB error 4)");
  EXPECT_EQ(title(12), "A peer did not answer (IB error 12)");
  EXPECT_EQ(title(13), "A peer did not answer (IB error 13)");
  EXPECT_EQ(title(11), "A peer rejected an operation (IB error 11)");
  EXPECT_EQ(title(5), "");  // flushed: follows another error
}

TEST(LogRules, AQueuePairThatDoesNotConnect) {
  const auto title = [](const std::string& text) { return find(diagnose(text), "LOG10")->title; };
  const auto late = warning("Call to ibv_modify_qp failed with error Connection timed out");
  EXPECT_EQ(title(line("a", 0, "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>") + late),
            "The queue pair could not connect over InfiniBand");
  EXPECT_EQ(title(line("a", 0, "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>") + late),
            "The queue pair could not connect: wrong GID, or an address that is not reached");
  EXPECT_EQ(title(warning("Call to ibv_modify_qp failed with 110 Connection timed out, on dev m:1, local GID "
                          "::ffff:192.168.13.1, remote GID ::ffff:192.168.27.2")),
            "The queue pair could not connect: the peer's address was not reached");
  EXPECT_EQ(title(warning("Call to ibv_modify_qp failed with 22 Invalid argument")),
            "The queue pair could not connect: wrong GID");
}

TEST(LogRules, WhyASegmentOfSharedMemoryCouldNotBeMade) {
  const auto made = warning("Error while creating shared memory segment nccl-shm (size 4460544)");
  const auto d = diagnose(warning("Call to shm_open failed : Permission denied") + made);
  EXPECT_EQ(find(d, "LOG08"), nullptr);  // the size has no part in it
  EXPECT_EQ(severity(diagnose(made), "LOG08"), Severity::warn);
  EXPECT_EQ(find(diagnose(made), "LOG08")->title, "A shared memory segment could not be made");
  const auto full = diagnose(warning("Call to posix_fallocate failed : No space left on device") + made);
  EXPECT_EQ(find(full, "LOG08")->title, "Shared memory is full");
}

TEST(LogRules, AModuleThatIsLoadedIsNotTheReason) {
  const auto edge = line("a", 0, "Channel 09/0 : 1[0] -> 0[0] [send] via NET/IBext_v10/1");
  EXPECT_THAT(find(diagnose(edge), "LOG01")->remedy, testing::HasSubstr("peermem"));
  const auto d =
      diagnose(line("a", 0, "NET/IB : GPU Direct RDMA (DMABUF) enabled for HCA 1 'roceP2p1s0f1'") + edge);
  EXPECT_THAT(find(d, "LOG01")->remedy, testing::Not(testing::HasSubstr("peermem")));
  EXPECT_THAT(
      find(diagnose(line("a", 0, "Channel 00 : 1[0] -> 0[0] [send] via NET/AWS Libfabric/1")), "LOG01")
          ->remedy,
      testing::HasSubstr("EFA"));
}

TEST(LogRules, FatalLinesHaveTheirFinding) {
  const auto of = [](std::string_view text, std::string_view rule) {
    return severity(diagnose(warning(text)), rule);
  };
  EXPECT_EQ(of("P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be", "GPU02"),
            Severity::error);
  EXPECT_EQ(of("failed to open CUDA IPC handle : 217 peer access is not supported between these two devices",
               "GPU02"),
            Severity::error);
  EXPECT_EQ(of("Error: network AWS Libfabric not found.", "NCCL28"), Severity::error);
  EXPECT_EQ(of("NET/OFI Request 0x7 completed with error. RC: 20. Error: unknown error.", "LOG07"),
            Severity::error);
  EXPECT_EQ(of("NET/IB : Remote IB device is incompatible with the local [0]mlx5_0:1/RoCE.", "RDMA08"),
            Severity::error);
  EXPECT_EQ(of("Cuda failure 'API call is not supported in the installed CUDA driver'", "VER04"),
            Severity::error);
  EXPECT_EQ(of("Cuda failure 802 'system not yet initialized'", "NVL12"), Severity::error);
  EXPECT_EQ(
      severity(diagnose(warning("Cuda failure 401 'the operation cannot be performed in the present state'",
                                "transport/nvls.cc:254")),
               "NVL12"),
      Severity::warn);
  EXPECT_EQ(of("Cuda failure 'out of memory'", "NVL12"), std::nullopt);
}

TEST(LogRules, AnEventOfAPortByItsWholeWords) {
  const auto event = [](std::string_view what) {
    return warning(fmt::format("NET/IB : mlx5_3:1 Got async event : {}", what));
  };
  EXPECT_EQ(severity(diagnose(event("invalid request local work queue error")), "LOG22"), Severity::warn);
  EXPECT_EQ(severity(diagnose(event("LID change")), "LOG22"), Severity::info);
  EXPECT_EQ(severity(diagnose(event("port error")), "LOG22"), Severity::error);
  EXPECT_EQ(severity(diagnose(event("port error") + event("port active")), "LOG22"), Severity::warn);
  EXPECT_EQ(severity(diagnose(event("port active") + event("port error")), "LOG22"), Severity::error);
}

TEST(LogRules, VerbsThatCannotBeLoaded) {
  const std::string failed = line("a", 0, "Failed to open libibverbs.so[.1]");
  const std::string hosts = line("a", 0, nodes_of(0, 2, "2", 1, 0));
  EXPECT_EQ(severity(diagnose(failed + hosts), "LOG04"), Severity::warn);
  EXPECT_EQ(severity(diagnose(failed + hosts + line("a", 0, "Using network AWS Libfabric")), "LOG04"),
            Severity::info);
  EXPECT_EQ(find(diagnose(hosts + line("a", 0, "Failed to open mlx5dv symbols")), "LOG04"), nullptr);
}

TEST(LogRules, OnlySomeRailsCarryTraffic) {
  EXPECT_EQ(severity(diagnose(two_hosts(0)), "LOG19"), Severity::warn);
  EXPECT_EQ(find(diagnose(two_hosts(1)), "LOG19"), nullptr);
}

TEST(LogRules, MoreNodesThanHosts) {
  const auto with = [](std::string_view nodes) {
    std::string text;
    for (int r = 0; r < 2; ++r)
      text += line("a", r, init_start(r, 2, r)) + line("a", r, nodes_of(r, 2, nodes, 1, 0));
    return diagnose(text);
  };
  EXPECT_EQ(severity(with("2"), "CONT07"), Severity::warn);
  EXPECT_EQ(find(with("1"), "CONT07"), nullptr);
  EXPECT_THAT(with("1").checked, testing::Contains("CONT07"));
}

// The log of one node of two: the other node's ranks are known from connections only.
TEST(LogRules, OneNodesLogDoesNotTellHowManyHostsThereAre) {
  std::string text;
  for (int r = 0; r < 2; ++r) {
    text += line("a", r, init_start(r, 4, r)) + line("a", r, nodes_of(r, 4, "2", 2, r));
    text +=
        line("a", r, fmt::format("Channel 0{}/0 : {}[{}] -> {}[{}] [send] via NET/IB/0", r, r, r, r + 2, r));
  }
  EXPECT_EQ(find(diagnose(text), "CONT07"), nullptr);
}

TEST(LogRules, ANicThatIsTooFarIsToldFromAHostWithoutTheModule) {
  std::string text = two_hosts(1);
  text += line("a", 0, "Channel 02/0 : 0[0] -> 2[0] [send] via NET/IB/1/GDRDMA");
  text += line("b", 0, "Channel 02/0 : 0[0] -> 2[0] [receive] via NET/IB/1/GDRDMA");
  const auto d = diagnose(text);
  ASSERT_NE(find(d, "LOG02"), nullptr);
  EXPECT_THAT(find(d, "LOG02")->observed, testing::HasSubstr("rank 0: GPUDirect over device 1, none over 0"));
}

TEST(LogRules, SilentOnAGoodLog) {
  const std::string good = line("a", 0, "Channel 00 : 0[0] -> 1[1] via P2P/CUMEM") +
                           line("a", 1, "Channel 00 : 1[1] -> 0[0] via P2P/CUMEM") +
                           line("a", 0, "Connected all rings");
  const auto d = diagnose(kNvlinkGraph + good);
  for (const char* rule : {"LOG05", "LOG06", "LOG15", "LOG16", "LOG21", "LOG23"})
    EXPECT_EQ(find(d, rule), nullptr) << rule;
}

TEST(LogRules, GpuDirectOnBothSidesOneSideOrNone) {
  const auto sides = [](std::string_view send, std::string_view receive) {
    return diagnose(
        line("a", 0, fmt::format("Channel 00 : 0[1000] -> 1[1000] [send] via NET/IB/0{}", send)) +
        line("b", 0, fmt::format("Channel 00 : 0[1000] -> 1[1000] [receive] via NET/IB/0{}", receive)));
  };
  EXPECT_NE(find(sides("", ""), "LOG01"), nullptr);
  EXPECT_EQ(find(sides("/GDRDMA", "/GDRDMA"), "LOG01"), nullptr);
  EXPECT_NE(find(sides("/GDRDMA", ""), "LOG02"), nullptr);
  EXPECT_EQ(find(sides("/GDRDMA", "/GDRDMA"), "LOG02"), nullptr);
}

TEST(LogRules, TheCostOfASwitchIsMeasuredWhereItWas) {
  auto log =
      parse::parse_nccl_log(kNvlinkGraph + line("a", 0, "NCCL_P2P_DISABLE set by environment to 1") + kShm);
  EXPECT_THAT(find(diagnose_log(log, nullptr, "x"), "LOG06")->impact, testing::HasSubstr("host memory"));
  log.costs.push_back({{"NCCL_P2P_DISABLE=1"}, 1U << 30U, 26.9, 329.5, 30.0, 20.0});
  const auto d = diagnose_log(log, nullptr, "x");
  EXPECT_EQ(
      find(d, "LOG06")->impact,
      "measured: 26.9 GB/s with NCCL_P2P_DISABLE=1, 329.5 without it (bus bandwidth at 1073741824 bytes)");
  EXPECT_EQ(find(d, "LOG05")->remedy, "remove NCCL_P2P_DISABLE");
}

TEST(LogRules, RemediesAreWords) {
  for (const std::string_view text : {"Call to posix_fallocate failed : No space left on device",
                                      "Call to ibv_create_cq failed with error Cannot allocate memory"}) {
    const auto d = diagnose(warning(text));
    ASSERT_FALSE(d.findings.empty());

    EXPECT_NE(d.findings[0].remedy.find("shm") == std::string::npos,
              d.findings[0].remedy.find("ulimit") == std::string::npos);
  }
}

TEST(LogRules, ARetryThatFailedLastIsAnErrorAndAnEarlierOneAWarning) {
  const auto tried = [](int n) {
    return line("a", 0,
                fmt::format("socketPollConnect: connect returned No route to host, retrying ({}/34) after "
                            "sleep for {}00 msec",
                            n, n));
  };
  EXPECT_EQ(severity(diagnose(tried(33)), "LOG17"), Severity::warn);
  EXPECT_EQ(severity(diagnose(tried(33) + tried(34)), "LOG17"), Severity::error);
  EXPECT_EQ(
      severity(diagnose(line("a", 0, "Call to connect returned Connection timed out, retrying")), "LOG17"),
      Severity::warn);
  EXPECT_EQ(find(diagnose(tried(33) + kShm), "LOG17"), nullptr);  // the ranks met
}

TEST(LogRules, WhyAHostWasNotReachedIsSaidAsFarAsItIsKnown) {
  const auto observed = [](const std::string& text) {
    const auto d = diagnose(text);
    return find(d, "LOG17") == nullptr ? std::string() : find(d, "LOG17")->observed;
  };
  const auto use = line("a", 0, "Bootstrap : Using [0]ens5:172.31.0.137<0> [1]veth75:fe80::14ad%veth75<0>");
  const auto to_veth = warning("Connect to fe80::8c2%veth75<41303> failed : Network is unreachable");
  EXPECT_THAT(observed(use + to_veth), testing::HasSubstr("fe80::8c2%veth75"));
  EXPECT_THAT(observed(warning("Connect to fe80::8c2%ib1<41303> failed : Network is unreachable")),
              testing::HasSubstr("link-local"));
  EXPECT_THAT(observed(warning("socketPollConnect: Connect to 10.0.0.4<5> returned 113(No route to host)")),
              testing::HasSubstr("is not in the log"));
  EXPECT_THAT(observed(line("a", 0, "Bootstrap : Using eth0:10.0.0.2<0>") +
                       warning("socketPollConnect: Connect to 10.0.0.4<5> returned 113(No route to host)")),
              testing::HasSubstr("on a usable interface"));
  EXPECT_THAT(
      observed(line("a", 0, "NCCL_SOCKET_IFNAME set by environment to eth2") +
               warning("ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) "
                       "nor AF_INET6(10)")),
      testing::HasSubstr("NCCL_SOCKET_IFNAME=eth2 matches none"));
  const auto d =
      diagnose(use + line("a", 0, "Channel 00 : 1[1e0] -> 0[1e0] [receive] via NET/Socket/0") + to_veth);
  EXPECT_EQ(find(d, "LOG17")->title, "Hosts cannot reach each other after the bootstrap");
}

const std::string kRasMissing =
    "NCCL version 2.27.3 compiled with CUDA 12.9\n\nJob summary\n===========\n\nCommunicators... (0.00s)\n\n"
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n"
    "    0         1         2         8        16        16   RUNNING  INCOMPLETE\n\nErrors\n======\n\n"
    "INCOMPLETE\n  Missing communicator data from 1 job process\n"
    "  Process 60004 on node 10.4.109.13 managing GPU 0\n";

TEST(LogRules, ProcessesThatRasMisses) {
  const auto d = diagnose(kRasMissing);
  ASSERT_EQ(severity(d, "LOG21"), Severity::error);
  EXPECT_THAT(find(d, "LOG21")->observed, testing::HasSubstr("Process 60004 on node 10.4.109.13"));
  // Beside a job's own lines too.
  EXPECT_EQ(severity(diagnose(kShm + kRasMissing), "LOG21"), Severity::error);
  auto whole = kRasMissing.substr(0, kRasMissing.find("\n\nErrors"));
  whole.replace(whole.find("INCOMPLETE"), 10, "OK");
  EXPECT_EQ(find(diagnose(whole + "\n"), "LOG21"), nullptr);
}

TEST(LogRules, AWarningOfAJobThatGoesOnIsHarmless) {
  const auto bind = warning("Call to bind failed: Address already in use", "ras/client_support.cc:159");
  const auto d = diagnose(line("a", 0, init_complete(0, 2, 0)) + bind);
  EXPECT_EQ(severity(d, "LOG23"), Severity::info);
  EXPECT_THAT(find(d, "LOG23")->observed, testing::HasSubstr("RAS"));
  EXPECT_EQ(find(diagnose(bind), "LOG23"), nullptr);  // nothing tells that the job went on
  EXPECT_EQ(find(diagnose(line("a", 0, init_complete(0, 2, 0)) +
                          warning("Call to bind failed: Address already in use", "misc/socket.cc:1")),
                 "LOG23"),
            nullptr);
}

TEST(LogRules, NoFindingIsNoProofWhereSomethingFailedOrNothingIsDescribed) {
  const auto verdict = [](const std::string& text) { return model::verdict_of(diagnose(text)); };
  const auto job = line("a", 0, init_complete(0, 2, 0)) + line("a", 1, init_complete(1, 2, 1));
  EXPECT_EQ(verdict(job), model::Verdict::ok);
  EXPECT_EQ(verdict(job + warning("Cuda failure 'out of memory'")), model::Verdict::unknown);
  EXPECT_EQ(verdict(line("a", 0, "misc/socket.cc:564 -> 2")), model::Verdict::unknown);
  EXPECT_EQ(verdict(line("a", 0, "cudaDriverVersion 12090")), model::Verdict::unknown);
}

}  // namespace
}  // namespace topotune::checks
