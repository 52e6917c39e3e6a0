#include "base/cpuset.h"

#include <gtest/gtest.h>

#include "base/bdf.h"

namespace topotune {
namespace {

TEST(CpuSet, ListRoundTrip) {
  for (const char* text : {"", "0", "0-31,64-95", "1,3,5"}) EXPECT_EQ(parse_cpu_list(text)->to_list(), text);
  EXPECT_FALSE(parse_cpu_list("5-2"));
  EXPECT_FALSE(parse_cpu_list("0-70000"));
  EXPECT_FALSE(parse_cpu_list("0,,1"));
}

TEST(CpuSet, MaskWordsAreMostSignificantFirst) {
  EXPECT_EQ(parse_cpu_mask("ff,00000000")->to_list(), "32-39");
  EXPECT_EQ(parse_cpu_mask("0x0000ffff,,0xffffffff")->to_list(), "0-31,64-79");
  EXPECT_EQ(parse_cpu_mask("ffffff000000")->to_list(), "24-47");
  EXPECT_FALSE(parse_cpu_mask("xyz"));
  EXPECT_FALSE(parse_cpu_mask(""));
}

TEST(Bdf, ReadsEveryUsualForm) {
  EXPECT_EQ(canonical_bdf("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(canonical_bdf("1b:00.0"), "0000:1b:00.0");
  EXPECT_EQ(canonical_bdf("ffff:ff:01.0"), "ffff:ff:01.0");
  EXPECT_EQ(canonical_bdf("10000:e1:00.1"), "10000:e1:00.1");
  EXPECT_FALSE(parse_bdf("1b:00"));
  EXPECT_FALSE(parse_bdf("1b:40.0"));
}

}  // namespace
}  // namespace topotune
