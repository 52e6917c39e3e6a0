#include "emit/nccl_xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

#include "base/text.h"
#include "model/paths.h"
#include "parse/hwloc_xml.h"
#include "parse/nccl_strict.h"
#include "parse/nccl_topo_xml.h"

namespace topotune::emit {
namespace {

using model::PciKind;
using model::Topology;

// A random machine in NCCL's terms: 1-4 nodes, switch trees up to four deep, 1-72 GPUs, NICs, NVLink,
// NVSwitch or xGMI.
class Machine {
 public:
  explicit Machine(unsigned seed) : random_(seed) {}

  Topology make() {
    t_.tree_known = t_.nccl_classes = true;
    t_.cpu = model::CpuModel{"x86_64", "GenuineIntel", 6, 143};
    const int nodes = pick(1, 4);
    for (int n = 0; n < nodes; ++n) {
      CpuSet cpus;
      cpus.add_range(n * 40, n * 40 + 39);
      t_.numa.push_back({n, cpus, {}, {}});
      const int tops = pick(1, 4);
      for (int i = 0; i < tops; ++i) subtree("", n, pick(0, 3));
    }
    links();
    return t_;
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  std::string device(const std::string& parent, int node, PciKind kind, std::uint32_t class_code) {
    model::PciDevice d;
    d.id = fmt::format("0000:{:02x}:{:02x}.0", count_ / 32, count_ % 32);
    ++count_;
    d.parent = parent;
    d.root = fmt::format("cpu{}", node);
    d.kind = kind;
    d.class_code = class_code;
    d.numa = node;
    if (pick(0, 3) > 0) d.capable = {pick(0, 1) == 0 ? 16.0 : 32.0, 1 << pick(0, 4)};
    t_.pci.push_back(d);
    return d.id;
  }

  void subtree(const std::string& parent, int node, int depth) {
    if (t_.gpus.size() >= 72 || count_ > 4000) return;
    const auto at = depth > 0 ? device(parent, node, PciKind::bridge, 0x060400) : parent;
    const int leaves = pick(1, 3);
    for (int i = 0; i < leaves; ++i) pick(0, 1) == 0 ? gpu(at, node) : nic(at, node);
    for (int i = 0; depth > 0 && i < pick(0, 2); ++i) subtree(at, node, depth - 1);
  }

  void gpu(const std::string& parent, int node) {
    model::Gpu g;
    g.index = static_cast<int>(t_.gpus.size());
    g.id = fmt::format("GPU{}", g.index);
    g.bdf = device(parent, node, PciKind::gpu, 0x030200);
    g.sm = 90;
    g.gdr = pick(0, 1) == 1;
    g.numa = node;
    t_.gpus.push_back(g);
  }

  void nic(const std::string& parent, int node) {
    model::Nic n;
    n.index = static_cast<int>(t_.nics.size());
    n.id = fmt::format("NIC{}", n.index);
    n.name = fmt::format("mlx5_{}", n.index);
    n.numa = node;
    n.rate = GbitsPerSec{400};
    if (pick(0, 4) > 0) n.bdf = device(parent, node, PciKind::nic, 0x020700);
    n.is_virtual = !n.bdf;
    t_.nics.push_back(n);
  }

  void links() {
    const int fabric = pick(0, 2);
    for (auto& g : t_.gpus) {
      if (fabric == 1) g.links.push_back({"NVSwitch", pick(1, 18), false, {}});
      if (fabric != 2) continue;
      for (const auto& other : t_.gpus) {
        if (g.index < other.index && pick(0, 3) == 0) g.links.push_back({other.id, pick(1, 4), false, {}});
      }
    }
  }

  std::mt19937 random_;
  Topology t_;
  int count_ = 32;
};

void expect_equal_paths(const Topology& a, const Topology& b) {
  const auto left = model::paths_of(a), right = model::paths_of(b);
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i].a, right[i].a);
    EXPECT_EQ(left[i].b, right[i].b);
    EXPECT_EQ(left[i].type, right[i].type) << left[i].a << " " << left[i].b;
    EXPECT_EQ(left[i].nvlinks, right[i].nvlinks);
    EXPECT_EQ(left[i].nccl_type, right[i].nccl_type);
    EXPECT_EQ(left[i].bandwidth, right[i].bandwidth);
  }
}

TEST(NcclXml, RoundTripGivesEqualPaths) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const auto t = Machine(seed).make();
    const auto text = nccl_topo_xml(t);
    const auto back = parse::parse_nccl_topo_xml(text);
    ASSERT_TRUE(back) << text;
    EXPECT_TRUE(std::ranges::none_of(back->warnings, [](const auto& w) { return w.code != "no-devices"; }))
        << text;
    expect_equal_paths(t, *back);
    EXPECT_EQ(back->gpus.size(), t.gpus.size());
    for (std::size_t i = 0; i < t.numa.size(); ++i) EXPECT_EQ(back->numa[i].cpus, t.numa[i].cpus);
    EXPECT_EQ(back->cpu, t.cpu);
    EXPECT_EQ(nccl_topo_xml(*back), text) << "not stable, seed " << seed;
    if (HasFailure()) break;
  }
}

// NCCL's reader (src/graph/xml.cc): blanks, "\n" and "\r" between elements, attributes on the tag's line, one
// blank between.
TEST(NcclXml, IsInTheStrictForm) {
  const auto text = nccl_topo_xml(Machine(3).make());
  EXPECT_TRUE(text.starts_with("<system version=\"1\">\n"));
  EXPECT_EQ(text.find('\t'), std::string::npos);
  EXPECT_EQ(text.find("<?"), std::string::npos);
  EXPECT_EQ(text.find("<!"), std::string::npos);
  for (const auto line : lines(text)) {
    const auto tag = trim(line);
    EXPECT_TRUE(tag.starts_with("<") && tag.ends_with(">")) << line;
    EXPECT_EQ(tag.find("  "), std::string_view::npos) << line;
    EXPECT_LE(std::ranges::count(tag, '='), 16) << line;
  }
}

TEST(NcclXml, RealTreesGetNcclsShape) {
  const auto t =
      parse::parse_hwloc_xml(R"(<topology version="2.0"><object type="Machine" cpuset="0xf" nodeset="0x1">
<object type="NUMANode" os_index="0" cpuset="0xf" nodeset="0x1"/>
<object type="Bridge" bridge_type="0-1" bridge_pci="0000:[00-05]">
<object type="Bridge" bridge_type="1-1" pci_busid="0000:00:01.0" pci_type="0604 [8086:2030] [0:0]">
<object type="Bridge" bridge_type="1-1" pci_busid="0000:01:00.0" pci_type="0604 [1000:c010] [0:0]">
<object type="Bridge" bridge_type="1-1" pci_busid="0000:02:00.0" pci_type="0604 [1000:c010] [0:0]">
<object type="PCIDev" pci_busid="0000:03:00.0" pci_type="0302 [10de:20b0] [10de:1]"/></object>
<object type="Bridge" bridge_type="1-1" pci_busid="0000:02:01.0" pci_type="0604 [1000:c010] [0:0]">
<object type="PCIDev" pci_busid="0000:04:00.0" pci_type="0207 [15b3:101b] [15b3:1]">
<object type="OSDev" name="mlx5_0" osdev_type="3"/></object></object></object></object></object></object></topology>)");
  ASSERT_TRUE(t);
  const auto text = nccl_topo_xml(*t);
  EXPECT_NE(text.find("busid=\"0000:01:00.0\""),
            std::string::npos);  // the upstream port stands for the switch
  for (const char* port : {"0000:00:01.0", "0000:02:00.0", "0000:02:01.0"})
    EXPECT_EQ(text.find(port), std::string::npos) << port;
  const auto back = parse::parse_nccl_topo_xml(text);
  ASSERT_TRUE(back);
  const auto paths = model::paths_of(*back);
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_EQ(paths[0].type, model::PathType::pix);
}

std::string text_of(const char* file) {
  std::ifstream in(std::string(TOPOTUNE_TEST_DATA) + "/machines/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A topology that NCCL 2.28 itself wrote (NCCL_TOPO_DUMP_FILE) on two H200 in a virtual machine: read,
// written and read again it is the same machine, and NCCL's strict reader has nothing to say about what was
// written.
TEST(NcclXml, RoundTripOfADumpOfNcclItself) {
  const auto dump = text_of("h200x2-nccl-dump.xml");
  EXPECT_THAT(parse::nccl_problems(dump), testing::IsEmpty());
  const auto first = parse::parse_nccl_topo_xml(dump);
  ASSERT_TRUE(first);
  ASSERT_EQ(first->gpus.size(), 2u);
  const auto text = nccl_topo_xml(*first);
  EXPECT_THAT(parse::nccl_problems(text), testing::IsEmpty());
  const auto second = parse::parse_nccl_topo_xml(text);
  ASSERT_TRUE(second);
  ASSERT_EQ(second->gpus.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto &a = first->gpus[i], &b = second->gpus[i];
    EXPECT_EQ(a.bdf, b.bdf);
    EXPECT_EQ(a.sm, b.sm);
    EXPECT_EQ(a.gdr, b.gdr);
    EXPECT_EQ(a.numa, b.numa);
    EXPECT_EQ(a.nvlinks, 18);
    EXPECT_EQ(b.nvlinks, 18);
    const auto *port = model::find_pci(*first, *a.bdf), *again = model::find_pci(*second, *b.bdf);
    ASSERT_TRUE(port != nullptr && again != nullptr);
    EXPECT_EQ(port->capable.gts, again->capable.gts);
    EXPECT_EQ(port->capable.width, again->capable.width);
  }
  ASSERT_EQ(second->nics.size(), first->nics.size());
  EXPECT_EQ(second->nics[0].name, "eth0");
  ASSERT_TRUE(second->cpu);
  EXPECT_EQ(second->cpu->model, first->cpu->model);
  const auto before = model::paths_of(*first), after = model::paths_of(*second);
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].type, after[i].type);
    EXPECT_EQ(before[i].nvlinks, after[i].nvlinks);
  }
  EXPECT_EQ(nccl_topo_xml(*second), text) << "a second round changes nothing";
}

TEST(NcclXml, NamesCannotBreakOut) {
  auto t = Machine(1).make();
  model::Nic nic;
  nic.id = "NIC99";
  nic.index = 99;
  nic.numa = 0;
  nic.name = "a\"/><gpu dev=\"0\"/>\t\n" + std::string(400, 'x');
  t.nics.push_back(nic);
  const auto back = parse::parse_nccl_topo_xml(nccl_topo_xml(t));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->gpus.size(), t.gpus.size());
  EXPECT_EQ(back->nics.back().name->size(), 253U);
}

TEST(NcclXml, AMatrixHasNoTree) {
  Topology t;
  t.gpus.push_back({});
  EXPECT_EQ(nccl_topo_xml(t), "");
}

}  // namespace
}  // namespace topotune::emit
