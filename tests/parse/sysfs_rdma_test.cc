#include "parse/sysfs_rdma.h"

#include <gtest/gtest.h>

namespace topotune::parse {
namespace {

TEST(SysfsRdma, States) {
  EXPECT_EQ(parse_numbered_word("4: ACTIVE\n"), "ACTIVE");
  EXPECT_EQ(parse_numbered_word("5: LinkUp"), "LinkUp");
  EXPECT_EQ(parse_numbered_word("ACTIVE"), std::nullopt);
  EXPECT_EQ(parse_numbered_word("x: ACTIVE"), std::nullopt);
  EXPECT_EQ(parse_numbered_word("4:"), std::nullopt);
}

TEST(SysfsRdma, Rates) {
  EXPECT_EQ(parse_rate("400 Gb/sec (4X NDR)\n"), 400.0);
  EXPECT_EQ(parse_rate("2.5 Gb/sec (1X SDR)"), 2.5);
  EXPECT_EQ(parse_rate("0 Gb/sec (4X SDR)"), std::nullopt);
  EXPECT_EQ(parse_rate("99999 Gb/sec"), std::nullopt);
  EXPECT_EQ(parse_rate("400 GB/sec"), std::nullopt);
}

TEST(SysfsRdma, Gids) {
  EXPECT_EQ(parse_gid("FE80:0000:0000:0000:5054:00ff:fe00:0010\n"),
            "fe80:0000:0000:0000:5054:00ff:fe00:0010");
  EXPECT_EQ(parse_gid("0000:0000:0000:0000:0000:0000:0000:0000\n"), std::nullopt);
  EXPECT_EQ(parse_gid("fe80::1"), std::nullopt);
  EXPECT_EQ(parse_gid("fe80:0000:0000:0000:5054:00ff:fe00-0010"), std::nullopt);
}

TEST(SysfsRdma, LidsAndCounters) {
  EXPECT_EQ(parse_lid("0x12\n"), 18);
  EXPECT_EQ(parse_lid("0x0\n"), 0);
  EXPECT_EQ(parse_lid("none"), std::nullopt);
  EXPECT_EQ(parse_counter("123\n"), 123u);
  EXPECT_EQ(parse_counter("N/A (no PMA)\n"), std::nullopt);
}

TEST(SysfsRdma, MtuOfRoce) {
  EXPECT_EQ(roce_mtu(1500), 1024);
  EXPECT_EQ(roce_mtu(4096), 2048);
  EXPECT_EQ(roce_mtu(4192), 4096);
  EXPECT_EQ(roce_mtu(9000), 4096);
  EXPECT_EQ(roce_mtu(100), std::nullopt);
}

}  // namespace
}  // namespace topotune::parse
