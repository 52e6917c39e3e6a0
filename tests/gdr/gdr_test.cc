#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "gdr/remedy.h"
#include "gdr/suite.h"

namespace topotune::gdr {
namespace {

using model::Machine;
using model::RdmaPort;
using testing::HasSubstr;

RdmaPort port(const std::string& device, const std::string& layer = "Ethernet") {
  RdmaPort out;
  out.device = device;
  out.state = "ACTIVE";
  out.link_layer = layer;
  out.gbits_per_s = 400;
  out.software = false;
  return out;
}

// A switch with GPU0 and mlx5_0 below it; GPU1 and mlx5_1 at another host bridge of PCIe 4.
model::Topology topology() {
  model::Topology t;
  t.tree_known = true;
  const auto device = [&](std::string id, std::string parent, std::string root, model::PciKind kind,
                          double gts) {
    model::PciDevice d;
    d.id = std::move(id), d.parent = std::move(parent), d.root = std::move(root), d.kind = kind;
    d.current = {gts, 16};
    t.pci.push_back(std::move(d));
  };
  device("0000:10:00.0", "", "0000:10", model::PciKind::bridge, 32);
  device("0000:11:00.0", "0000:10:00.0", "0000:10", model::PciKind::bridge, 32);
  device("0000:12:00.0", "0000:11:00.0", "0000:10", model::PciKind::gpu, 32);
  device("0000:13:00.0", "0000:11:00.0", "0000:10", model::PciKind::nic, 32);
  device("0000:20:00.0", "", "0000:20", model::PciKind::gpu, 32);
  device("0000:30:00.0", "", "0000:30", model::PciKind::nic, 8);
  for (int i = 0; i < 2; ++i) {
    model::Gpu gpu;
    gpu.index = i, gpu.id = "GPU" + std::to_string(i), gpu.bdf = i == 0 ? "0000:12:00.0" : "0000:20:00.0";
    t.gpus.push_back(gpu);
    model::Nic nic;
    nic.index = i, nic.id = "NIC" + std::to_string(i), nic.name = "mlx5_" + std::to_string(i);
    nic.bdf = i == 0 ? "0000:13:00.0" : "0000:30:00.0";
    t.nics.push_back(nic);
  }
  return t;
}

TEST(Expected, TheNarrowestOfPortAndLinks) {
  const auto t = topology();
  const auto a = port("mlx5_0"), b = port("mlx5_1");
  const auto alone = expected_of(t, {a, a, ""});
  ASSERT_TRUE(alone);
  EXPECT_DOUBLE_EQ(alone->high, 50);  // 400 Gb/s, PCIe 5 x16 gives more
  EXPECT_DOUBLE_EQ(alone->low, 35);
  EXPECT_THAT(alone->why, HasSubstr("mlx5_0 400 Gb/s"));
  const auto both = expected_of(t, {a, b, ""});
  ASSERT_TRUE(both);
  EXPECT_NEAR(both->high, 15.75, 0.01);  // PCIe 3 x16 of mlx5_1
  EXPECT_THAT(both->why, HasSubstr("mlx5_1 PCIe 8 GT/s x16"));
}

TEST(Expected, GpuMemoryOnlyBelowOneSwitch) {
  const auto t = topology();
  const auto a = port("mlx5_0"), b = port("mlx5_1");
  EXPECT_TRUE(expected_of(t, {a, a, "GPU0"}));
  EXPECT_FALSE(expected_of(t, {a, a, "GPU1"}));
  EXPECT_FALSE(expected_of(t, {b, b, "GPU0"}));
  EXPECT_EQ(class_of(t, "mlx5_0", "GPU0"), model::PathType::pix);
  EXPECT_FALSE(class_of(t, "mlx5_7", "GPU0"));
}

TEST(Expected, NothingForSoftwareAndUnknownRates) {
  const auto t = topology();
  auto soft = port("mlx5_0"), unknown = port("mlx5_0");
  soft.software = true;
  unknown.gbits_per_s.reset();
  EXPECT_FALSE(expected_of(t, {soft, soft, ""}));
  EXPECT_FALSE(expected_of(t, {unknown, unknown, ""}));
}

TEST(Ports, ActiveOnesByName) {
  Machine m;
  m.ports = {port("mlx5_0"), port("mlx5_1"), port("mlx5_2")};
  m.ports[1].state = "DOWN";
  EXPECT_EQ(ports_of(m, {}).size(), 2u);
  EXPECT_EQ(ports_of(m, {"mlx5_2:1"}).size(), 1u);
  EXPECT_TRUE(ports_of(m, {"mlx5_1"}).empty());
}

std::vector<std::string> names(const std::vector<Ends>& ends) {
  std::vector<std::string> out;
  for (const auto& [a, b] : ends) out.push_back(a->device + b->device);
  return out;
}

TEST(Ends, SelfThenRing) {
  const auto a = port("a"), b = port("b"), c = port("c"), ib = port("i", "InfiniBand");
  EXPECT_THAT(names(ends_of({&a}, false)), testing::ElementsAre("aa"));
  EXPECT_THAT(names(ends_of({&a, &b}, false)), testing::ElementsAre("aa", "bb", "ab"));
  EXPECT_THAT(names(ends_of({&a, &b, &c}, false)), testing::ElementsAre("aa", "bb", "cc", "ab", "bc", "ca"));
  EXPECT_THAT(names(ends_of({&a, &b}, true)), testing::ElementsAre("aa", "bb", "ab", "ba"));
  EXPECT_THAT(names(ends_of({&a, &ib}, true)), testing::ElementsAre("aa", "ii"));
  EXPECT_TRUE(ends_of({}, true).empty());
}

TEST(Gid, RoutableRoceV2First) {
  auto p = port("mlx5_0");
  p.gids = {{0, "fe80:0000:0000:0000:0000:0000:0000:0001", "IB/RoCE v1", ""},
            {1, "fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2", ""},
            {2, "0000:0000:0000:0000:0000:ffff:0a00:0001", "IB/RoCE v1", ""},
            {3, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2", ""}};
  EXPECT_EQ(gid_index_of(p), 3);
  p.gids.pop_back();
  EXPECT_EQ(gid_index_of(p), 1);
  auto ib = port("mlx5_0", "InfiniBand");
  ib.lid = 7;
  EXPECT_EQ(gid_index_of(ib), -1);
  ib.lid = 0;
  EXPECT_EQ(gid_index_of(ib), 0);
}

TEST(Remedy, ByStepAndError) {
  Machine m;
  m.modules = model::Fact<std::map<std::string, std::string>>::of({{"mlx5_core", ""}}, "/proc/modules");
  EXPECT_THAT(remedy_for({"ibv_reg_mr", EFAULT, ""}, true, m), HasSubstr("modprobe nvidia-peermem (GDR01)"));
  m.modules.value->emplace("nvidia_peermem", "");
  EXPECT_THAT(remedy_for({"ibv_reg_mr", EFAULT, ""}, true, m), HasSubstr("(GDR02)"));
  EXPECT_THAT(remedy_for({"ibv_reg_mr", ENOMEM, ""}, true, m), HasSubstr("BAR1"));
  m.memlock = model::Fact<model::MemoryLimit>::of({65536, 65536}, "limits");
  EXPECT_THAT(remedy_for({"ibv_reg_mr", ENOMEM, ""}, true, m), HasSubstr("ulimit -l unlimited (KERN01)"));
  EXPECT_THAT(remedy_for({"ibv_reg_dmabuf_mr", EOPNOTSUPP, ""}, true, m), HasSubstr("takes no DMA-BUF"));
  EXPECT_THAT(remedy_for({"completion", 10, ""}, true, m), HasSubstr("ACS"));
  EXPECT_THAT(remedy_for({"completion", 10, ""}, false, m), testing::Not(HasSubstr("ACS")));
  EXPECT_THAT(remedy_for({"open", EACCES, ""}, false, m), HasSubstr("no right"));
  EXPECT_THAT(remedy_for({"dma-buf export", 801, ""}, true, m), HasSubstr("open kernel modules"));
}

TEST(Words, NameTheStepOnce) {
  EXPECT_EQ(words_of({"ibv_reg_mr", 14, "ibv_reg_mr: Bad address"}), "ibv_reg_mr: Bad address (errno 14)");
  EXPECT_EQ(words_of({"connect", 110, "ibv_modify_qp to RTR: timed out"}),
            "connect: ibv_modify_qp to RTR: timed out (errno 110)");
  EXPECT_EQ(words_of({"completion", 12, "retries"}), "completion: retries (status 12)");
}

model::Measurement rate(const std::string& memory, double value, const std::string& type) {
  model::Measurement m;
  m.name = "gdr.write";
  m.unit = "gbytes_per_s";
  m.params = {{"src", "mlx5_0:1"}, {"dst", "mlx5_0:1"}, {"memory", memory}, {"bytes", std::int64_t{1048576}}};
  m.extra = {{"path_class", type}};
  m.median = value;
  return m;
}

TEST(Judge, GpuMemoryAgainstHostMemory) {
  EXPECT_TRUE(judge_gpu_memory({rate("host", 48, ""), rate("GPU0", 40, "PIX")}).empty());
  const auto slow =
      judge_gpu_memory({rate("host", 48, ""), rate("GPU0", 20, "PXB"), rate("GPU1", 20, "SYS")});
  ASSERT_EQ(slow.size(), 2u);
  EXPECT_EQ(slow[0].severity, model::Severity::warn);
  EXPECT_THAT(slow[0].text, HasSubstr("42 % of what the NIC does with host memory"));
  EXPECT_EQ(slow[1].severity, model::Severity::info);
  EXPECT_TRUE(judge_gpu_memory({rate("GPU0", 20, "PIX")}).empty());
}

}  // namespace
}  // namespace topotune::gdr
