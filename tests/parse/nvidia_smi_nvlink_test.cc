#include "parse/nvidia_smi_nvlink.h"

#include <gtest/gtest.h>

#include "parse/nvidia_smi_p2p.h"

namespace topotune::parse {
namespace {

TEST(Nvlink, ReadsSpeedsAndInactiveLinks) {
  const auto out = parse_nvidia_smi_nvlink(
      "GPU 0: X (UUID: GPU-a)\n\t Link 0: 25.5 GB/s\n\t Link 1: <inactive>\n"
      "GPU 1: X (UUID: GPU-b)\n\t Link 0: 25.5 GB/s\n\t Link 1: 20 GB/s\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->gpus.size(), 2u);
  const auto& gpu = out->gpus[0];
  EXPECT_EQ(gpu.name, "X");
  EXPECT_EQ(gpu.uuid, "GPU-a");
  EXPECT_TRUE(gpu.has_status);
  EXPECT_EQ(gpu.links.at(0).speed->value, 25.5);
  EXPECT_EQ(gpu.links.at(1).active, false);
  EXPECT_EQ(gpu.links.at(1).line, 3);
  EXPECT_FALSE(out->gpus[1].cut);
}

TEST(Nvlink, AnEndOfTheTextIsNoLostLink) {
  const auto fewer = parse_nvidia_smi_nvlink(
      "GPU 0: X (UUID: a)\n Link 0: 25 GB/s\n Link 1: 25 GB/s\nGPU 1: X (UUID: b)\n Link 0: 25 GB/s\n");
  EXPECT_TRUE(fewer->gpus[1].cut);
  const auto half = parse_nvidia_smi_nvlink("GPU 0: X (UUID: a)\n Link 0: 25 GB/s\n Link 1: 25.7");
  EXPECT_TRUE(half->gpus[0].cut);
  EXPECT_EQ(half->gpus[0].links.size(), 1u);
}

TEST(Nvlink, JoinsSeveralOutputsOfOneGpu) {
  const auto out = parse_nvidia_smi_nvlink(
      "GPU 0: X (UUID: a)\n Link 0: 25 GB/s\n"
      "GPU 0: X (UUID: a)\n Link 0: Remote Device 00000000:07:00.0: Link 46\n"
      "GPU 0: X (UUID: a)\n Link 0: Replay Errors: 3\n Link 0: Recovery Errors: 0\n"
      "GPU 0: X (UUID: a)\n Link 0, P2P is supported: true\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->gpus.size(), 1u);
  const auto& link = out->gpus[0].links.at(0);
  EXPECT_EQ(link.active, true);
  EXPECT_EQ(link.remote_bdf, "0000:07:00.0");
  EXPECT_EQ(link.remote_link, 46);
  EXPECT_EQ(link.errors.at("Replay Errors"), 3u);
  EXPECT_EQ(link.capabilities.at("P2P is supported"), "true");
}

TEST(Nvlink, KnowsHiddenEndsAndModelsWithoutNvlink) {
  const auto out = parse_nvidia_smi_nvlink(
      "GPU 0: X (UUID: a)\n Link 0: Remote Device FFFFFFFF:FF:FF.0: Link 0\n"
      "GPU 1: Y (UUID: b)\nDevice does not have or support Nvlink\n"
      "GPU 2: X (UUID: c)\nNVML: Unable to retrieve NVLink information as all links are inActive\n");
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->gpus[0].links.at(0).remote_hidden);
  EXPECT_EQ(out->gpus[0].links.at(0).remote_bdf, std::nullopt);
  EXPECT_TRUE(out->gpus[1].unsupported);
  EXPECT_TRUE(out->gpus[2].all_inactive);
}

TEST(Nvlink, ReadsTheListOfGpus) {
  const auto out =
      parse_nvidia_smi_nvlink("GPU 3: X (UUID: GPU-q)\n  MIG 1g.10gb     Device  0: (UUID: MIG-r)\n");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->gpus[0].index, 3);
  EXPECT_TRUE(out->gpus[0].mig);
  EXPECT_FALSE(out->gpus[0].has_status);
  EXPECT_FALSE(looks_like_nvidia_smi_nvlink("GPU 3: something else"));
}

TEST(P2p, ReadsMatricesWithTheirCapability) {
  const auto out = parse_nvidia_smi_p2p(
      "# nvidia-smi topo -p2p r\n \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tCNS\tX\n"
      "# nvidia-smi topo -p2p n\n \tGPU0\tGPU1\n GPU0\tX\tNS\n GPU1\tNS\tX\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->size(), 2u);
  EXPECT_EQ((*out)[0].capability, "read");
  EXPECT_EQ((*out)[1].capability, "nvlink");
  ASSERT_EQ((*out)[0].cells.size(), 2u);
  EXPECT_EQ((*out)[0].cells[1].from, 1);
  EXPECT_EQ((*out)[0].cells[1].to, 0);
  EXPECT_EQ((*out)[0].cells[1].status, "CNS");
  EXPECT_EQ((*out)[0].cells[1].line, 4);
}

TEST(P2p, TakesTheCommandOfTheSection) {
  const auto out = parse_nvidia_smi_p2p("GPU0 GPU1\nGPU0 X U\n", "nvidia-smi topo -p2p w");
  ASSERT_TRUE(out);
  EXPECT_EQ((*out)[0].capability, "write");
}

TEST(P2p, AHeadingNamesTheCommandToo) {
  const auto out = parse_nvidia_smi_p2p("GPU peer-access matrix (topo -p2p rw)\nGPU0 GPU1\nGPU0 X CNS\n");
  ASSERT_TRUE(out);
  EXPECT_EQ((*out)[0].capability, "read");
}

TEST(P2p, IsNoPathMatrix) {
  EXPECT_FALSE(looks_like_nvidia_smi_p2p("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-3\n"));
  EXPECT_FALSE(looks_like_nvidia_smi_p2p("\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n"));
}

TEST(Nvlink, AHeadingWithoutUuidCountsWhereLinksFollow) {
  const std::string text =
      "GPU 0: X\nNVML: Unable to retrieve NVLink information as all links are inActive\n"
      "GPU 1: X\n\t Link 0: 25 GB/s\n";
  EXPECT_TRUE(looks_like_nvidia_smi_nvlink(text));
  const auto out = parse_nvidia_smi_nvlink(text);
  ASSERT_TRUE(out);
  ASSERT_EQ(out->gpus.size(), 2u);
  EXPECT_TRUE(out->gpus[0].all_inactive);
  EXPECT_EQ(out->gpus[0].uuid, std::nullopt);
  EXPECT_EQ(out->gpus[1].links.size(), 1u);
  EXPECT_FALSE(looks_like_nvidia_smi_nvlink("GPU 0: X\nGPU 1: X\n\nNvidia driver version: 550\n"));
  EXPECT_FALSE(parse_nvidia_smi_nvlink("GPU 0: X\nother\n Link 0: 25 GB/s\n"));
}

TEST(Nvlink, OnlyAnInstanceOfTheListTellsMig) {
  const auto out = parse_nvidia_smi_nvlink(
      "GPU 0: X (UUID: GPU-a)\n    MIG Mode\n        Current : N/A\n"
      "GPU 1: X (UUID: GPU-b)\n  MIG 1g.5gb      Device  0: (UUID: MIG-c)\n");
  ASSERT_EQ(out->gpus.size(), 2u);
  EXPECT_FALSE(out->gpus[0].mig);
  EXPECT_TRUE(out->gpus[1].mig);
}

}  // namespace
}  // namespace topotune::parse
