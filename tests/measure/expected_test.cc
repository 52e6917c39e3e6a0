#include "measure/expected.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "data/embedded.h"

namespace topotune::measure {
namespace {

constexpr std::size_t kWhole = 512u << 20;

model::Topology two_gpus(const char* name, int sm, double per_link) {
  model::Topology t;
  for (int i = 0; i < 2; ++i) {
    model::Gpu gpu;
    gpu.id = fmt::format("GPU{}", i);
    gpu.index = i;
    gpu.name = name;
    gpu.sm = sm;
    gpu.bdf = fmt::format("0000:0{}:00.0", i + 1);
    gpu.nvlinks = 18;
    gpu.links = {{fmt::format("GPU{}", 1 - i), 18, false, GBytesPerSec{per_link}, true}};
    model::PciDevice device;
    device.id = *gpu.bdf;
    device.current = {32.0, 16};
    device.capable = {32.0, 16};
    t.pci.push_back(device);
    t.gpus.push_back(gpu);
  }
  return t;
}

TEST(Expected, H200OverEighteenLinks) {
  const auto t = two_gpus("NVIDIA H200", 90, 26.562);
  const ExpectedValues expected(t);
  const auto e = expected.p2p("write", "ce", "GPU0", "GPU1", kWhole);
  ASSERT_TRUE(e);
  EXPECT_NEAR(e->low, 393.7, 0.5);
  EXPECT_NEAR(e->high, 397.5, 0.5);
  EXPECT_EQ(e->why, "18 links x 26.562 GB/s x 0.8235-0.8315");
  EXPECT_THAT(e->source, testing::HasSubstr("nvbandwidth"));
}

TEST(Expected, AShortCopyMayTakeLongerToStart) {
  const auto t = two_gpus("NVIDIA H200", 90, 26.562);
  const ExpectedValues expected(t);
  const auto e = expected.p2p("read", "ce", "GPU0", "GPU1", kWhole / 2);
  ASSERT_TRUE(e);
  EXPECT_LT(e->low, 389.9);  // as measured with 256 MiB
  EXPECT_GT(e->low, 388.0);
  EXPECT_THAT(e->why, testing::HasSubstr("up to 5.0 us more for a short copy"));
  EXPECT_LT(expected.p2p("read", "ce", "GPU0", "GPU1", 1u << 20)->low, 100);
  EXPECT_EQ(expected.p2p("read", "ce", "GPU0", "GPU1", 16 * kWhole)->low,
            expected.p2p("read", "ce", "GPU0", "GPU1", kWhole)->low);
}

TEST(Expected, AnUnknownArchitectureIsWide) {
  const auto t = two_gpus("NVIDIA Z900", 130, 100);
  const auto e = ExpectedValues(t).p2p("write", "ce", "GPU0", "GPU1", kWhole);
  ASSERT_TRUE(e);
  EXPECT_LT(e->low / e->high, 0.8);
  EXPECT_THAT(e->why, testing::HasSubstr("wide: not measured"));
}

TEST(Expected, NothingWithoutLinks) {
  auto t = two_gpus("NVIDIA H200", 90, 26.562);
  for (auto& gpu : t.gpus) gpu.links.clear(), gpu.nvlinks = 0;
  const ExpectedValues expected(t);
  EXPECT_FALSE(expected.p2p("write", "ce", "GPU0", "GPU1", kWhole));
  EXPECT_FALSE(expected.p2p("write", "ce", "GPU0", "GPU9", kWhole));
}

TEST(Expected, HostCopiesFollowThePcieLink) {
  auto t = two_gpus("NVIDIA H200", 90, 26.562);
  const auto e = ExpectedValues(t).host("h2d", "GPU0");
  ASSERT_TRUE(e);
  EXPECT_LE(e->low, 55.4);
  EXPECT_GE(e->high, 55.4);
  // x8 of x16: half of it. An idle link's lower speed does not count.
  t.pci[0].current = {2.5, 8};
  const auto half = ExpectedValues(t).host("h2d", "GPU0");
  EXPECT_NEAR(half->high, e->high / 2, 0.1);
}

TEST(Expected, TheNarrowestLinkAboveCounts) {
  auto t = two_gpus("NVIDIA H200", 90, 26.562);
  model::PciDevice port;
  port.id = "0000:00:01.0";
  port.current = port.capable = {16.0, 16};
  t.pci.push_back(port);
  t.pci[0].parent = port.id;
  const auto rate = ExpectedValues(t).pcie_of("GPU0");
  EXPECT_EQ(rate->why, "PCIe 16 GT/s x16");
}

TEST(EfficiencyFile, EachRowIsWhole) {
  const auto rows = lines(data::efficiency_tsv());
  ASSERT_GT(rows.size(), 10u);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto f = split(rows[i], '\t');
    ASSERT_EQ(f.size(), 9u) << rows[i];
    const auto low = parse_double(f[5]), high = parse_double(f[6]);
    ASSERT_TRUE(low && high) << rows[i];
    EXPECT_LT(*low, *high) << rows[i];
    EXPECT_LE(*high, 1.0) << rows[i];
    EXPECT_FALSE(f[8].empty()) << rows[i];
  }
}

TEST(EfficiencyFile, AnotherModelOfTheNameIsNotThisOne) {
  const auto h200 = efficiency_of(90, "NVIDIA H200", "nvlink", "write", "ce");
  const auto nvl = efficiency_of(90, "NVIDIA H200 NVL", "nvlink", "write", "ce");
  EXPECT_NE(h200->low, nvl->low);
}

}  // namespace
}  // namespace topotune::measure
