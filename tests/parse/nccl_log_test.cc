#include "parse/nccl_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace topotune::parse {
namespace {

using model::NcclLog;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

NcclLog parse(std::string_view text) { return parse_nccl_log(text); }

std::string line(std::string_view host, int dev, std::string_view message) {
  return fmt::format("{}:{}:{} [{}] NCCL INFO {}\n", host, 100 + dev, 200 + dev, dev, message);
}

const model::LogEdge* edge(const NcclLog& log, int src, int dst) {
  const auto found =
      std::ranges::find_if(log.edges, [&](const auto& e) { return e.src == src && e.dst == dst; });
  return found == log.edges.end() ? nullptr : &*found;
}

// Two ranks of one host; the second job line is the form of 2.18.6 and later.
std::string two_ranks() {
  std::string text;
  for (int r = 0; r < 2; ++r) {
    text += line("a", r, "NCCL version 2.27.5+cuda12.9");
    text += line("a", r, "cudaDriverVersion 12090");
    text += line("a", r,
                 fmt::format("ncclCommInitRank comm 0x1{} rank {} nranks 2 cudaDev {} nvmlDev {} busId {}000 "
                             "commId 0xfe - Init START",
                             r, r, r, r + 4, r + 1));
    text +=
        line("a", r,
             fmt::format("comm 0x1{} rank {} nRanks 2 nNodes 1 localRanks 2 localRank {} MNNVL 0", r, r, r));
    if (r == 0) text += line("a", r, "Channel 00/02 : 0 1") + line("a", r, "Channel 01/02 : 0 1");
    text += line("a", r,
                 r == 0 ? "Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1"
                        : "Trees [0] -1/-1/-1->1->0 [1] 0/-1/-1->1->-1");
    text +=
        line("a", r,
             "2 coll channels, 2 collnet channels, 0 nvls channels, 4 p2p channels, 4 p2p channels per peer");
    for (int c = 0; c < 2; ++c)
      text += line("a", r,
                   fmt::format("Channel 0{}/0 : {}[{}] -> {}[{}] via P2P/CUMEM", c, r, r + 4, 1 - r, 5 - r));
    text += line("a", r,
                 fmt::format("ncclCommInitRank comm 0x1{} rank {} nranks 2 cudaDev {} nvmlDev {} busId {}000 "
                             "commId 0xfe - Init COMPLETE",
                             r, r, r, r + 4, r + 1));
  }
  return text;
}

TEST(NcclLog, ReadsAWholeStart) {
  const auto log = parse(two_ranks());
  EXPECT_EQ(log.version, "2.27.5");
  EXPECT_EQ(log.cuda, "12.9");
  EXPECT_EQ(log.cuda_driver, "12.9");
  EXPECT_EQ(log.unrecognised, 0U);
  ASSERT_THAT(log.ranks, SizeIs(2));
  EXPECT_EQ(log.ranks[1].bdf, "0000:02:00.0");
  EXPECT_EQ(log.ranks[1].nvml, 5);
  EXPECT_EQ(log.ranks[1].pid, 101);
  ASSERT_THAT(log.communicators, SizeIs(1));
  EXPECT_EQ(log.communicators[0].id, "0xfe");
  EXPECT_EQ(log.communicators[0].channels, 2);
  EXPECT_EQ(log.communicators[0].nnodes, 1);
  ASSERT_THAT(log.edges, SizeIs(2));
  EXPECT_EQ(log.edges[0].channels, 2);
  EXPECT_EQ(log.transports.at("P2P"), 4U);
  ASSERT_THAT(log.rings, SizeIs(1));
  EXPECT_THAT(log.rings[0].ranks, ElementsAre(0, 1));
  ASSERT_THAT(log.trees, SizeIs(4));
  EXPECT_EQ(log.trees[0].up, std::nullopt);
  EXPECT_THAT(log.trees[0].down, ElementsAre(1));
}

// However the bytes arrive, the answer is the same.
TEST(NcclLog, PiecesDoNotMatter) {
  const auto text = two_ranks();
  const auto whole = parse(text);
  for (const std::size_t piece : {1U, 7U, 64U}) {
    NcclLogParser parser;
    parser.begin_file("");
    for (std::size_t at = 0; at < text.size(); at += piece)
      parser.feed(std::string_view(text).substr(at, piece));
    const auto log = parser.finish();
    EXPECT_EQ(log.lines, whole.lines);
    EXPECT_EQ(log.edges.size(), whole.edges.size());
    EXPECT_EQ(log.trees.size(), whole.trees.size());
  }
}

TEST(NcclLog, JoinsBothSidesOfANetworkConnection) {
  const auto log = parse(line("a", 0, "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/3(2)/GDRDMA") +
                         line("b", 0, "Channel 00/0 : 0[0] -> 8[0] [receive] via NET/IB/1") +
                         line("b", 0, "Channel 01/0 : 0[0] -> 8[0] [receive] via NET/IB/1"));
  ASSERT_THAT(log.edges,
              SizeIs(2));  // the second connection's sender is not in the log: its device is unknown
  const auto e = std::ranges::find_if(log.edges, [](const auto& one) { return one.device.has_value(); });
  ASSERT_NE(e, log.edges.end());
  EXPECT_EQ(e->device, 3);
  EXPECT_EQ(e->peer_device, 1);
  EXPECT_EQ(e->proxy_rank, 2);
  EXPECT_EQ(e->gdr_send, true);
  EXPECT_EQ(e->gdr_receive, false);
  EXPECT_EQ(e->gdr, false);
  EXPECT_EQ(log.transports.at("NET/IB"), 2U);
}

TEST(NcclLog, CountsAChannelOnceWhateverItsConnection) {
  const auto log = parse(line("a", 0, "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC") +
                         line("a", 0, "Channel 00/1 : 0[0] -> 1[1] via P2P/IPC"));
  ASSERT_THAT(log.edges, SizeIs(1));
  EXPECT_EQ(log.edges[0].channels, 1);
}

TEST(NcclLog, NetworkNamesMayHoldBlanks) {
  const auto log = parse(line("a", 0, "Using network My Fabric") +
                         line("a", 0, "Channel 00 : 0[10] -> 1[20] [send] via NET/My Fabric/2/GDRDMA"));
  EXPECT_EQ(log.net.used, "My Fabric");
  EXPECT_EQ(log.transports.at("NET/My Fabric"), 1U);
  EXPECT_EQ(log.net.gdr, true);
}

// Brackets hold bus ids between 2.5 and 2.18.1, device indices before and after.
TEST(NcclLog, BracketsAreReadByVersion) {
  const auto with = [](std::string_view version, std::string_view bracket) {
    return parse(fmt::format("NCCL version {}+cuda11.0\n", version) +
                 line("a", 0, fmt::format("Channel 00 : 0[{}] -> 1[{}] via P2P/IPC", bracket, bracket)));
  };
  EXPECT_EQ(with("2.9.9", "1e0").ranks.at(1).bdf, "0000:00:1e.0");
  EXPECT_EQ(with("2.18.1", "60").ranks.at(1).bdf, "0000:00:06.0");
  EXPECT_EQ(with("2.18.3", "1").ranks.at(1).bdf, std::nullopt);
  EXPECT_EQ(with("2.4.7", "3").ranks.at(1).bdf, std::nullopt);
}

TEST(NcclLog, TreesOfAllForms) {
  const auto old = parse(line("a", 0, "Trees [0] 2->3->4/5/-1"));
  EXPECT_EQ(old.trees.at(0).up, 2);
  EXPECT_THAT(old.trees.at(0).down, ElementsAre(4, 5));
  const auto halves =
      parse(line("a", 0, "Trees [0] 1/-1/-1->0->-1|-1->0->1/-1/-1 [1] -1/-1/-1->0->1|1->0->-1/-1/-1"));
  ASSERT_THAT(halves.trees, SizeIs(2));
  EXPECT_EQ(halves.trees[1].up, 1);
  EXPECT_THAT(halves.trees[1].down, IsEmpty());
  const auto cut = parse(line("a", 0, "Trees [0] 1/-1/-1->0->-1 [1] 12/-1/-1->0"));
  EXPECT_THAT(cut.trees, SizeIs(1));
}

TEST(NcclLog, ACutRingIsLeftOutOrCompleted) {
  std::string twenty;
  for (int i = 0; i < 20; ++i) twenty += fmt::format(" {}", i);
  EXPECT_THAT(parse(line("a", 0, "Channel 00/02 :" + twenty)).rings, IsEmpty());
  EXPECT_THAT(parse(line("a", 0, "Channel 00/02 : 0 2 1...")).rings, IsEmpty());
  std::string links;
  for (int r = 0; r < 4; ++r)
    links +=
        line(r < 2 ? "a" : "b", r % 2, fmt::format("Ring 00 : {} -> {} -> {}", (r + 3) % 4, r, (r + 1) % 4));
  const auto log = parse(line("a", 0, "comm 0x1 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0") +
                         line("a", 0, "Channel 00/01 : 0 1...") + links);
  ASSERT_THAT(log.rings, SizeIs(1));
  EXPECT_THAT(log.rings[0].ranks, ElementsAre(0, 1, 2, 3));
}

TEST(NcclLog, SettingsLoseTheDotOfIntegersOnly) {
  const auto log =
      parse(line("a", 0, "NCCL_IB_TIMEOUT set by environment to 22.") +
            line("a", 0, "NCCL_DEBUG_FILE set by environment to /tmp/x.") +
            line("a", 0, "Comm config minCTAs set to 4") + line("a", 0, "NCCL_IB_HCA set to mlx5") +
            line("a", 0, "NET/OFI Setting FI_EFA_FORK_SAFE environment variable to 1"));
  ASSERT_THAT(log.env, SizeIs(5));
  EXPECT_EQ(log.env[0].value, "22");
  EXPECT_EQ(log.env[1].value, "/tmp/x.");
  EXPECT_EQ(log.env[2].by, model::SettingBy::config);
  EXPECT_EQ(log.env[4].by, model::SettingBy::plugin);
}

TEST(NcclLog, CountsACollectiveOncePerCommunicator) {
  std::string text = two_ranks();
  for (int call = 0; call < 3; ++call)
    for (int r = 0; r < 2; ++r)
      text += line("a", r,
                   fmt::format("AllGather: opCount {:x} sendbuff 0x1 recvbuff 0x2 count 100 datatype 7 op 0 "
                               "root 0 comm 0x1{} [nranks=2] stream 0x3",
                               call, r));
  const auto log = parse(text);
  ASSERT_THAT(log.collectives, SizeIs(1));
  EXPECT_EQ(log.collectives[0].calls, 3U);
  EXPECT_EQ(log.collectives[0].bytes, 800U);
  EXPECT_EQ(log.collectives[0].datatype, "float32");
  ASSERT_THAT(log.timeline, SizeIs(1));
  EXPECT_EQ(log.timeline[0].times, 3U);
}

TEST(NcclLog, ModelsTheBytesOfARing) {
  std::string text = two_ranks();
  for (int r = 0; r < 2; ++r)
    text += line("a", r,
                 fmt::format("AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 500 datatype 7 op 0 root "
                             "0 comm 0x1{} [nranks=2] stream 0x3",
                             r));
  const auto log = parse(text);
  ASSERT_THAT(log.traffic, SizeIs(2));
  EXPECT_EQ(log.traffic[0].second, 2000U);  // 2 (n-1)/n x 2000 bytes
}

// `n` ranks on hosts of `per_host`, each with a line of its communicator, then one collective by `algorithm`.
std::string job_of(int n, int per_host, std::string_view op, std::string_view algorithm) {
  std::string text;
  for (int r = 0; r < n; ++r) {
    const auto host = fmt::format("h{}", r / per_host);
    text += line(host, r % per_host,
                 fmt::format("ncclCommInitRankConfig comm 0x1{:02} rank {} nranks {} cudaDev {} nvmlDev {} "
                             "busId 1000 commId 0xabc - Init START",
                             r, r, n, r % per_host, r % per_host));
    text += line(host, r % per_host,
                 fmt::format("comm 0x1{:02} rank {} nRanks {} nNodes {} localRanks {} localRank {} MNNVL 0",
                             r, r, n, n / per_host, per_host, r % per_host));
  }
  for (int r = 0; r < n; ++r)
    text += line(fmt::format("h{}", r / per_host), r % per_host,
                 fmt::format("{}: opCount 0 sendbuff 0x1 recvbuff 0x2 count 200 datatype 7 op 0 root 0 comm "
                             "0x1{:02} [nranks={}] stream 0x3",
                             op, r, n));
  return text +
         line("h0", 0,
              fmt::format("{}: 800 Bytes -> Algo {} proto SIMPLE channel{{Lo..Hi}}={{0..1}}", op, algorithm));
}

std::map<std::pair<int, int>, std::uint64_t> traffic_of(const model::NcclLog& log) {
  return {log.traffic.begin(), log.traffic.end()};
}

// Eight ranks: distance 4 carries one block, 2 two, 1 four; all-gather towards higher ranks, reduce-scatter
// towards lower ones.
TEST(NcclLog, ModelsTheBinomialTreesOfPat) {
  const auto gather = parse(job_of(8, 1, "AllGather", "PAT"));
  const auto up = traffic_of(gather);
  ASSERT_EQ(up.size(), 24u);
  EXPECT_EQ(up.at({0, 4}), 800u);
  EXPECT_EQ(up.at({0, 2}), 1600u);
  EXPECT_EQ(up.at({0, 1}), 3200u);
  EXPECT_EQ(up.at({7, 0}), 3200u);
  EXPECT_TRUE(gather.traffic_without.empty());
  const auto down = traffic_of(parse(job_of(8, 1, "ReduceScatter", "PAT")));
  EXPECT_EQ(down.at({0, 7}), 3200u);
  EXPECT_EQ(down.at({0, 6}), 1600u);
  EXPECT_EQ(down.count({0, 1}), 0u);
  // Six ranks: blocks 1, 1 and 3 over distances 4, 2, 1: five in all.
  const auto six = traffic_of(parse(job_of(6, 1, "AllGather", "PAT")));
  EXPECT_EQ(six.at({0, 4}), 800u);
  EXPECT_EQ(six.at({0, 2}), 800u);
  EXPECT_EQ(six.at({0, 1}), 2400u);
}

TEST(NcclLog, NamesWhatItDoesNotModel) {
  const auto log = parse(job_of(8, 4, "AllGather", "PAT"));
  EXPECT_THAT(log.traffic, IsEmpty());
  EXPECT_THAT(log.traffic_without, ElementsAre("PAT"));
  EXPECT_THAT(parse(job_of(8, 4, "AllReduce", "COLLNET_CHAIN")).traffic_without, ElementsAre("CollNetChain"));
  EXPECT_THAT(parse(job_of(8, 4, "AllReduce", "COLLNET_DIRECT")).traffic_without,
              ElementsAre("CollNetDirect"));
}

// Two nodes of four ranks, two heads each: every rank gives each head half of the buffer and gets it back.
TEST(NcclLog, ModelsCollNetDirectThroughTheHeads) {
  std::string text;
  for (const int head : {0, 1, 4, 5})
    text += line(fmt::format("h{}", head / 4), head % 4,
                 fmt::format("CollNet 00/0 : {} [send] via COLLNET/SHARP/0/GDRDMA", head));
  const auto log = parse(job_of(8, 4, "AllReduce", "COLLNET_DIRECT") + text);
  EXPECT_THAT(log.traffic_without, IsEmpty());
  const auto bytes = traffic_of(log);
  EXPECT_EQ(bytes.at({2, 0}), 400u);
  EXPECT_EQ(bytes.at({0, 2}), 400u);
  EXPECT_EQ(bytes.at({0, 1}), 800u);  // both are heads: share up and result down
  EXPECT_EQ(bytes.count({2, 3}), 0u);
  EXPECT_EQ(bytes.count({0, 4}), 0u) << "the network's part goes to the switch";
}

TEST(NcclLog, FindsDifferentCallsUnderOneNumber) {
  std::string text = two_ranks();
  text += line("a", 0,
               "AllReduce: opCount 5 sendbuff 0x1 recvbuff 0x2 count 500 datatype 7 op 0 root 0 comm 0x10 "
               "[nranks=2] stream 0x3");
  text += line("a", 1,
               "AllReduce: opCount 5 sendbuff 0x1 recvbuff 0x2 count 501 datatype 7 op 0 root 0 comm 0x11 "
               "[nranks=2] stream 0x3");
  EXPECT_THAT(parse(text).mismatches, SizeIs(1));
  // Numbers that stand still prove nothing.
  text += line("a", 1,
               "AllReduce: opCount 5 sendbuff 0x1 recvbuff 0x2 count 502 datatype 7 op 0 root 0 comm 0x11 "
               "[nranks=2] stream 0x3");
  EXPECT_THAT(parse(text).mismatches, IsEmpty());
}

TEST(NcclLog, ChoicesByNumberAndByName) {
  const auto log =
      parse("NCCL version 2.12.12+cuda11.7\n" + line("a", 0, "64 Bytes -> Algo 0 proto 2 time 12.500000") +
            line("a", 0, "AllReduce: 128 Bytes -> Algo NVLS_TREE proto LL128 channel{Lo..Hi}={0..3}"));
  ASSERT_THAT(log.tuning, SizeIs(2));
  EXPECT_EQ(log.tuning[0].algorithm, "Tree");
  EXPECT_EQ(log.tuning[0].protocol, "Simple");
  EXPECT_EQ(log.tuning[1].algorithm, "NVLSTree");
  EXPECT_EQ(log.tuning[1].last_channel, 3);
}

TEST(NcclLog, EqualWarningsAreOneProblem) {
  const auto log = parse(
      "\nh:1:2 [0] x.cc:1 NCCL WARN broken\nh:1:2 [0] NCCL INFO init.cc:7 -> 3\n\ng:1:2 [0] x.cc:1 NCCL WARN "
      "broken\n");
  ASSERT_THAT(log.problems, SizeIs(1));
  EXPECT_EQ(log.problems[0].at.line, 2U);
  EXPECT_EQ(log.problems[0].count, 2U);
  EXPECT_EQ(log.problems[0].host, "h");
  EXPECT_THAT(log.problems[0].unwound, ElementsAre("init.cc:7 -> 3"));
}

TEST(NcclLog, SubCommunicatorsAreToldInTheMainOnesRanks) {
  std::string text;
  for (int r = 0; r < 4; ++r)
    text += line("a", r,
                 fmt::format("ncclCommInitRank comm 0x1{} rank {} nranks 4 cudaDev {} nvmlDev {} busId {}000 "
                             "commId 0x4 - Init START",
                             r, r, r, r, r + 1));
  for (int r = 2; r < 4; ++r) {
    text += line("a", r,
                 fmt::format("ncclCommSplit comm 0x2{} rank {} nranks 2 cudaDev {} nvmlDev {} busId {}000 "
                             "parent 0x1{} splitCount 2 color 1 key 0- commId 0x2 - Init START",
                             r, r - 2, r, r, r + 1, r));
    text += line("a", r, fmt::format("Channel 00/0 : {}[{}] -> {}[{}] via P2P/IPC", r - 2, r, 3 - r, 5 - r));
  }
  const auto log = parse(text);
  ASSERT_THAT(log.communicators, SizeIs(2));
  EXPECT_EQ(log.communicators[0].nranks, 4);
  EXPECT_THAT(log.ranks, SizeIs(4));
  EXPECT_NE(edge(log, 2, 3), nullptr);
  EXPECT_EQ(edge(log, 0, 1), nullptr);
}

TEST(NcclLog, RcclLinesHaveATailAndABannerOfSeveralLines) {
  const auto log = parse(
      "h:1:2 [0] NCCL INFO RCCL version : 2.22.3-HEAD:abc\nHIP version  : 6.4.1\nROCm version : 6.4.0.0\n" +
      line("a", 0, "Channel 00/0 : 0[c1000] -> 1[c6000] via P2P/direct pointer comm 0x55 nRanks 02") +
      line("a", 0, "Ring 0 : 1 -> 0 -> 1 comm 0x55 nRanks 02 busId c1000"));
  EXPECT_EQ(log.library, "RCCL");
  EXPECT_EQ(log.version, "2.22.3");
  EXPECT_EQ(log.hip, "6.4.1");
  EXPECT_EQ(log.cuda, std::nullopt);
  ASSERT_THAT(log.edges, SizeIs(1));
  EXPECT_EQ(log.edges[0].transport, "P2P/direct pointer");
  EXPECT_EQ(log.unrecognised, 0U);
}

TEST(NcclLog, RcclLinesOfOneRankAndOfItsLibraries) {
  const auto log = parse_nccl_log(
      "a:1:2 [0] NCCL INFO Channel 00/128      0\n"
      "a:1:2 [0] NCCL INFO [node_id = 3; gpu_id = 23018; unique_id = 6; location_id = 9728; bdf = 9728; ], \n"
      "a:1:2 [0] NCCL INFO initialized internal alternative rsmi functionality\n");
  EXPECT_EQ(log.unrecognised, 0U);
  EXPECT_TRUE(log.edges.empty());
  EXPECT_EQ(parse_nccl_log("a:1:2 [0] NCCL INFO Channel 00/0 0[0] -> 1[1] via P2P/IPC\n").edges.size(), 0U);
}

TEST(NcclLog, AlignedChoicesAreRead) {
  const auto log = parse_nccl_log(
      "NCCL version 2.29.7+cuda12.9\n"
      "NCCL INFO AllGather:    16 Bytes -> Algo RING  proto LL     channel{Lo..Hi}={0..3}\n"
      "NCCL INFO AllGather:131072 Bytes -> Algo PAT   proto SIMPLE channel{Lo..Hi}={0..1}   <- here\n");
  EXPECT_EQ(log.unrecognised, 0U);
  ASSERT_EQ(log.tuning.size(), 2U);
  EXPECT_EQ(log.tuning[0].algorithm, "Ring");
  EXPECT_EQ(log.tuning[0].last_channel, 3);
  EXPECT_EQ(log.tuning[1].bytes, 131072U);
}

TEST(NcclLog, PytorchQuotesNcclsLastWords) {
  const std::string text =
      "[rank3]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error\n"
      "[rank3]: Last error:\n"
      "[rank3]: Error: failed to extend /dev/shm/nccl-x to 4194660 bytes\n"
      "[rank3]: something else\n";
  const auto log = parse_nccl_log(text);
  ASSERT_EQ(log.problems.size(), 1U);
  EXPECT_EQ(log.problems[0].at.line, 3);
  EXPECT_EQ(log.problems[0].rank, 3);
  EXPECT_EQ(log.problems[0].text, "Error: failed to extend /dev/shm/nccl-x to 4194660 bytes");
  EXPECT_EQ(log.library_lines, 0U);
  const auto both = parse_nccl_log(
      "a:1:2 [0] x.cc:1 NCCL WARN Error: failed to extend /dev/shm/nccl-x to 4194660 bytes\n" + text);
  ASSERT_EQ(both.problems.size(), 1U);
  EXPECT_EQ(both.problems[0].count, 1U);
}

TEST(NcclLog, NothingIsInventedFromALineThatIsCut) {
  EXPECT_THAT(parse("a:1:2 [0] NCCL INFO Channel 00 : 0[1a000] -> 1[1c000] via P2P/CU").edges, IsEmpty());
  EXPECT_THAT(parse("a:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 1").communicators, IsEmpty());
  EXPECT_THAT(parse("a:1:2 [0] NCCL INFO Channel 00/04 : 0 1").rings, IsEmpty());
  EXPECT_EQ(parse("a:1:2 [0] NCCL INFO Channel 00/04 : 0[").unrecognised, 1U);
}

TEST(NcclLog, OtherProgramsLinesAreNotCounted) {
  const auto log = parse("epoch 1 loss 2.5\n[INFO] starting\n" + line("a", 0, "Using network IB") +
                         line("a", 0, "zzz unheard of"));
  EXPECT_EQ(log.lines, 4U);
  EXPECT_EQ(log.library_lines, 2U);
  EXPECT_EQ(log.unrecognised, 1U);
}

TEST(NcclLog, AMissingBannerLeavesTheVersionOpen) {
  const auto log = parse(line("a", 0, "Using network Socket"));
  EXPECT_EQ(log.version, std::nullopt);
  EXPECT_EQ(log.net.used, "Socket");
  EXPECT_EQ(log.net.gdr, false);
}

TEST(NcclLog, AnUnexpandedBannerLeavesCudaOpen) {
  const auto log = parse("**NCCL version 2.4.7+cudaCUDA_MAJOR.CUDA_MINOR**\n");
  EXPECT_EQ(log.version, "2.4.7");
  EXPECT_EQ(log.cuda, std::nullopt);
}

TEST(NcclLog, ALineOfManyMegabytesIsReadInPartAndCounted) {
  std::string text = "a:1:2 [0] NCCL INFO " + std::string(std::size_t{5} << 20U, 'x') + "\n" +
                     line("a", 0, "Using network IB");
  NcclLogParser parser;
  for (std::size_t at = 0; at < text.size(); at += 65536)
    parser.feed(std::string_view(text).substr(at, 65536));
  const auto log = parser.finish();
  EXPECT_EQ(log.lines, 2U);
  EXPECT_EQ(log.overlong, 1U);
  EXPECT_EQ(log.net.used, "IB");
}

TEST(NcclLog, AbsurdNumbersAreRefused) {
  const auto log =
      parse(line("a", 0, "Channel 99999999/0 : 0[0] -> 1[1] via P2P/IPC") +
            line("a", 0, "Channel 00/0 : 999999999[0] -> 1[1] via P2P/IPC") +
            line("a", 0, "comm 0x1 rank 4294967296 nranks 99999999999 cudaDev 0 busId 1 - Init COMPLETE"));
  EXPECT_THAT(log.edges, IsEmpty());
  EXPECT_THAT(log.ranks, IsEmpty());
}

TEST(NcclLog, ReadsARasReport) {
  const auto log = parse(
      "NCCL version 2.27.1 compiled with CUDA 12.9\nCUDA runtime version 12090, driver version 12080\n\nJob "
      "summary\n===========\n\n"
      "Communicators... (0.00s)\n=============\n\nGroup     Comms     Nodes     Ranks     Ranks     Ranks    "
      "Status  Errors\n"
      "    #  in group  per comm  per node  per comm  in group\n    0         2         3         8        "
      "24        48   RUNNING  MISMATCH\n\n"
      "Errors\n======\n\nWarnings\n========\n\n#0-1 (00ab) MISMATCH\n  Communicator ranks have different "
      "AllReduce operation counts\n"
      "  23 ranks have launched up to operation 9\n  Rank 7 has launched up to operation 8 -- GPU 7 managed "
      "by process 55 on node 10.1.1.1\n");
  EXPECT_EQ(log.kind, "nccl-ras");
  EXPECT_EQ(log.version, "2.27.1");
  ASSERT_THAT(log.communicators, SizeIs(2));
  EXPECT_EQ(log.communicators[1].id, "0xab");
  ASSERT_THAT(log.ras, SizeIs(2));
  EXPECT_EQ(log.ras[1].operation, 8U);
  EXPECT_THAT(log.ras[1].named, ElementsAre(7));
  EXPECT_EQ(log.ranks.at(0).pid, 55);
}

TEST(NcclLog, ReadsARasReportAsJson) {
  const auto log = parse(R"({
  "nccl_version": "2.28.7", "cuda_driver_version": 13000,
  "communicators": [{"hash": "0x1", "size": 2, "missing_ranks_count": 0, "ranks": [
    {"rank": 0, "host": "a", "pid": 1, "cuda_dev": 0, "nvml_dev": 0, "collective_counts": {"AllReduce": 4}},
    {"rank": 1, "host": "b", "pid": 2, "cuda_dev": 0, "nvml_dev": 0, "collective_counts": {"AllReduce": 3}}]}]})");
  EXPECT_EQ(log.kind, "nccl-ras");
  EXPECT_EQ(log.version, "2.28.7");
  EXPECT_THAT(log.ras, SizeIs(2));
}

TEST(NcclLog, IsRecognised) {
  EXPECT_TRUE(looks_like_nccl_log("hello\nx:1:2 [0] NCCL INFO y\n"));
  EXPECT_TRUE(looks_like_nccl_log("NCCL version 2.7.8+cuda10.2\n"));
  EXPECT_FALSE(looks_like_nccl_log("GPU0 GPU1\nX NV18\n"));
}

// Calls that are recognised by their text and calls that are taken apart give the same counts.
TEST(NcclLog, ARepeatedCallIsCountedLikeAnyOther) {
  const auto call = [](int r, std::string_view op, int count, int root, std::string_view more = "") {
    return line(
        "a", r,
        fmt::format("{}: opCount 0 sendbuff 0x7f0000{:06x}00 recvbuff (nil) count {} datatype 9 op 0 root {} "
                    "comm 0x1{} [nranks=2] stream 0x5{}{}",
                    op, count, count, root, r, r, more));
  };
  std::string text = two_ranks();
  std::string odd = text;  // a comment behind each call: never the remembered text
  for (int i = 0; i < 50; ++i)
    for (int r = 0; r < 2; ++r)
      for (const auto& [op, count, root] :
           {std::tuple("AllReduce", 512, 0), std::tuple("AllGather", 64, 0), std::tuple("Send", 7, 1 - r)}) {
        text += call(r, op, count, root);
        odd += call(r, op, count, root, fmt::format(" n{}", i));
      }
  const auto a = parse(text);
  const auto b = parse(odd);
  ASSERT_THAT(a.collectives, SizeIs(3));
  ASSERT_THAT(b.collectives, SizeIs(3));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(a.collectives[i].op, b.collectives[i].op);
    EXPECT_EQ(a.collectives[i].calls, a.collectives[i].op == "Send" ? 100U : 50U);
    EXPECT_EQ(a.collectives[i].calls, b.collectives[i].calls);
  }
  EXPECT_EQ(a.traffic, b.traffic);
  EXPECT_FALSE(a.traffic.empty());
  EXPECT_EQ(a.timeline.size(), b.timeline.size());
}

// The same pointer, the next communicator: a call after the new start belongs to it.
TEST(NcclLog, APointerThatIsUsedAgainIsAnotherCommunicator) {
  const auto init = [](std::string_view id) {
    return line("a", 0,
                fmt::format("ncclCommInitRank comm 0x10 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1000 "
                            "commId {} - Init START",
                            id)) +
           line("a", 0,
                fmt::format("ncclCommInitRank comm 0x10 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1000 "
                            "commId {} - Init COMPLETE",
                            id));
  };
  const auto call =
      line("a", 0,
           "AllReduce: opCount 0 sendbuff 0x7f0000000000 recvbuff 0x7f0000000000 count 16 datatype 7 op "
           "0 root 0 comm 0x10 [nranks=1] stream 0x20");
  const auto log = parse(init("0xaa") + call + call + call + init("0xbb") + call + call);
  ASSERT_THAT(log.collectives, SizeIs(2));
  EXPECT_EQ(log.collectives[0].calls, 3U);
  EXPECT_EQ(log.collectives[1].calls, 2U);
}

TEST(NcclLog, ATuningLineKnowsTheCallBeforeItOfItsThread) {
  const auto call = [](int count) {
    return line("a", 0,
                fmt::format("AllGather: opCount 0 sendbuff 0x7f0000000000 recvbuff 0x7f0000000000 count {} "
                            "datatype 7 op 0 root 0 comm 0x10 [nranks=2] stream 0x20",
                            count));
  };
  const auto log = parse(two_ranks() + call(16) + call(16) + call(16) +
                         line("a", 0, "64 Bytes -> Algo 1 proto 0 time 9.5"));
  ASSERT_THAT(log.tuning, SizeIs(1));
  EXPECT_EQ(log.tuning[0].op, "AllGather");
}

TEST(NcclLog, DamagedLinesNameNoHostsThatDoNotExist) {
  const auto base = parse(two_ranks());
  std::string glued;
  for (int i = 0; i < 10; ++i) glued += two_ranks();
  glued += "xx" + line("a", 1, "Channel 00/0 : 1[5] -> 0[4] via P2P/CUMEM");
  const auto log = parse(glued);
  EXPECT_THAT(log.hosts, ElementsAre("a"));
  EXPECT_EQ(log.ranks.size(), base.ranks.size());
  EXPECT_EQ(log.edges.size(), base.edges.size());
}

TEST(NcclLog, NulsEndWhatStandsBeforeThem) {
  const auto nuls = std::string(64, '\0');
  const auto log = parse("a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CU" + nuls +
                         "a:1:2 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\n");
  ASSERT_THAT(log.edges, SizeIs(1));
  EXPECT_EQ(log.edges[0].transport, "P2P/CUMEM");
  EXPECT_EQ(log.edges[0].channels, 1);
}

TEST(NcclLog, ACutChoiceIsNone) {
  EXPECT_THAT(parse(line("a", 0, "AllReduce: 64 Bytes -> Algo RING proto SIM")).tuning, IsEmpty());
  EXPECT_THAT(parse(line("a", 0, "AllReduce: 64 Bytes -> Algo NEWER proto LL channel{Lo..Hi}={0..3}")).tuning,
              SizeIs(1));
}

TEST(NcclLog, ACutInitLineTellsNoAddress) {
  const auto log = parse("a:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 10\n");
  ASSERT_THAT(log.ranks, SizeIs(1));
  EXPECT_FALSE(log.ranks[0].bdf.has_value());
}

TEST(NcclLog, PagesSourcesAndTablesAreRead) {
  for (const std::string_view text :
       {"a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -&gt; 1[1] via P2P/CUMEM\n",
        "\"a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\"\n",
        "**a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM**\n"}) {
    const auto log = parse(text);
    ASSERT_THAT(log.edges, SizeIs(1)) << text;
    EXPECT_EQ(log.edges[0].transport, "P2P/CUMEM");
  }
}

TEST(NcclLog, ReadsWhatBenchmarksMeasured) {
  const auto log = parse(
      "    1048576  262144  float  sum  -1  20.0  52.4  52.4  0  19.0  55.1  55.1  0\n"
      "   67108864 16777216 float  sum  -1 300.0 223.6 223.6  0 310.0 216.4 216.4  0\n"
      "all-reduce  1073741824 bytes    3258.7 us    329.5 GB/s busbw\n"
      "step 5: 12.0 GB/s read\n");
  EXPECT_EQ(log.peak_bus_gbytes_per_s, 329.5);
  EXPECT_EQ(log.peak_bus_bytes, 1U << 30U);
  ASSERT_EQ(log.bus_by_size.size(), 3U);
  EXPECT_EQ(log.bus_by_size.at(1U << 20U), 55.1);
}

// Twice the log: twice the lines, the same job.
TEST(NcclLog, TwoJobsInOneFileStayTwo) {
  auto second = two_ranks();
  for (std::size_t at = 0; (at = second.find("0xfe", at)) != std::string::npos; at += 4)
    second.replace(at, 4, "0xcd");
  for (std::size_t at = 0; (at = second.find("a:", at)) != std::string::npos; at += 2)
    second.replace(at, 2, "b:");
  const auto log = parse(two_ranks() + second);
  EXPECT_THAT(log.communicators, SizeIs(2));
  EXPECT_THAT(log.ranks, SizeIs(4));
  EXPECT_THAT(log.hosts, ElementsAre("a", "b"));
  EXPECT_FALSE(log.versions_differ_in_job);
}

TEST(NcclLog, AnErrorThatIsReturnedWithoutAWarningIsAProblem) {
  const auto log = parse(line("a", 0, "socket.cc:564 -> 2") + line("a", 0, "bootstrap.cc:270 -> 2") +
                         line("a", 0, "init.cc:1303 -> 2") + line("b", 0, "misc/socket.cc:564 -> 2"));
  ASSERT_THAT(log.problems, SizeIs(1));
  EXPECT_EQ(log.problems[0].text, "returned 2 (system error) without a warning");
  EXPECT_EQ(log.problems[0].count, 2U);  // of two ranks
  EXPECT_THAT(log.problems[0].unwound, SizeIs(4));
  EXPECT_TRUE(log.problems[0].returned);
  EXPECT_THAT(parse(line("a", 0, "init.cc:1303 -> 7")).problems, IsEmpty());  // in progress
}

TEST(NcclLog, AnErrorThatStaysInsideIsNotReturned) {
  const auto made = line("a", 0, "comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1000 - Init COMPLETE");
  const auto warn =
      std::string("a:100:300 [0] misc/socket.cc:47 NCCL WARN Connection closed by remote peer b<5>\n");
  EXPECT_FALSE(parse(made + warn + line("a", 0, "proxy.cc:1458 -> 6")).problems[0].returned);
  EXPECT_TRUE(parse(warn + line("a", 0, "proxy.cc:1458 -> 6")).problems[0].returned);
  EXPECT_TRUE(parse(made + warn + line("a", 0, "enqueue.cc:300 -> 6")).problems[0].returned);
}

TEST(NcclLog, WhatCollectorsPutBehindALineIsNotItsValue) {
  const auto value = [](std::string_view before, std::string_view after) {
    const auto log =
        parse(fmt::format("{0}n:1:2 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.{1}\n"
                          "{0}n:1:2 [0] NCCL INFO Using network Socket{1}\n",
                          before, after));
    return fmt::format("{} {}", log.env.empty() ? "?" : log.env[0].value, log.net.used.value_or("?"));
  };
  EXPECT_EQ(value("\u2502 ", "    \u2502"), "1 Socket");
  EXPECT_EQ(value("2025-07-21T19:05:29.123Z,\"", "\""), "1 Socket");
  EXPECT_EQ(value("2025-07-21 19:05:29.0 +0000 kube.trainer: {\"log\": \"", "\"}"), "1 Socket");
  EXPECT_EQ(value("2025-07-21 19:05:29.0 +0000 kube.trainer: {\"log\": \"", "\\n\",\"stream\":\"out\"}"),
            "1 Socket");
  EXPECT_EQ(value("<td>", "</td>"), "1 Socket");
  EXPECT_EQ(value("", "<br>"), "1 Socket");
}

TEST(NcclLog, HeadsWhoseNumbersWereTakenOut) {
  const auto log = parse(
      "node [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.\n"
      "node:xxx:xxx [0] NCCL INFO Using network Socket\n"
      "dgx-01: NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n"
      "[2026-03-13 22:26:02] node:XXXXXX [5] ib.c:262 NCCL WARN Call to ibv_modify_qp failed\n");
  EXPECT_EQ(log.library_lines, 4U);
  ASSERT_THAT(log.env, SizeIs(1));
  EXPECT_EQ(log.env[0].host, "node");
  EXPECT_EQ(log.net.used, "Socket");
  EXPECT_NE(edge(log, 0, 1), nullptr);
  ASSERT_THAT(log.problems, SizeIs(1));
  EXPECT_EQ(log.problems[0].host, "node");
  // A sentence is none, and a line that is not read is counted.
  const auto prose = parse("please set NCCL INFO Using network IB\n");
  EXPECT_EQ(prose.library_lines, 0U);
  EXPECT_EQ(prose.unrecognised, 1U);
}

TEST(NcclLog, OtherProgramsLinesBehindAPrefix) {
  for (const std::string_view tag :
       {"", "[1,0]<stdout>:", "0: ", "trainer-0 | ", "(RayWorker pid=7, ip=10.0.0.1) ",
        "2025-07-21T19:05:29.123Z ", "Jul 21 19:05:29 node job[12]: ", "> "}) {
    const auto log = parse(fmt::format(
        "{0}  536870912  134217728  float  sum  -1  4208.1  127.58  223.27  0  4206.3  127.63  223.36  0\n"
        "{0}RCCL version : 2.22.3-HEAD:271856d\n{0}HIP version  : 6.4.43482-0f2d60242\n{0}ROCm version : "
        "6.4.0.0-47\n",
        tag));
    EXPECT_EQ(log.peak_bus_gbytes_per_s, 223.36) << tag;
    EXPECT_EQ(log.peak_bus_bytes, 536870912U) << tag;
    EXPECT_EQ(log.hip, "6.4.43482-0f2d60242") << tag;
    EXPECT_EQ(log.rocm, "6.4.0.0-47") << tag;
  }
  // All-gather has no reduction: "size count type time …".
  EXPECT_EQ(parse("1024 256 float 10.0 1.0 2.0 0 10.0 1.0 3.5 0\n").peak_bus_gbytes_per_s, 3.5);
}

TEST(NcclLog, AnExceptionBehindALabel) {
  const auto log = parse(
      "w-1: DistBackendError: NCCL error in: x.cpp:77, unhandled cuda error, NCCL version 2.26.2\n"
      "w-1: Last error:\nw-1: Cuda failure 802 'system not yet initialized'\n"
      "w-2: Last error:\nw-2: Cuda failure 802 'system not yet initialized'\n");
  EXPECT_EQ(log.version, "2.26.2");
  ASSERT_THAT(log.problems, SizeIs(1));
  EXPECT_EQ(log.problems[0].text, "Cuda failure 802 'system not yet initialized'");
}

}  // namespace
}  // namespace topotune::parse
