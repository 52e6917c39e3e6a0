#include "parse/nccl_topo_xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/paths.h"

namespace topotune::parse {
namespace {

using model::PathType;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

model::Topology parse(std::string_view text) {
  auto topology = parse_nccl_topo_xml(text);
  EXPECT_TRUE(topology) << topology.error().text;
  return topology ? *topology : model::Topology{};
}

std::vector<std::string> codes(const model::Topology& t) {
  std::vector<std::string> out;
  for (const auto& warning : t.warnings) out.push_back(warning.code);
  return out;
}

const model::Path* between(const std::vector<model::Path>& paths, std::string_view a, std::string_view b) {
  for (const auto& path : paths) {
    if ((path.a == a && path.b == b) || (path.a == b && path.b == a)) return &path;
  }
  return nullptr;
}

std::optional<PathType> type(const model::Topology& t, std::string_view a, std::string_view b) {
  const auto paths = model::paths_of(t);
  const auto* path = between(paths, a, b);
  return path == nullptr ? std::nullopt : path->type;
}

// Two switches below node 0 (GPU and NIC each), one GPU directly below node 1.
constexpr std::string_view kBox = R"(<system version="1">
  <cpu numaid="0" affinity="0000000f" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" vendor="0x10de" device="0x20b2" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1">
          <nvlink target="0000:21:00.0" count="4" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x020700" link_speed="8.0 GT/s PCIe" link_width="8">
        <nic>
          <net name="mlx5_0" dev="0" speed="200000" port="1" guid="0x1f" gdr="1"/>
          <net name="mlx5_1" dev="1" speed="200000" port="2" guid="0x1f" gdr="1"/>
        </nic>
      </pci>
    </pci>
    <pci busid="0000:20:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:21:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="80" rank="1" gdr="1">
          <nvlink target="0000:11:00.0" count="2" tclass="0x030200"/>
        </gpu>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="000000f0">
    <pci busid="0000:31:00.0" class="0x030200" link_speed="" link_width="0"><gpu dev="2" sm="80" gdr="0"/></pci>
  </cpu>
</system>
)";

TEST(NcclTopoXml, ReadsDevices) {
  const auto t = parse(kBox);
  EXPECT_EQ(t.source.kind, model::SourceKind::nccl_topo_xml);
  EXPECT_TRUE(t.source.complete);
  EXPECT_THAT(codes(t), IsEmpty());
  ASSERT_EQ(t.numa.size(), 2U);
  EXPECT_EQ(t.numa[1].cpus->to_list(), "4-7");
  ASSERT_EQ(t.gpus.size(), 3U);
  EXPECT_EQ(t.gpus[0].id, "GPU0");
  EXPECT_EQ(t.gpus[0].bdf, "0000:11:00.0");
  EXPECT_EQ(t.gpus[0].pci_device, 0x20b2);
  EXPECT_EQ(t.gpus[0].sm, 80);
  EXPECT_EQ(t.gpus[0].nvlinks, 4);
  EXPECT_EQ(t.gpus[2].gdr, false);
  EXPECT_EQ(t.gpus[2].nvlinks, std::nullopt);
  ASSERT_EQ(t.nics.size(), 2U);
  EXPECT_EQ(t.nics[1].name, "mlx5_1");
  EXPECT_EQ(t.nics[1].bdf, "0000:12:00.0");
  EXPECT_EQ(t.nics[1].rate->value, 200);
  EXPECT_EQ(t.nics[1].guid, 0x1fU);
  EXPECT_FALSE(t.nics[1].is_virtual);
  EXPECT_EQ(t.cpu->vendor, "AuthenticAMD");
}

TEST(NcclTopoXml, ClassesAreNccls) {
  const auto t = parse(kBox);
  const auto paths = model::paths_of(t);
  const auto* nvl = between(paths, "GPU0", "GPU1");
  EXPECT_EQ(nvl->type, PathType::nvl);
  EXPECT_EQ(nvl->nvlinks, 2);  // the narrower direction
  EXPECT_EQ(nvl->bandwidth->value, 40);
  const auto* pix = between(paths, "GPU0", "NIC0");
  EXPECT_EQ(pix->type, PathType::pix);
  EXPECT_NEAR(pix->bandwidth->value, 7.877, 1e-3);  // the NIC's x8
  EXPECT_EQ(between(paths, "NIC0", "NIC1")->type, PathType::pix);
  EXPECT_EQ(between(paths, "GPU1", "NIC0")->type, PathType::phb);
  EXPECT_EQ(between(paths, "GPU2", "NIC0")->type, PathType::sys);
  EXPECT_EQ(between(paths, "GPU2", "NIC0")->bandwidth, std::nullopt);
}

TEST(NcclTopoXml, CascadedSwitchesArePxb) {
  const auto t = parse(R"(<system version="1"><cpu numaid="0">
    <pci busid="0000:01:00.0" class="0x060400"><pci busid="0000:02:00.0" class="0x060400">
      <pci busid="0000:03:00.0" class="0x030200"/></pci>
      <pci busid="0000:04:00.0" class="0x020000"/></pci></cpu></system>)");
  EXPECT_EQ(type(t, "GPU0", "NIC0"), PathType::pxb);
}

TEST(NcclTopoXml, FlattenedBroadcomCascadeIsSaid) {
  const auto t = parse(R"(<system version="1"><cpu numaid="0">
    <pci busid="0000:01:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x0072">
      <pci busid="0000:02:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x1003">
        <pci busid="0000:03:00.0" class="0x030200"/></pci>
      <pci busid="0000:04:00.0" class="0x020000"/></pci></cpu></system>)");
  const auto paths = model::paths_of(t);
  EXPECT_EQ(between(paths, "GPU0", "NIC0")->type, PathType::pxb);
  EXPECT_EQ(between(paths, "GPU0", "NIC0")->nccl_type, "PIX");
}

TEST(NcclTopoXml, LinksToSwitchesAddUp) {
  std::string gpus;
  for (int i = 0; i < 3; ++i) {
    gpus += "<pci busid=\"0000:0" + std::to_string(i + 1) + ":00.0\" class=\"0x030200\"><gpu dev=\"" +
            std::to_string(i) +
            "\" sm=\"90\"><nvlink target=\"0000:a0:00.0\" count=\"10\" tclass=\"0x068000\"/>"
            "<nvlink target=\"0000:a1:00.0\" count=\"" +
            std::string(i == 2 ? "6" : "8") + "\" tclass=\"0x068000\"/></gpu></pci>";
  }
  const auto t = parse("<system version=\"1\"><cpu numaid=\"0\">" + gpus + "</cpu></system>");
  const auto paths = model::paths_of(t);
  EXPECT_EQ(between(paths, "GPU0", "GPU1")->nvlinks, 18);
  EXPECT_EQ(between(paths, "GPU1", "GPU2")->nvlinks, 16);
  EXPECT_NEAR(between(paths, "GPU0", "GPU1")->bandwidth->value, 370.8, 1e-6);
  EXPECT_EQ(model::islands_of(t, paths).size(), 1U);
  EXPECT_EQ(model::shape_of(t, paths).name, "NVSwitch");
  EXPECT_EQ(t.switches.size(), 2U);
}

TEST(NcclTopoXml, SwitchWithoutAddressIsASwitch) {
  const std::string gpu =
      "<gpu sm=\"100\"><nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>";
  const auto t =
      parse("<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\">" + gpu +
            "<pci busid=\"0000:02:00.0\" class=\"0x030200\">" + gpu + "</cpu></system>");
  EXPECT_EQ(type(t, "GPU0", "GPU1"), PathType::nvl);
  EXPECT_EQ(t.gpus[0].links[0].to, "NVSwitch");
}

TEST(NcclTopoXml, LinksToGpusOutsideAreNoErrorAndJoinNothing) {
  const auto t = parse(
      R"(<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0" class="0x030200"><gpu dev="0" sm="70">
    <nvlink target="0000:99:00.0" count="2" tclass="0x030200"/></gpu></pci>
    <pci busid="0000:02:00.0" class="0x030200"><gpu dev="1" sm="70">
    <nvlink target="0000:99:00.0" count="2" tclass="0x030200"/></gpu></pci></cpu></system>)");
  EXPECT_THAT(codes(t), IsEmpty());
  EXPECT_EQ(t.gpus[0].nvlinks, 2);
  EXPECT_EQ(type(t, "GPU0", "GPU1"), PathType::phb);
}

TEST(NcclTopoXml, LinkToItselfJoinsNothingAndIsSaid) {
  const auto t = parse(
      R"(<system version="1"><cpu numaid="0"><pci busid="0001:00:00.0" class="0x030200"><gpu dev="0" sm="80">
    <nvlink target="0001:00:00.0" count="12" tclass="0x030200"/></gpu></pci></cpu></system>)");
  EXPECT_THAT(codes(t), ElementsAre("self-nvlink"));
  EXPECT_THAT(t.gpus[0].links, IsEmpty());
}

TEST(NcclTopoXml, SkeletonCountsDevicesByClass) {
  const auto t = parse(R"(<system version="1"><cpu numaid="0">
    <pci busid="0001:00:00.0" class="0x030200"/><pci busid="0002:00:00.0" class="0x020700"/>
    <pci busid="0003:00:00.0" class="0x010802"/><pci busid="0004:00:00.0"/></cpu></system>)");
  EXPECT_EQ(t.gpus.size(), 1U);
  EXPECT_EQ(t.nics.size(), 1U);
  EXPECT_EQ(t.nics[0].name, std::nullopt);
  EXPECT_THAT(codes(t), ElementsAre("no-class"));
  EXPECT_NE(t.warnings[0].text.find("0004:00:00.0"), std::string::npos);
}

TEST(NcclTopoXml, VirtualInterfaces) {
  const auto t = parse(R"(<system version="1">
    <cpu numaid="0"><nic><net name="veth1" dev="1" speed="10000" gdr="0"/></nic>
      <pci busid="0000:01:00.0" class="0x030000"><gpu dev="0" sm="86"/></pci>
      <pci busid="0000:02:00.0" class="0x020000"><nic><net name="eno1" dev="0" speed="1000"/></nic></pci></cpu>
    <cpu numaid="1"><nic><net name="veth1" dev="1" speed="10000" gdr="0"/></nic></cpu></system>)");
  ASSERT_EQ(t.nics.size(), 2U);
  EXPECT_FALSE(t.nics[0].is_virtual);
  EXPECT_TRUE(t.nics[1].is_virtual);
  EXPECT_EQ(t.nics[1].numa, std::nullopt);  // it stands under both
  EXPECT_EQ(type(t, "GPU0", "NIC1"), std::nullopt);
}

TEST(NcclTopoXml, VirtualInterfaceMeetsGpusInItsCpu) {
  const auto t = parse(R"(<system version="1"><cpu numaid="2"><nic><net name="br0" dev="0"/></nic>
      <pci busid="0000:01:00.0" class="0x030000"><gpu dev="0" sm="86"/></pci></cpu></system>)");
  EXPECT_EQ(type(t, "GPU0", "NIC0"), PathType::phb);
}

TEST(NcclTopoXml, AbsurdSpeedsAreUnknown) {
  const auto t = parse(R"(<system version="1"><cpu numaid="0"><nic><net name="a" dev="0" speed="4294967295"/>
    <net name="b" dev="1" speed="-1"/><net name="c" dev="2" speed="800000"/></nic></cpu></system>)");
  EXPECT_EQ(t.nics[0].rate, std::nullopt);
  EXPECT_EQ(t.nics[1].rate, std::nullopt);
  EXPECT_EQ(t.nics[2].rate->value, 800);
  EXPECT_THAT(codes(t), ElementsAre("nic-speed"));
}

TEST(NcclTopoXml, MasksThatCannotBeTrue) {
  const auto t = parse(
      R"(<system version="1"><cpu numaid="0" affinity="0000ffff,0000ffff"><nic><net name="a"/></nic></cpu>
    <cpu numaid="1" affinity="0000ffff,ffff0000"/><cpu numaid="2" affinity="zz"/></system>)");
  EXPECT_THAT(codes(t), ElementsAre("affinity-malformed", "affinity-overlap"));
  EXPECT_EQ(t.numa[2].cpus, std::nullopt);
}

TEST(NcclTopoXml, CutOffFileKeepsWhatIsWhole) {
  const auto whole = std::string(kBox);
  const auto t = parse(std::string_view(whole).substr(0, whole.find("<nvlink target=\"0000:11")));
  EXPECT_FALSE(t.source.complete);
  EXPECT_THAT(codes(t), ElementsAre("truncated"));
  EXPECT_EQ(t.gpus.size(), 2U);
  EXPECT_EQ(type(t, "GPU0", "GPU1"), PathType::nvl);  // told by the half that is there
}

TEST(NcclTopoXml, EveryCutIsReadOrRefused) {
  for (std::size_t n = 0; n < kBox.size(); ++n) {
    const auto t = parse_nccl_topo_xml(kBox.substr(0, n));
    if (!t) continue;
    EXPECT_EQ(t->source.complete, n + 1 == kBox.size()) << n;  // only the last line end may be missing
    model::paths_of(*t);
  }
}

TEST(NcclTopoXml, RcclHiveWithXgmi) {
  const auto t = parse(R"(<system version="2"><cpu numaid="0">
    <pci busid="0000:01:00.0" class="0x120000" vendor="0x1002"><gpu dev="0" sm="304" gcn="gfx942" rank="0" gdr="1">
      <xgmi target="0000:02:00.0" count="1" tclass="0x120000"/></gpu></pci>
    <pci busid="0000:02:00.0" class="0x120000" vendor="0x1002"><gpu dev="1" sm="304" gcn="gfx942:sramecc+" rank="1" gdr="1">
      <xgmi target="0000:01:00.0" count="1" tclass="0x120000"/><xgmi target="0000:03:00.0" count="1" tclass="0x120000"/></gpu></pci>
    <pci busid="0000:03:00.0" class="0x120000" vendor="0x1002"><gpu dev="2" sm="304" gcn="gfx942" rank="2" gdr="1">
      <xgmi target="0000:02:00.0" count="1" tclass="0x120000"/></gpu></pci></cpu></system>)");
  EXPECT_EQ(t.source.kind, model::SourceKind::rccl_topo_xml);
  EXPECT_EQ(t.gpus[1].sm, 942);
  const auto paths = model::paths_of(t);
  EXPECT_EQ(between(paths, "GPU0", "GPU1")->type, PathType::xgmi);
  EXPECT_EQ(between(paths, "GPU0", "GPU1")->nvlinks, 1);
  EXPECT_EQ(between(paths, "GPU0", "GPU2")->type, PathType::phb);
  EXPECT_EQ(between(paths, "GPU0", "GPU2")->nccl_type, "NVB");
  EXPECT_EQ(model::islands_of(t, paths).size(), 1U);
}

TEST(NcclTopoXml, SeveralMachinesOfOneNvlinkDomain) {
  const auto host = [](const char* hash, const char* ranks) {
    return std::string("<cpu host_hash=\"") + hash +
           "\" numaid=\"0\" arch=\"arm64\"><pci busid=\"0008:01:00.0\" class=\"0x030200\">"
           "<gpu dev=\"0\" sm=\"100\" rank=\"" +
           ranks +
           "\"><nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/>"
           "<c2c bw=\"44712\" count=\"10\"/></gpu></pci>"
           "<pci busid=\"0000:01:00.0\" class=\"0x020700\"><nic><net name=\"mlx5_0\" dev=\"" +
           ranks + "\"/></nic></pci></cpu>";
  };
  const auto t = parse("<system version=\"1\">" + host("0xa", "0") + host("0xb", "1") + "</system>");
  EXPECT_THAT(codes(t), ElementsAre("several-machines"));
  ASSERT_EQ(t.gpus.size(), 2U);
  EXPECT_EQ(t.gpus[1].bdf, "0008:01:00.0");
  EXPECT_EQ(t.gpus[1].c2c->count, 10);
  const auto paths = model::paths_of(t);
  EXPECT_EQ(between(paths, "GPU0", "GPU1")->type, PathType::nvl);
  EXPECT_EQ(between(paths, "GPU0", "NIC0")->type, PathType::phb);
  EXPECT_EQ(between(paths, "GPU0", "NIC0")->nccl_type, "P2C");
  EXPECT_EQ(between(paths, "GPU1", "NIC1")->type, PathType::phb);
  EXPECT_EQ(between(paths, "GPU1", "NIC0")->type, std::nullopt);  // another machine
}

TEST(NcclTopoXml, PeerLinkBetweenSwitchesStaysOffTheHostBridge) {
  const auto t = parse(R"(<system version="1"><cpu numaid="0">
    <pci busid="0000:01:00.0" class="0x060400"><pcilink target="0000:05:00.0"/><pci busid="0000:02:00.0" class="0x030200"/></pci>
    <pci busid="0000:05:00.0" class="0x060400"><pci busid="0000:06:00.0" class="0x020700"/></pci></cpu></system>)");
  EXPECT_EQ(type(t, "GPU0", "NIC0"), PathType::pxb);
}

TEST(NcclTopoXml, NumbersGivenTwiceAreMadeDifferent) {
  const auto t = parse(R"(<system version="1"><cpu numaid="0">
    <pci busid="0000:01:00.0" class="0x030200"><gpu dev="0" sm="80"/></pci>
    <pci busid="0000:02:00.0" class="0x030200"><gpu dev="0" sm="80"/></pci></cpu></system>)");
  EXPECT_EQ(t.gpus[1].id, "GPU1");
  EXPECT_THAT(codes(t), Contains("duplicate-dev"));
}

TEST(NcclTopoXml, Recognition) {
  EXPECT_TRUE(looks_like_nccl_topo_xml("<!-- x -->\n<system version=\"1\">"));
  EXPECT_TRUE(looks_like_nccl_topo_xml("<cpu numaid=\"0\">"));
  EXPECT_FALSE(looks_like_nccl_topo_xml("<graphs version=\"1\">"));
  EXPECT_FALSE(looks_like_nccl_topo_xml("<system><thing/></system>"));
  EXPECT_FALSE(looks_like_nccl_topo_xml("system version"));
  EXPECT_FALSE(parse_nccl_topo_xml("<topology/>"));
}

}  // namespace
}  // namespace topotune::parse
