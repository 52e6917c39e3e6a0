#include "parse/nvml_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace topotune::parse {
namespace {

using testing::HasSubstr;

std::string document(const std::string& inside) {
  return R"({"schema":"topotune.probe.nvml/1",)" + inside + "}";
}

TEST(NvmlProbe, ReadsAGpu) {
  const auto probe =
      parse_nvml_probe(document(R"("driver_version":"580.159.04","gpu_count":1,"gpus":[{"index":0,
    "pci":{"bus_id":"00000000:1B:00.0","vendor":4318,"device":9013},"name":"NVIDIA H200","compute_capability":[9,0],
    "mig":{"current":true},"pcie":{"gen":5,"gen_max":5,"width":8,"width_max":16,"replays":4},
    "fabric":{"state":3,"status":0,"clique_id":1,"cluster_uuid":"ab","health_mask":4294967295},
    "clock_event_reasons":8,"nvlink_count":2,
    "nvlinks":[{"link":0,"active":true,"gbytes_per_s":26.562,"remote_type":"switch","remote_bus_id":"FFFFFFFF:FF:FF.0"},
               {"link":1,"active":false}]}])"));
  ASSERT_TRUE(probe) << probe.error().text;
  EXPECT_EQ(*probe->driver_version, "580.159.04");
  const auto& gpu = probe->gpus.at(0);
  EXPECT_EQ(*gpu.bdf, "0000:1b:00.0");
  EXPECT_EQ(*gpu.capability_major, 9);
  EXPECT_EQ(*gpu.mig, true);
  EXPECT_EQ(*gpu.pcie_width, 8);
  EXPECT_EQ(*gpu.pcie_replays, 4u);
  EXPECT_EQ(*gpu.fabric_health_mask, 0xffffffffu);
  ASSERT_EQ(gpu.links.size(), 2u);
  EXPECT_EQ(*gpu.links[0].gbytes_per_s, 26.562);
  EXPECT_FALSE(gpu.links[0].remote_bdf) << "a hidden NVSwitch has no address";
  EXPECT_FALSE(*gpu.links[1].active);
}

TEST(NvmlProbe, RefusalsKeepTheirText) {
  const auto probe = parse_nvml_probe(document(
      R"("gpus":[{"index":0,"name":{"error":"Not Supported"},"fabric":{"error":"Unknown Error"},"temperature_c":"hot",
        "nvlinks":[{"link":3,"error":"GPU is lost"}]},{"index":1,"error":"GPU is lost"}])"));
  ASSERT_TRUE(probe);
  const auto& gpu = probe->gpus.at(0);
  EXPECT_EQ(gpu.name.why, "Not Supported");
  EXPECT_EQ(gpu.fabric_state.why, "Unknown Error");
  EXPECT_THAT(gpu.temperature_c.why, HasSubstr("temperature_c"));
  EXPECT_EQ(gpu.utilisation.why, "not asked");
  EXPECT_THAT(gpu.link_errors, testing::ElementsAre("link 3: GPU is lost"));
  EXPECT_EQ(probe->gpus.at(1).error, "GPU is lost");
}

TEST(NvmlProbe, Pairs) {
  const auto probe = parse_nvml_probe(
      document(R"("p2p":[{"from":0,"to":1,"read":"CNS","common_ancestor":"SYS"},{"from":0},5])"));
  ASSERT_TRUE(probe);
  ASSERT_EQ(probe->pairs.size(), 1u);
  EXPECT_EQ(*probe->pairs[0].read, "CNS");
  EXPECT_EQ(*probe->pairs[0].common_ancestor, "SYS");
}

TEST(NvmlProbe, OtherTextsAreRefused) {
  for (const auto* text :
       {"", "[]", "{}", "{\"schema\":\"other/1\"}", "{\"schema\":\"topotune.probe.nvml/1\"", "\xff"})
    EXPECT_FALSE(parse_nvml_probe(text)) << text;
}

TEST(NvmlProbe, AbsurdCountsAreRefused) {
  std::string gpus;
  for (int i = 0; i < 1025; ++i) gpus += i == 0 ? "{}" : ",{}";
  EXPECT_EQ(parse_nvml_probe(document("\"gpus\":[" + gpus + "]")).error().code, Errc::too_large);
}

TEST(NvmlProbe, NumbersOutOfRangeAreUnknown) {
  const auto probe = parse_nvml_probe(document(
      R"("gpu_count":-3,"gpus":[{"index":1e300,"pcie":{"gen":99999999999},"nvlinks":[{"link":0,"active":1,"gbytes_per_s":-1}]}])"));
  ASSERT_TRUE(probe);
  EXPECT_FALSE(probe->gpu_count);
  EXPECT_EQ(probe->gpus[0].index, 0);
  EXPECT_FALSE(probe->gpus[0].pcie_gen);
  EXPECT_FALSE(probe->gpus[0].links[0].active);
  EXPECT_FALSE(probe->gpus[0].links[0].gbytes_per_s);
}

TEST(NvmlProbe, DeepNestingIsNoProblem) {
  const std::string deep = std::string(200000, '[');
  EXPECT_FALSE(parse_nvml_probe(deep));
  EXPECT_TRUE(parse_nvml_probe(document("\"gpus\":" + deep + std::string(200000, ']'))));
}

TEST(NvmlProbe, Generations) {
  EXPECT_EQ(gts_of_generation(5), 32.0);
  EXPECT_EQ(gts_of_generation(0), std::nullopt);
  EXPECT_EQ(gts_of_generation(7), std::nullopt);
}

}  // namespace
}  // namespace topotune::parse
