#include "parse/nccl_log_prefix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace topotune::parse {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Seen {
  std::string host, message, source, time;
  int pid = -1, dev = -1;
  LogLevel level = LogLevel::info;
};

std::vector<Seen> records(std::string_view line, std::initializer_list<std::string_view> known = {}) {
  KnownHosts hosts;
  for (const auto host : known) hosts.add(host);
  RecordReader reader(line, hosts);
  std::vector<Seen> seen;
  LogRecord r;
  while (reader.next(r))
    seen.push_back({std::string(r.host), std::string(r.message), std::string(r.source), std::string(r.time),
                    r.pid.value_or(-1), r.dev.value_or(-1), r.level});
  return seen;
}

TEST(NcclLogPrefix, ReadsThePlainForm) {
  const auto seen = records("gpu-a.site:31:47 [3] NCCL INFO Using network IB");
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].host, "gpu-a.site");
  EXPECT_EQ(seen[0].pid, 31);
  EXPECT_EQ(seen[0].dev, 3);
  EXPECT_EQ(seen[0].message, "Using network IB");
}

// Launchers, collectors, editors and people put things in front; the statement stays the same.
TEST(NcclLogPrefix, PassesOverWhatLaunchersPutInFront) {
  for (const std::string front : {"[1,0]<stdout>:",
                                  "[1,12]<stderr>:",
                                  "3: ",
                                  "0: 1: ",
                                  "[0] ",
                                  "[rank3]: ",
                                  "[default0]:",
                                  "(RayTrainWorker pid=9, ip=10.0.0.9) ",
                                  "worker-0 | ",
                                  "> ",
                                  ">> ",
                                  "   17  ",
                                  "**",
                                  "\x1b[32m",
                                  "\x1b[0m ",
                                  "[0m ",
                                  "2026-01-02T03:04:05.678Z ",
                                  "2026-01-02T03:04:05.678901234Z stdout F ",
                                  "Jan  2 03:04:05 box app[1]: ",
                                  "pod/trainer-0: ",
                                  "`",
                                  "\t"}) {
    const auto seen = records(front + "h7:5:6 [1] NCCL INFO Connected all rings");
    ASSERT_EQ(seen.size(), 1U) << front;
    EXPECT_EQ(seen[0].host, "h7") << front;
    EXPECT_EQ(seen[0].pid, 5) << front;
    EXPECT_EQ(seen[0].message, "Connected all rings") << front;
  }
}

TEST(NcclLogPrefix, ReadsWarningsOfAllForms) {
  for (const std::string line :
       {"h:1:2 [0] misc/x.cc:63 NCCL WARN broken", "h:1:2 [0] misc/x.cc:63 (ncclThing) NCCL WARN broken",
        "[2026-01-02 03:04:05] h:1:2 [0] misc/x.cc:63 NCCL WARN broken",
        "h:1:2 [0] include/socket.h:9 WARN broken"}) {
    const auto seen = records(line);
    ASSERT_EQ(seen.size(), 1U) << line;
    EXPECT_EQ(seen[0].level, LogLevel::warn) << line;
    EXPECT_EQ(seen[0].host, "h") << line;
    EXPECT_EQ(seen[0].message, "broken") << line;
    EXPECT_FALSE(seen[0].source.empty()) << line;
  }
  EXPECT_EQ(records("[2026-01-02 03:04:05] h:1:2 [0] a.cc:3 NCCL WARN x")[0].time, "2026-01-02 03:04:05");
}

TEST(NcclLogPrefix, ReadsTheFormWithoutTheWordNccl) {
  const auto seen = records("h:1:2 [4] INFO NET/Socket : 1 interfaces found");
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].dev, 4);
  EXPECT_THAT(records("2026-01-02 INFO server: listening on 0.0.0.0:80"), IsEmpty());
  EXPECT_THAT(records("10:20:30 [main] INFO app started"), testing::Not(testing::SizeIs(2)));
}

TEST(NcclLogPrefix, SeparatesGluedRecords) {
  const auto seen =
      records("h1:1:2 [0] NCCL INFO Connected all treesh2:3:4 [1] NCCL INFO Using network IB", {"h1", "h2"});
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].message, "Connected all trees");
  EXPECT_EQ(seen[1].host, "h2");
  EXPECT_EQ(seen[1].message, "Using network IB");
}

TEST(NcclLogPrefix, FindsARecordGluedToAnotherProgramsText) {
  const auto seen = records("   1024   256  float  sumh2:3:4 [1] NCCL INFO Using network IB", {"h2"});
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].host, "h2");
}

TEST(NcclLogPrefix, ReadsBannersOneOrSeveralOnALine) {
  EXPECT_EQ(records("NCCL version 2.7.8+cuda10.2").size(), 1U);
  EXPECT_EQ(records("NCCL version 2.7.8+cuda10.2NCCL version 2.7.8+cuda10.2").size(), 2U);
  EXPECT_EQ(records("RCCL version 2.18.6+hip6.0 HEAD:abc").size(), 1U);
  EXPECT_EQ(records("h:1:2 [0] NCCL INFO NCCL version 2.28.9+cuda13.0").size(), 1U);
  EXPECT_THAT(records("I think the NCCL version matters, NCCL WARNs too"), IsEmpty());
}

TEST(NcclLogPrefix, AcceptsWarningsWhosePrefixWasStripped) {
  EXPECT_EQ(records("include/shm.h:28 NCCL WARN Call to posix_fallocate failed").size(), 1U);
  EXPECT_EQ(records("NCCL INFO NET/IB : No device found.").size(), 1U);
  EXPECT_THAT(records("please set NCCL INFO level"), IsEmpty());
}

TEST(NcclLogPrefix, AClockIsNoHost) {
  const auto seen = records("20:13:32 - NCCL WARN NET/OFI Only EFA provider is supported");
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].host, "");
  EXPECT_EQ(seen[0].source, "");
  EXPECT_EQ(records("20:13:32 [0] NCCL INFO text").at(0).host, "");
  EXPECT_EQ(records("20:13:3200 [0] NCCL INFO text").at(0).host, "20");
}

TEST(NcclLogPrefix, ATagOfOneWordMayStandForTheHead) {
  const auto seen = records("[trainer-a:1298] NCCL INFO Using network IB");
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].host, "trainer-a");
  EXPECT_EQ(seen[0].pid, 1298);
  EXPECT_EQ(records("[rank8] NCCL INFO Using network IB").at(0).host, "");
  EXPECT_THAT(records("[see there] NCCL INFO Using network IB"), IsEmpty());
}

TEST(NcclLogPrefix, TrimsTheEndOfMessages) {
  EXPECT_EQ(records("it says `h:1:2 [0] NCCL INFO text`").at(0).message, "text");

  EXPECT_EQ(records("h:1:2 [0] NCCL INFO text\r").at(0).message, "text");
  EXPECT_EQ(records("h:1:2 [0] NCCL INFO text**").at(0).message, "text");
  EXPECT_EQ(records("h:1:2 [0] NCCL INFO text\x1b[0m").at(0).message, "text");
}

TEST(NcclLogPrefix, UnwrapsLinesOfLogCollectors) {
  EXPECT_EQ(unwrap_json_line(R"({"log":"h:1:2 [0] NCCL INFO say \"x\"\n","stream":"stdout"})").value(),
            "h:1:2 [0] NCCL INFO say \"x\"\n");
  EXPECT_EQ(unwrap_json_line(R"({"ts":1, "message": "a\nb"})").value(), "a\nb");
  EXPECT_FALSE(unwrap_json_line("{}").has_value());
  EXPECT_FALSE(unwrap_json_line("plain").has_value());
  EXPECT_TRUE(unwrap_json_line(R"({"log":"never closed)").has_value());
}

}  // namespace
}  // namespace topotune::parse
