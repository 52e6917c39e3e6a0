#include "parse/nvml_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace topotune::parse {
namespace {

using testing::Contains;

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
  EXPECT_EQ(probe->driver_version, "580.159.04");
  const auto& gpu = probe->gpus.at(0);
  EXPECT_EQ(gpu.bus_id, "0000:1b:00.0");
  EXPECT_EQ(gpu.sm, 90);
  EXPECT_EQ(gpu.mig, true);
  EXPECT_EQ(gpu.pcie_width, 8);
  EXPECT_EQ(gpu.pcie_replays, 4u);
  EXPECT_EQ(gpu.fabric.health_mask, 0xffffffffu);
  EXPECT_EQ(gpu.nvlink_count, 2);
  ASSERT_EQ(gpu.links.size(), 2u);
  EXPECT_EQ(gpu.links[0].gbytes_per_s, 26.562);
  EXPECT_EQ(gpu.links[0].remote_bus_id, "") << "a hidden NVSwitch has no address";
  EXPECT_EQ(gpu.links[1].active, false);
}

TEST(NvmlProbe, RefusalsKeepTheirText) {
  const auto probe = parse_nvml_probe(document(
      R"("gpus":[{"index":0,"name":{"error":"Not Supported"},"fabric":{"error":"Unknown Error"},"temperature_c":"hot"},
        {"index":1,"error":"GPU is lost"}])"));
  ASSERT_TRUE(probe);
  const auto& gpu = probe->gpus.at(0);
  EXPECT_FALSE(gpu.name);
  EXPECT_THAT(gpu.refused, Contains("name: Not Supported"));
  EXPECT_THAT(gpu.refused, Contains("fabric: Unknown Error"));
  EXPECT_FALSE(gpu.temperature_c);
  EXPECT_EQ(probe->gpus.at(1).error, "GPU is lost");
}

TEST(NvmlProbe, Pairs) {
  const auto probe = parse_nvml_probe(document(R"("p2p":[{"from":0,"to":1,"read":"CNS"},{"from":0},5])"));
  ASSERT_TRUE(probe);
  ASSERT_EQ(probe->p2p.size(), 1u);
  EXPECT_THAT(probe->p2p[0].status, testing::ElementsAre(testing::Pair("read", "CNS")));
}

TEST(NvmlProbe, OtherTextsAreRefused) {
  for (const auto* text :
       {"", "[]", "{}", "{\"schema\":\"other/1\"}", "{\"schema\":\"topotune.probe.nvml/1\"", "\xff"})
    EXPECT_FALSE(parse_nvml_probe(text)) << text;
}

TEST(NvmlProbe, NumbersOutOfRangeAreUnknown) {
  const auto probe = parse_nvml_probe(document(
      R"("gpu_count":-3,"gpus":[{"index":1e300,"pcie":{"gen":99999999999},"pci":{"vendor":70000},
        "nvlinks":[{"link":0,"active":1}]},7])"));
  ASSERT_TRUE(probe);
  EXPECT_FALSE(probe->gpu_count);
  EXPECT_EQ(probe->gpus[0].index, 0);
  EXPECT_FALSE(probe->gpus[0].pcie_gen);
  EXPECT_FALSE(probe->gpus[0].vendor);
  EXPECT_FALSE(probe->gpus[0].links[0].active);
}

TEST(NvmlProbe, DeepNestingIsNoProblem) {
  const std::string deep(200000, '[');
  EXPECT_FALSE(parse_nvml_probe(deep));
  EXPECT_TRUE(parse_nvml_probe(document("\"gpus\":" + deep + std::string(200000, ']'))));
}

}  // namespace
}  // namespace topotune::parse
