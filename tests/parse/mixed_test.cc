#include <gmock/gmock.h>

#include "parse/interrupts.h"
#include "parse/mixed_profile.h"
#include "parse/size.h"
#include "parse/step_log.h"

namespace topotune::parse {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Sizes, WholeNumbersWithUnits) {
  EXPECT_EQ(size_from("64K"), 65536u);
  EXPECT_EQ(size_from("1GiB"), 1u << 30);
  EXPECT_EQ(size_from("100"), 100u);
  for (const char* bad : {"", "K", "0", "-1", "1.5M", "65G", "1T", "99999999999999999999"})
    EXPECT_FALSE(size_from(bad)) << bad;
}

TEST(Durations, WithUnits) {
  EXPECT_DOUBLE_EQ(*duration_from("250ms"), 0.25);
  EXPECT_DOUBLE_EQ(*duration_from("20us"), 20e-6);
  EXPECT_DOUBLE_EQ(*duration_from("1.5s"), 1.5);
  EXPECT_DOUBLE_EQ(*duration_from("0"), 0);
  for (const char* bad : {"", "s", "5", "-1s", "nans", "infs", "3601s", "1m"})
    EXPECT_FALSE(duration_from(bad)) << bad;
}

const char* const kGood =
    "# a profile\n"
    "topotune mixed profile 1\n"
    "name own-one   # its name\n"
    "\n"
    "stream small op=all_reduce bytes=64K,1M every=2ms burst=4\n"
    "stream save op=checkpoint bytes=5G every=10s\n";

TEST(MixedProfile, Reads) {
  const auto profile = parse_mixed_profile(kGood);
  ASSERT_TRUE(profile) << profile.error().text;
  EXPECT_EQ(profile->name, "own-one");
  ASSERT_EQ(profile->streams.size(), 2u);
  const auto& small = profile->streams[0];
  EXPECT_EQ(small.op, "all_reduce");
  EXPECT_THAT(small.bytes, ElementsAre(65536, 1048576));
  EXPECT_DOUBLE_EQ(small.every_seconds, 2e-3);
  EXPECT_EQ(small.burst, 4);
  EXPECT_EQ(profile->streams[1].bytes.front(), std::size_t{5} << 30);
}

TEST(MixedProfile, EachKindOfBadLineIsNamed) {
  const std::string head = "topotune mixed profile 1\nname x\n";
  const std::string good = "stream a op=broadcast bytes=1M every=1s\n";
  const std::vector<std::tuple<std::string, int, std::string>> cases{
      {"", 1, "the first line is not"},
      {"topotune mixed profile 2\n", 1, "the first line is not"},
      {head, 2, "no stream"},
      {"topotune mixed profile 1\n" + good, 2, "no name"},
      {head + "name y\n", 3, "a name already"},
      {head + "strom a\n", 3, "not with 'strom'"},
      {head + "stream A op=broadcast bytes=1M every=1s\n", 3, "a name of small letters"},
      {head + "stream a op=broadcast bytes=1M\n", 3, "has no every="},
      {head + "stream a op=broadcast bytes=8 every=1s\n", 3, "'8' is no size"},
      {head + "stream a op=broadcast bytes=1M, every=1s\n", 3, "'' is no size"},
      {head + "stream a op=dance bytes=1M every=1s\n", 3, "'dance' is no operation"},
      {head + "stream a op=broadcast bytes=1M every=5\n", 3, "'5' is no time"},
      {head + "stream a op=broadcast bytes=1M every=1s burst=0\n", 3, "'0' is no number"},
      {head + "stream a op=broadcast bytes=1M every=1s speed=9\n", 3, "no 'speed'"},
      {head + "stream a op=broadcast op=broadcast bytes=1M every=1s\n", 3, "stands twice"},
      {head + "stream a quickly\n", 3, "is not KEY=VALUE"},
      {head + good + "\n" + good, 5, "two streams 'a'"},
  };
  for (const auto& [text, line, says] : cases) {
    const auto profile = parse_mixed_profile(text);
    ASSERT_FALSE(profile) << text;
    EXPECT_EQ(profile.error().line, line) << text;
    EXPECT_THAT(profile.error().text, HasSubstr(says)) << text;
  }
}

TEST(Interrupts, ColumnsFollowTheHead) {
  const auto table = parse_interrupts(
      "           CPU0       CPU2       \n"
      "  24:          5        700  PCI-MSIX-0000:00:03.0   1-edge      virtio1-input.0\n"
      " NMI:          0          0   Non-maskable interrupts\n"
      " ERR:          3\n");
  ASSERT_TRUE(table) << table.error().text;
  EXPECT_THAT(table->cpus, ElementsAre(0, 2));
  ASSERT_EQ(table->lines.size(), 3u);
  EXPECT_EQ(table->lines[0].id, "24");
  EXPECT_THAT(table->lines[0].counts, ElementsAre(5, 700));
  EXPECT_EQ(table->lines[0].name, "virtio1-input.0");
  EXPECT_THAT(table->lines[2].counts, ElementsAre(3));
}

TEST(Interrupts, SoftirqsHaveNoDescription) {
  const auto table = parse_interrupts("      CPU0  CPU1\n NET_RX:  1  2\n");
  ASSERT_TRUE(table) << table.error().text;
  EXPECT_EQ(table->lines[0].id, "NET_RX");
  EXPECT_EQ(table->lines[0].name, "");
}

TEST(Interrupts, WhatIsNoTableIsRefused) {
  for (const auto& [text, line] :
       std::vector<std::pair<std::string, int>>{{"", 1},
                                                {"hello\n", 1},
                                                {"CPU0 CPUx\n", 1},
                                                {"CPU0\n 24 5\n", 2},
                                                {"CPU0\n\n 24: -5 x\n", 3},
                                                {"CPU0 CPU1 CPU2\n 24: 5 6\n", 2}}) {
    const auto table = parse_interrupts(text);
    ASSERT_FALSE(table) << text;
    EXPECT_EQ(table.error().line, line) << text;
  }
}

const std::string kHead =
    "{\"schema\":\"topotune.step/1\",\"kind\":\"ddp\",\"op\":\"all_reduce\",\"framework\":\"torch "
    "2.9\",\"backend\":"
    "\"gloo\",\"rank\":0,\"ranks\":2}\n";

TEST(StepLog, Reads) {
  const auto log =
      parse_step_log(kHead +
                     "{\"step\":3,\"seconds\":0.5,\"compute_seconds\":0.3,\"dataloader_seconds\":null,"
                     "\"communication_bytes\":1048576,\"communication_calls\":4}\n");
  ASSERT_TRUE(log) << log.error().text;
  EXPECT_EQ(log->kind, "ddp");
  EXPECT_EQ(log->ranks, 2);
  ASSERT_EQ(log->steps.size(), 1u);
  EXPECT_DOUBLE_EQ(*log->steps[0].compute, 0.3);
  EXPECT_FALSE(log->steps[0].dataloader);
  EXPECT_FALSE(log->steps[0].exposed);
  EXPECT_DOUBLE_EQ(*log->steps[0].communication_bytes, 1048576);
}

TEST(StepLog, BadLinesAreNamed) {
  const std::vector<std::tuple<std::string, int, std::string>> cases{
      {"", 1, "no step"},
      {"hello\n", 1, "not a JSON object"},
      {"{\"schema\":\"other/1\"}\n", 1, "no topotune.step/1 head"},
      {"{\"schema\":\"topotune.step/1\",\"rank\":2,\"ranks\":2}\n", 1, "rank 2 of 2"},
      {kHead, 1, "no step"},
      {kHead + "{\"step\":0}\n", 2, "no 'seconds'"},
      {kHead + "{\"step\":-1,\"seconds\":1}\n", 2, "'step' is out of range"},
      {kHead + "{\"step\":0,\"seconds\":1,\"compute_seconds\":-1}\n", 2, "'compute_seconds' is out of range"},
      {kHead + "{\"step\":0,\"seconds\":1,\"compute_seconds\":\"x\"}\n", 2, "'compute_seconds' is no number"},
      {kHead + "\n{\"step\":0,\"seconds\":[1]}\n", 3, "flat JSON object"},
  };
  for (const auto& [text, line, says] : cases) {
    const auto log = parse_step_log(text);
    ASSERT_FALSE(log) << text;
    EXPECT_EQ(log.error().line, line) << text;
    EXPECT_THAT(log.error().text, HasSubstr(says)) << text;
  }
}

}  // namespace
}  // namespace topotune::parse
