#include "parse/kfd.h"

#include <gtest/gtest.h>

namespace topotune::parse {
namespace {

TEST(Kfd, GpuNode) {
  const auto gpu = parse_kfd_node(
      "cpu_cores_count 0\nsimd_count 1216\nlocation_id 1288\ndomain 1\ngfx_target_version 90402\n");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->bdf, "0001:05:01.0");
  EXPECT_EQ(gpu->gfx, 942);
  EXPECT_EQ(parse_kfd_node("simd_count 8\nlocation_id 256\ngfx_target_version 90010\n")->gfx, 910);
}

TEST(Kfd, CpusAndOtherTextsAreNoGpu) {
  EXPECT_FALSE(parse_kfd_node("simd_count 0\nlocation_id 0\n"));
  EXPECT_FALSE(parse_kfd_node("simd_count 8\nlocation_id 99999999\n"));
  EXPECT_FALSE(parse_kfd_node(""));
}

TEST(Kfd, Links) {
  const auto link =
      parse_kfd_link("type 11\nnode_from 2\nnode_to 3\nmin_bandwidth 50000\nmax_bandwidth 200000\n");
  ASSERT_TRUE(link);
  EXPECT_TRUE(link->xgmi);
  EXPECT_EQ(link->to, 3);
  EXPECT_EQ(link->count, 4);
  EXPECT_EQ(link->gbytes_per_s, 50.0);
  EXPECT_FALSE(parse_kfd_link("type 2\nnode_to 0\n")->xgmi);
  EXPECT_EQ(parse_kfd_link("type 11\nnode_to 0\nmin_bandwidth 0\n")->gbytes_per_s, std::nullopt);
  EXPECT_FALSE(parse_kfd_link("type 11\n"));
}

}  // namespace
}  // namespace topotune::parse
