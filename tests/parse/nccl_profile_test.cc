#include "parse/nccl_profile.h"

#include <gtest/gtest.h>

#include <cstring>

namespace topotune::parse {
namespace {

// A file by the words of docs/formats/profile.md.
class File {
 public:
  File(std::uint32_t ranks, std::uint32_t nodes, std::uint32_t rank, std::uint32_t records = 4)
      : header_((9456 + 8 * ranks + 63) / 64 * 64), bytes_(header_ + records * 72, '\0') {
    put<std::uint64_t>(0, 0x3146'4f52'5054'5454), put<std::uint32_t>(8, 1);
    put<std::uint32_t>(12, static_cast<std::uint32_t>(header_)), put<std::uint32_t>(16, 72), put(20, records);
    put(24, ranks), put(28, nodes), put(32, rank), put<std::uint32_t>(36, 5), put<std::uint64_t>(40, 0xabc);
    put<std::uint64_t>(48, 4711), put<std::uint64_t>(208, 1),
        put<std::uint32_t>(232, 6 | (nodes > 1 ? 24 : 0));
    bytes_.replace(72, 5, "node7");
  }
  template <class T>
  void put(std::size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
  }
  // An all-reduce of bfloat16 by Ring/LL128 on 24 channels.
  void event(std::uint64_t number, std::uint64_t bytes, std::uint8_t function = 4, std::uint64_t gpu_ns = 0,
             std::int32_t peer = -1) {
    const auto records = 4u;
    const auto at = header_ + (number - 1) % records * 72;
    put(at, number), put<std::uint64_t>(at + 8, 1000), put<std::uint64_t>(at + 16, 3000);
    if (gpu_ns > 0) put<std::uint64_t>(at + 24, 50000), put<std::uint64_t>(at + 32, 50000 + gpu_ns);
    put(at + 40, bytes);
    const std::uint8_t small[8] = {1, function, 1, 1, 9, 24, 16, 0};
    std::memcpy(bytes_.data() + at + 56, small, 8);
    put(at + 64, peer);
    put<std::uint64_t>(200, number);
    total(function, bytes);
  }
  // The kernels of `stopped` of `started` channels have ended.
  void kernels(std::uint64_t number, std::uint32_t started, std::uint8_t stopped) {
    const auto at = header_ + (number - 1) % 4 * 72;
    put(at + 63, stopped), put(at + 68, started);
  }
  void total(std::uint8_t function, std::uint64_t bytes) {
    std::size_t log2 = 0;
    while (bytes >> (log2 + 1) != 0) ++log2;
    const auto at = 240 + (function * 48u + log2) * 16;
    std::uint64_t old[2];
    std::memcpy(old, bytes_.data() + at, 16);
    put(at, old[0] + 1), put(at + 8, old[1] + bytes);
  }
  std::string& bytes() { return bytes_; }

 private:
  std::size_t header_;
  std::string bytes_;
};

NcclProfile parsed(File& file) {
  auto profile = parse_nccl_profile(file.bytes());
  EXPECT_TRUE(profile) << profile.error().text;
  return profile ? *profile : NcclProfile{};
}

TEST(NcclProfile, TellsEventsAndTotals) {
  File file(2, 1, 1);
  for (std::uint64_t i = 1; i <= 6; ++i) file.event(i, 2048, 4, i == 6 ? 7000 : 0);
  const auto p = parsed(file);
  EXPECT_EQ(p.rank, 1);
  EXPECT_EQ(p.ranks, 2);
  EXPECT_EQ(p.communicator, 0xabcu);
  EXPECT_EQ(p.host, "node7");
  EXPECT_TRUE(p.closed);
  EXPECT_FALSE(p.steps);
  EXPECT_EQ(p.events, 6u);
  ASSERT_EQ(p.kept.size(), 4u);
  EXPECT_EQ(p.kept.front().number, 3u);
  const auto& e = p.kept.back();
  EXPECT_EQ(e.op, "AllReduce");
  EXPECT_EQ(e.datatype, "bfloat16");
  EXPECT_EQ(e.count, 1024u);
  EXPECT_EQ(e.algorithm, "Ring");
  EXPECT_EQ(e.protocol, "LL128");
  EXPECT_DOUBLE_EQ(*e.host_seconds, 2e-6);
  EXPECT_DOUBLE_EQ(*e.gpu_seconds, 7e-6);
  EXPECT_FALSE(p.kept.front().gpu_seconds);
  ASSERT_EQ(p.totals.size(), 1u);
  EXPECT_EQ(p.totals[0].calls, 6u);
  EXPECT_EQ(p.totals[0].bytes, 6u * 2048);
  EXPECT_EQ(p.totals[0].log2_bytes, 11);
}

TEST(NcclProfile, TwoRanksOfANodeLeaveNoDoubt) {
  File a(2, 1, 0), b(2, 1, 1);
  for (std::uint64_t i = 1; i <= 6; ++i) a.event(i, 1000), b.event(i, 1000);
  const std::vector<NcclProfile> both{parsed(a), parsed(b)};
  const auto log = log_of(both);
  EXPECT_EQ(log.traffic_basis, "modelled");
  ASSERT_EQ(log.traffic.size(), 2u);
  EXPECT_EQ(log.traffic[0].second, 6000u);  // 2 (n-1)/n of six times 1000
  ASSERT_EQ(log.communicators.size(), 1u);
  EXPECT_EQ(log.communicators[0].ranks_seen, 2);
  ASSERT_EQ(log.collectives.size(), 1u);
  EXPECT_EQ(log.collectives[0].calls, 6u);  // two of them overwritten; once a communicator
  EXPECT_TRUE(log.collectives[0].estimated);
  ASSERT_EQ(log.tuning.size(), 1u);
  EXPECT_EQ(log.tuning[0].count, 6u);
  EXPECT_EQ(log.tuning[0].last_channel, 23);
}

TEST(NcclProfile, NetworkBytesAreMeasured) {
  File a(4, 2, 0), b(4, 2, 2);
  a.put<std::uint64_t>(9456 + 8 * 2, 5000), b.put<std::uint64_t>(9456, 77);
  const std::vector<NcclProfile> both{parsed(a), parsed(b)};
  const auto log = log_of(both);
  EXPECT_EQ(log.traffic_basis, "measured");
  using Pair = std::pair<std::pair<int, int>, std::uint64_t>;
  EXPECT_EQ(log.traffic,
            (std::vector<Pair>{{{0, 2}, 5000}, {{2, 0}, 77}}));  // one host: the others are unknown
  // More than two ranks without network steps: unknown, not zero.
  File c(4, 1, 0);
  c.event(1, 1000);
  const std::vector<NcclProfile> one{parsed(c)};
  const auto within = log_of(one);
  EXPECT_FALSE(within.traffic_basis);
  EXPECT_EQ(within.traffics.at(0).why, "within a node NCCL tells of no network steps");
}

using Cell = std::pair<std::pair<int, int>, std::uint64_t>;

// Nothing is a number only where it would have been seen.
TEST(NcclProfile, ZeroIsMeasuredBetweenNodesAlone) {
  File a(4, 2, 0), b(4, 2, 1), c(4, 2, 2);
  c.bytes().replace(72, 5, "node8");
  a.put<std::uint64_t>(9456 + 8 * 2, 5000), a.put<std::uint64_t>(216, 0);
  const std::vector<NcclProfile> three{parsed(a), parsed(b), parsed(c)};
  const auto log = log_of(three);
  EXPECT_EQ(log.traffic, (std::vector<Cell>{{{0, 2}, 5000}, {{1, 2}, 0}, {{2, 0}, 0}, {{2, 1}, 0}}));
  EXPECT_TRUE(log.traffics.at(0).partial);
  EXPECT_EQ(log.hosts, (std::vector<std::string>{"node7", "node8"}));
  // By way of another process: what is not seen may have been sent.
  b.put<std::uint64_t>(216, 900);
  const std::vector<NcclProfile> again{parsed(a), parsed(b), parsed(c)};
  const auto foreign = log_of(again);
  EXPECT_EQ(foreign.traffic, (std::vector<Cell>{{{0, 2}, 5000}}));
  EXPECT_EQ(foreign.traffics.at(0).foreign, 900u);
  // Steps recorded and nothing sent is measured too.
  File quiet(2, 2, 0);
  const std::vector<NcclProfile> one{parsed(quiet)};
  EXPECT_EQ(log_of(one).traffic_basis, "measured");
  EXPECT_EQ(log_of(one).traffic, (std::vector<Cell>{{{0, 1}, 0}}));
}

TEST(NcclProfile, EachCommunicatorHasItsMatrix) {
  std::vector<NcclProfile> all;
  const auto add = [&](std::uint64_t id, std::uint32_t ranks, std::uint64_t bytes) {
    File file(ranks, ranks, 0);
    file.put(40, id), file.put<std::uint64_t>(9456 + 8, bytes);
    all.push_back(parsed(file));
  };
  add(1, 4, 10), add(2, 4, 300), add(3, 2, 1'000'000);
  const auto log = log_of(all);
  ASSERT_EQ(log.traffics.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(log.traffics[i].communicator, static_cast<int>(i));
    EXPECT_EQ(log.traffics[i].bytes.at(0), (Cell{{0, 1}, std::vector<std::uint64_t>{10, 300, 1'000'000}[i]}));
  }
  EXPECT_EQ(log.traffic_shown, 1u);  // the largest, and of these the busiest
  EXPECT_EQ(log.traffic.at(0).second, 300u);
  EXPECT_EQ(log.main_ranks, 4);
}

// Four places; the sizes of the totals count, whether or not their events are left.
TEST(NcclProfile, OverwrittenEventsCount) {
  File file(2, 1, 0);
  file.event(1, 5000, 2), file.event(2, 7000, 2);
  for (std::uint64_t i = 3; i <= 12; ++i) file.event(i, i % 2 == 0 ? 1030 : 1500);
  const std::vector<NcclProfile> one{parsed(file)};
  EXPECT_EQ(one[0].overwritten(), 8u);
  const auto log = log_of(one);
  ASSERT_EQ(log.collectives.size(), 3u);
  EXPECT_EQ(log.collectives[0].op, "AllGather");
  EXPECT_EQ(log.collectives[0].calls, 2u);
  EXPECT_EQ(log.collectives[0].bytes, 2u * 6000);  // their mean, of both ranks
  EXPECT_EQ(log.collectives[0].datatype, "unknown");
  EXPECT_EQ(log.collectives[1].bytes, 1030u);
  EXPECT_EQ(log.collectives[1].calls, 5u);
  EXPECT_EQ(log.collectives[2].bytes, 1500u);
  EXPECT_EQ(log.collectives[2].calls, 5u);
  for (const auto& c : log.collectives) EXPECT_TRUE(c.estimated) << c.op;
  File whole(2, 1, 0);
  whole.event(1, 1000);
  const std::vector<NcclProfile> exact{parsed(whole)};
  EXPECT_FALSE(log_of(exact).collectives.at(0).estimated);
}

TEST(NcclProfile, SendsOfEveryRankCount) {
  constexpr std::uint8_t kSend = 6, kRecv = 7;
  File a(2, 1, 0), b(2, 1, 1);
  for (std::uint64_t i = 1; i <= 10; ++i) a.event(i, 1000, kSend, 0, i % 2 == 0 ? 0 : 1);  // half to itself
  for (std::uint64_t i = 1; i <= 3; ++i) b.event(i, 1400, kSend, 0, 0);
  a.put<std::uint64_t>(240 + (kRecv * 48 + 10) * 16, 3),
      a.put<std::uint64_t>(240 + (kRecv * 48 + 10) * 16 + 8, 4200);
  const std::vector<NcclProfile> both{parsed(a), parsed(b)}, first{parsed(a)};
  const auto log = log_of(both);
  EXPECT_EQ(log.traffic, (std::vector<Cell>{{{0, 1}, 5000}, {{1, 0}, 4200}}));
  std::uint64_t calls = 0;
  for (const auto& c : log.collectives) calls += c.op == "Send" ? c.calls : 0;
  EXPECT_EQ(calls, 13u);
  // What the other one sent is what this one received.
  EXPECT_EQ(log_of(first).traffic, (std::vector<Cell>{{{0, 1}, 5000}, {{1, 0}, 4200}}));
}

TEST(NcclProfile, AnUnfinishedEventHasNoGpuTime) {
  File file(2, 1, 0);
  file.event(1, 1000, 4, 7000), file.event(2, 1000, 4, 7000), file.event(3, 1000, 4, 7000);
  file.kernels(1, 24, 23), file.kernels(2, 24, 24), file.kernels(3, 24, 0);  // 0: an older plugin's
  const auto p = parsed(file);
  EXPECT_FALSE(p.kept[0].gpu_seconds);
  EXPECT_TRUE(p.kept[1].gpu_seconds);
  EXPECT_TRUE(p.kept[2].gpu_seconds);
}

TEST(NcclProfile, NamesStayInOneLine) {
  File file(2, 1, 0);
  file.bytes().replace(72, 8, std::string("a\nb\tc\x1b[m")), file.bytes().replace(136, 3, "x\ny");
  const auto p = parsed(file);
  EXPECT_EQ(p.host, "a?b?c?[m");
  EXPECT_EQ(p.name, "x?y");
}

TEST(NcclProfile, ARecordThatIsBeingWrittenIsLeftOut) {
  File file(2, 1, 0);
  file.event(1, 100), file.event(2, 100);
  file.put<std::uint64_t>(9472 + 72, 0);
  EXPECT_EQ(parsed(file).kept.size(), 1u);
  file.put<std::uint64_t>(9472 + 72, 99);  // beyond the count of events
  EXPECT_EQ(parsed(file).kept.size(), 1u);
}

TEST(NcclProfile, SinceTellsWhatCameInBetween) {
  File file(2, 1, 0);
  file.event(1, 1024), file.event(2, 1024);
  file.put<std::uint64_t>(9456 + 8, 100);
  const auto before = parsed(file);
  file.event(3, 1024), file.event(4, 1 << 20, 2);
  file.put<std::uint64_t>(9456 + 8, 175);
  const auto part = since(before, parsed(file));
  EXPECT_EQ(part.events, 2u);
  ASSERT_EQ(part.kept.size(), 2u);
  EXPECT_EQ(part.kept[0].number, 3u);
  ASSERT_EQ(part.totals.size(), 2u);
  for (const auto& t : part.totals) EXPECT_EQ(t.calls, 1u) << t.op;
  EXPECT_EQ(part.sent[1], 75u);
  EXPECT_TRUE(since(parsed(file), parsed(file)).totals.empty());
}

TEST(NcclProfile, EventsOverwrittenWhileReadingAreDropped) {
  File file(2, 1, 0);
  for (std::uint64_t n = 1; n <= 6; ++n) file.event(n, 1024);  // of four places
  auto profile = parsed(file);
  ASSERT_EQ(profile.kept.size(), 4u);
  drop_overwritten(profile, 6);
  EXPECT_EQ(profile.kept.size(), 4u);
  drop_overwritten(profile, 8);  // two more came
  ASSERT_EQ(profile.kept.size(), 2u);
  EXPECT_EQ(profile.kept[0].number, 5u);
}

TEST(NcclProfile, RefusesWhatCannotBe) {
  File file(2, 1, 0);
  const auto whole = file.bytes();
  for (std::size_t size = 0; size < whole.size(); size += 97)
    EXPECT_FALSE(parse_nccl_profile(std::string_view(whole).substr(0, size))) << size;
  const auto refusal = [&](std::size_t offset, std::uint32_t value) {
    File bad(2, 1, 0);
    bad.put(offset, value);
    const auto p = parse_nccl_profile(bad.bytes());
    return p ? std::string() : p.error().text;
  };
  EXPECT_EQ(refusal(0, 7), "not a profiler file");
  EXPECT_EQ(refusal(8, 2), "version 2 of the profiler's file is not known");
  EXPECT_EQ(refusal(16, 71), "a profiler file with 4 records of 71 bytes");
  EXPECT_EQ(refusal(20, 3), "a profiler file with 3 records of 72 bytes");
  EXPECT_EQ(refusal(24, 1u << 31), "a profiler file with a header of 9472 bytes for 2147483648 ranks");
  EXPECT_EQ(refusal(12, 0xffffffff), "a profiler file of 9760 bytes is cut off");
}

}  // namespace
}  // namespace topotune::parse
