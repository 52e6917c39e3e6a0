#include "model/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topotune::model {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

PciDevice device(std::string id, std::string parent, std::string root, std::optional<int> numa = 0) {
  PciDevice d;
  d.id = std::move(id);
  d.parent = std::move(parent);
  d.root = std::move(root);
  d.numa = numa;
  return d;
}

void add_gpu(Topology& t, std::string bdf) {
  Gpu gpu;
  gpu.index = static_cast<int>(t.gpus.size());
  gpu.id = "GPU" + std::to_string(gpu.index);
  gpu.bdf = std::move(bdf);
  t.gpus.push_back(gpu);
}

void add_nic(Topology& t, std::string bdf) {
  Nic nic;
  nic.index = static_cast<int>(t.nics.size());
  nic.id = "NIC" + std::to_string(nic.index);
  nic.bdf = std::move(bdf);
  t.nics.push_back(nic);
}

// A real tree: root port, switch of two levels of ports, and devices on three host bridges.
Topology real_tree() {
  Topology t;
  t.tree_known = true;
  t.numa = {{0, {}, {}, {}}, {1, {}, {}, {}}};
  t.pci = {
      device("rp", "", "0000:00"),    device("up", "rp", "0000:00"),   device("d0", "up", "0000:00"),
      device("d1", "up", "0000:00"),  device("up2", "d1", "0000:00"),  device("d2", "up2", "0000:00"),
      device("g0", "d0", "0000:00"),  device("n0", "d1", "0000:00"),   device("g1", "d2", "0000:00"),
      device("rp2", "", "0000:00"),   device("n1", "rp2", "0000:00"),  device("rp3", "", "0000:40"),
      device("n2", "rp3", "0000:40"), device("rp4", "", "0000:80", 1), device("n3", "rp4", "0000:80", 1)};
  add_gpu(t, "g0");
  add_gpu(t, "g1");
  for (const char* bdf : {"n0", "n1", "n2", "n3"}) add_nic(t, bdf);
  return t;
}

Path between(const std::vector<Path>& paths, std::string_view a, std::string_view b) {
  for (const auto& path : paths) {
    if (path.a == a && path.b == b) return path;
  }
  ADD_FAILURE() << a << " " << b;
  return {};
}

TEST(Paths, NvidiaSmisClassesOfARealTree) {
  const auto paths = paths_of(real_tree());
  EXPECT_EQ(paths.size(), 15U);
  EXPECT_EQ(between(paths, "GPU0", "NIC0").type, PathType::pix);
  EXPECT_EQ(between(paths, "GPU0", "GPU1").type, PathType::pxb);
  EXPECT_EQ(between(paths, "GPU1", "NIC0").type, PathType::pxb);
  EXPECT_EQ(between(paths, "GPU0", "NIC1").type, PathType::phb);
  EXPECT_EQ(between(paths, "GPU0", "NIC2").type, PathType::node);
  EXPECT_EQ(between(paths, "GPU0", "NIC2").nccl_type, "PHB");
  EXPECT_EQ(between(paths, "GPU0", "NIC3").type, PathType::sys);
  EXPECT_EQ(between(paths, "GPU0", "NIC3").nccl_type, std::nullopt);
}

TEST(Paths, PairsAreTheBestClassOnly) {
  const auto t = real_tree();
  const auto pairs = pairs_of(t, paths_of(t));
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_THAT(pairs[0].nics, ElementsAre("NIC0"));
  EXPECT_EQ(pairs[0].type, PathType::pix);
  EXPECT_EQ(pairs[1].type, PathType::pxb);
}

TEST(Paths, UnknownNodesOfTwoHostBridgesAreUnknown) {
  auto t = real_tree();
  for (auto& d : t.pci) d.numa.reset();
  EXPECT_EQ(between(paths_of(t), "GPU0", "NIC2").type, std::nullopt);
  t.numa.pop_back();  // one node: it can only be that
  EXPECT_EQ(between(paths_of(t), "GPU0", "NIC2").type, PathType::node);
}

TEST(Paths, BandwidthIsTheNarrowestLinkBelowTheMeetingPoint) {
  auto t = real_tree();
  for (auto& d : t.pci) d.capable = {16, 16};
  const auto narrow = [&](std::string_view id, int width) {
    for (auto& d : t.pci) d.capable.width = d.id == id ? width : d.capable.width;
  };
  narrow("up", 4);  // above the switch: of no consequence below it
  narrow("d0", 8);
  const auto paths = paths_of(t);
  EXPECT_NEAR(between(paths, "GPU0", "NIC0").bandwidth->value, 15.754, 1e-3);
  EXPECT_EQ(between(paths, "GPU0", "NIC0").why,
            "PCIe 16 GT/s x8 of d0, the narrowest link of the path after line coding");
  EXPECT_NEAR(between(paths, "GPU0", "NIC1").bandwidth->value, 7.877, 1e-3);
  narrow("g0", 16);
  t.pci[6].capable = {};  // g0's own end unknown: the port above is the same wire
  EXPECT_NEAR(between(paths_of(t), "GPU0", "NIC0").bandwidth->value, 15.754, 1e-3);
  t.pci[2].capable = {};
  EXPECT_EQ(between(paths_of(t), "GPU0", "NIC0").bandwidth, std::nullopt);
}

TEST(Paths, CyclesAndMissingParentsEnd) {
  Topology t;
  t.tree_known = true;
  t.pci = {device("a", "b", "r"), device("b", "a", "r"), device("g0", "a", "r"), device("g1", "g1", "r"),
           device("g2", "gone", "r")};
  for (const char* bdf : {"g0", "g1", "g2", "absent"}) add_gpu(t, bdf);
  const auto paths = paths_of(t);
  EXPECT_EQ(paths.size(), 6U);
  EXPECT_EQ(between(paths, "GPU1", "GPU2").type, PathType::phb);
  EXPECT_EQ(between(paths, "GPU0", "GPU3").type, std::nullopt);
}

TEST(Paths, ManyDevicesAreLimitedAndSaid) {
  Topology t;
  t.tree_known = true;
  for (int i = 0; i < 10000; ++i) {
    const auto id = std::to_string(i);
    t.pci.push_back(device(id, i == 0 ? "" : std::to_string(i - 1), "r"));
    add_gpu(t, id);
  }
  EXPECT_EQ(paths_of(t).size(), kMaxPathDevices * (kMaxPathDevices - 1) / 2);
  ASSERT_TRUE(paths_limit(t));
  EXPECT_EQ(paths_limit(t)->code, "too-many-devices");
  EXPECT_FALSE(paths_limit(real_tree()));
}

void join(Topology& t, std::size_t a, std::size_t b, int count, bool xgmi = false) {
  t.gpus[a].links.push_back({t.gpus[b].id, count, xgmi, {}});
  t.gpus[b].links.push_back({t.gpus[a].id, count, xgmi, {}});
}

Topology flat(int gpus) {
  Topology t;
  t.tree_known = true;
  for (int i = 0; i < gpus; ++i) {
    t.pci.push_back(device("g" + std::to_string(i), "", "0000:00"));
    add_gpu(t, "g" + std::to_string(i));
    t.gpus.back().sm = 70;
  }
  return t;
}

TEST(Paths, TwoHopsOverLinksAreNcclsNvb) {
  auto t = flat(3);
  join(t, 0, 1, 2);
  join(t, 1, 2, 1);
  const auto paths = paths_of(t);
  EXPECT_EQ(between(paths, "GPU0", "GPU1").bandwidth->value, 40);
  EXPECT_EQ(between(paths, "GPU0", "GPU1").why, "2 links x 20 GB/s (NCCL's figure for sm 70)");
  EXPECT_EQ(between(paths, "GPU0", "GPU2").type, PathType::phb);
  EXPECT_EQ(between(paths, "GPU0", "GPU2").nccl_type, "NVB");
  EXPECT_THAT(islands_of(t, paths), ElementsAre(ElementsAre("GPU0", "GPU1", "GPU2")));
}

TEST(Paths, LinksWithUnknownEndsDecideNothing) {
  auto t = flat(2);
  for (auto& gpu : t.gpus) gpu.links.push_back({"", 12, false, {}});
  EXPECT_EQ(between(paths_of(t), "GPU0", "GPU1").type, std::nullopt);
}

TEST(Paths, RawLinkRateServesWhereTheGpuIsUnknown) {
  auto t = flat(2);
  t.gpus[0].sm.reset();
  t.gpus[1].sm.reset();
  for (auto& gpu : t.gpus) gpu.links.push_back({"NVSwitch", 18, false, GBytesPerSec{26.562}});
  const auto path = between(paths_of(t), "GPU0", "GPU1");
  EXPECT_NEAR(path.bandwidth->value, 371, 0.1);
  EXPECT_EQ(path.why, "18 links x 26.562 GB/s x 0.776");
}

TEST(Paths, ChipToChipLinksCarryWhatTheGpusOwnPcieLinkDoesNot) {
  auto t = real_tree();
  for (auto& one : t.pci) one.capable = {32, one.id == "g0" ? 1 : 16};
  t.gpus[0].c2c = C2cLink{10, GBytesPerSec{40}};
  EXPECT_NEAR(between(paths_of(t), "GPU0", "NIC1").bandwidth->value, 63, 0.1) << "the NIC's link";
  EXPECT_NEAR(between(paths_of(t), "GPU0", "NIC0").bandwidth->value, 3.9, 0.1) << "below one switch";
  t.gpus[0].c2c = C2cLink{1, GBytesPerSec{40}};
  const auto path = between(paths_of(t), "GPU0", "NIC1");
  EXPECT_EQ(path.bandwidth->value, 40);
  EXPECT_EQ(path.why, "1 C2C links x 40 GB/s");
  t.gpus[0].c2c = C2cLink{10, {}};
  EXPECT_EQ(between(paths_of(t), "GPU0", "NIC1").bandwidth, std::nullopt);
}

TEST(Paths, AStatedMatrixIsKept) {
  Topology t;
  for (int i = 0; i < 3; ++i) add_gpu(t, "");
  for (auto& gpu : t.gpus) gpu.bdf.reset();
  t.stated = {{"GPU1", "GPU0", PathType::nvl, 4, {}, "", {}},
              {"GPU0", "GPU2", PathType::node, {}, {}, "", {}}};
  const auto paths = paths_of(t);
  ASSERT_EQ(paths.size(), 3U);
  EXPECT_EQ(paths[0].a, "GPU0");  // document order, whatever the matrix said
  EXPECT_EQ(paths[0].type, PathType::nvl);
  EXPECT_EQ(paths[0].nvlinks, 4);
  EXPECT_EQ(paths[1].type, PathType::node);
  EXPECT_EQ(paths[1].nccl_type, "PHB");
  EXPECT_EQ(paths[2].type, std::nullopt);
}

TEST(Shape, HasAWordForEveryFabric) {
  const auto shape = [](const Topology& t) { return shape_of(t, paths_of(t)).name; };
  EXPECT_EQ(shape(flat(4)), "unknown") << "the input tells no links";
  EXPECT_EQ(between(paths_of(flat(2)), "GPU0", "GPU1").bandwidth, std::nullopt);
  auto none = flat(4);
  for (auto& gpu : none.gpus) gpu.nvlinks = 0;
  EXPECT_EQ(shape(none), "none");
  auto pairs = flat(4);
  join(pairs, 0, 1, 4);
  join(pairs, 2, 3, 4);
  EXPECT_EQ(shape(pairs), "bridged pairs");
  auto ring = pairs;
  join(ring, 1, 2, 1);
  join(ring, 3, 0, 1);
  EXPECT_EQ(shape(ring), "ring");
  auto mesh = ring;
  join(mesh, 0, 2, 1);
  EXPECT_EQ(shape(mesh), "partial mesh");
  join(mesh, 1, 3, 1);
  EXPECT_EQ(shape(mesh), "full mesh");
  auto hives = flat(6);
  for (std::size_t i = 0; i < 3; ++i) {
    join(hives, i, (i + 1) % 3, 1, true);
    join(hives, 3 + i, 3 + (i + 1) % 3, 1, true);
  }
  EXPECT_EQ(shape(hives), "islands");
  auto cube = flat(8);
  for (std::size_t half : {0U, 4U}) {
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = i + 1; j < 4; ++j) join(cube, half + i, half + j, 1);
    }
  }
  for (std::size_t i = 0; i < 4; ++i) join(cube, i, i + 4, 2);
  EXPECT_EQ(shape(cube), "hybrid cube mesh");
}

TEST(Shape, MoreLinksThanAGpuHasAreASwitch) {
  Topology t;
  for (int i = 0; i < 8; ++i) add_gpu(t, "");
  for (std::size_t i = 0; i < 8; ++i) {
    t.gpus[i].bdf.reset();
    for (std::size_t j = i + 1; j < 8; ++j)
      t.stated.push_back({t.gpus[i].id, t.gpus[j].id, PathType::nvl, 18, {}, "", {}});
  }
  EXPECT_EQ(shape_of(t, paths_of(t)).name, "NVSwitch");
}

}  // namespace
}  // namespace topotune::model
