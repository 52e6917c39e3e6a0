#include "emit/matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emit/tree.h"

namespace topotune::emit {
namespace {

using model::Path;
using model::PathType;
using testing::HasSubstr;
using testing::Not;

model::Topology two_gpus_and_a_nic() {
  model::Topology t;
  for (int i = 0; i < 2; ++i) {
    model::Gpu gpu;
    gpu.id = "GPU" + std::to_string(i);
    gpu.index = i;
    gpu.numa = 0;
    gpu.cpus = parse_cpu_list("0-7");
    t.gpus.push_back(gpu);
  }
  model::Nic nic;
  nic.id = "NIC0";
  nic.name = "mlx5_0";
  nic.rate = GbitsPerSec{400};
  t.nics.push_back(nic);
  t.stated = {{"GPU0", "GPU1", PathType::nvl, 18, {}, "", {}}, {"GPU0", "NIC0", PathType::pix, {}, {}, "", {}},
              {"GPU1", "NIC0", std::nullopt, {}, {}, "", {}}};
  return t;
}

std::string matrix(const model::Topology& t, bool color = false) { return matrix_text(t, model::paths_of(t), color); }

TEST(Matrix, LooksLikeNvidiaSmi) {
  const auto text = matrix(two_gpus_and_a_nic());
  EXPECT_THAT(text, HasSubstr("GPU0   X    NV18  PIX   0-7           0\n"));
  EXPECT_THAT(text, HasSubstr("GPU1  NV18   X    ?     0-7           0\n"));
  EXPECT_THAT(text, HasSubstr("NIC0: mlx5_0 400 Gb/s"));
  EXPECT_THAT(text, HasSubstr("Nearest NICs: GPU0 PIX NIC0\n"));
  EXPECT_THAT(text, HasSubstr("?    = the input does not tell"));
}

TEST(Matrix, LegendHasOnlyWhatOccurs) {
  const auto text = matrix(two_gpus_and_a_nic());
  EXPECT_THAT(text, Not(HasSubstr("SYS")));
  EXPECT_THAT(text, HasSubstr("NV#  = NVLink"));
}

TEST(Matrix, ColourIsOnlyWhereItIsAskedFor) {
  EXPECT_THAT(matrix(two_gpus_and_a_nic()), Not(HasSubstr("\x1b")));
  EXPECT_THAT(matrix(two_gpus_and_a_nic(), true), HasSubstr("\x1b[1;32mNV18"));
}

TEST(Matrix, ForeignTextCannotReachTheTerminal) {
  auto t = two_gpus_and_a_nic();
  t.nics[0].name = "ml\x1b[31mx";
  EXPECT_THAT(matrix(t), Not(HasSubstr("\x1b")));
}

TEST(Matrix, ManyDevicesAreCountedNotPrinted) {
  model::Topology t;
  for (int i = 0; i < 40; ++i) {
    model::Gpu gpu;
    gpu.id = "GPU" + std::to_string(i);
    t.gpus.push_back(gpu);
  }
  EXPECT_THAT(matrix(t), HasSubstr("and 8 more devices"));
  EXPECT_THAT(matrix({}), HasSubstr("No GPU and no NIC."));
}

TEST(Tree, ShowsBridgesAndDegradedLinks) {
  auto t = two_gpus_and_a_nic();
  t.stated.clear();
  t.numa = {{0, parse_cpu_list("0-7"), 1ull << 30, {}}};
  const auto device = [](const char* id, const char* parent, model::PciKind kind) {
    model::PciDevice d;
    d.id = id;
    d.parent = parent;
    d.root = "0000:00";
    d.kind = kind;
    d.numa = 0;
    return d;
  };
  t.pci = {device("0000:00:01.0", "", model::PciKind::bridge), device("0000:01:00.0", "0000:00:01.0", model::PciKind::gpu),
           device("0000:00:02.0", "", model::PciKind::bridge)};
  t.pci[1].current = {2.5, 8};
  t.pci[1].capable = {32, 16};
  t.gpus[0].bdf = "0000:01:00.0";
  const auto text = tree_text(t, false);
  EXPECT_THAT(text, HasSubstr("NUMA node 0  CPUs 0-7  1.0 GiB\n  host bridge 0000:00\n    bridge  0000:00:01.0\n"
                              "      GPU0  0000:01:00.0  2.5 GT/s x8 of 32 GT/s x16\n"));
  EXPECT_THAT(text, HasSubstr("  GPU1\n"));            // no place in the tree, not lost
  EXPECT_THAT(text, Not(HasSubstr("0000:00:02.0")));  // leads to nothing
}

TEST(Matrix, ANodeWithoutCpusHasNone) {
  model::Topology t;
  t.numa = {{1, CpuSet{}, 2ull << 30, {}}};
  EXPECT_THAT(matrix(t), HasSubstr("NUMA node 1: CPUs none, 2.0 GiB\n"));
  EXPECT_THAT(tree_text(t, false), HasSubstr("NUMA node 1  CPUs none  2.0 GiB\n"));
}

TEST(Tree, CyclesEnd) {
  model::Topology t;
  model::PciDevice a;
  a.id = "a";
  a.parent = "b";
  a.kind = model::PciKind::gpu;
  model::PciDevice b;
  b.id = "b";
  b.parent = "a";
  t.pci = {a, b};
  EXPECT_FALSE(tree_text(t, false).empty());
}

}  // namespace
}  // namespace topotune::emit
