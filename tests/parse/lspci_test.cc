#include "parse/lspci.h"

#include <gtest/gtest.h>

#include "parse/lspci_tree.h"

namespace topotune::parse {
namespace {

constexpr std::string_view kVerbose =
    R"(40:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] GPP Bridge (prog-if 00 [Normal decode])
	Bus: primary=40, secondary=41, subordinate=43, sec-latency=0
	Capabilities: [58] Express (v2) Root Port (Slot+), MSI 00
		DevCap:	MaxPayload 512 bytes, PhantFunc 0
			MaxPayload 256 bytes, MaxReadReq 1024 bytes
		LnkCap:	Port #0, Speed 32GT/s, Width x16, ASPM L1
		LnkSta:	Speed 16GT/s (downgraded), Width x8 (downgraded)
		LnkCap2: Supported Link Speeds: 2.5-64GT/s
	Capabilities: [2a0 v1] Access Control Services
		ACSCap:	SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
		ACSCtl:	SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd- EgressCtrl- DirectTrans-
	Kernel driver in use: pcieport

0001:41:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2330] (rev a1)
	Subsystem: NVIDIA Corporation Device [10de:16c1]
	Physical Slot: 7
	NUMA node: 1
	IOMMU group: 12
	Capabilities: [100 v1] Address Translation Service (ATS)
		ATSCtl:	Enable-, Smallest Translation Unit: 00
	Kernel driver in use: vfio-pci
)";

TEST(Lspci, ReadsDetails) {
  const auto out = parse_lspci(kVerbose);
  ASSERT_TRUE(out);
  ASSERT_EQ(out->devices.size(), 2u);
  const auto& bridge = out->devices[0];
  EXPECT_EQ(bridge.bdf.to_string(), "0000:40:01.1");
  EXPECT_EQ(bridge.class_code, 0x060400u);
  EXPECT_EQ(bridge.secondary, 0x41);
  EXPECT_EQ(bridge.subordinate, 0x43);
  EXPECT_EQ(bridge.port_type, "Root Port");
  EXPECT_EQ(bridge.capable, (model::PcieLink{32.0, 16}));
  EXPECT_EQ(bridge.current, (model::PcieLink{16.0, 8}));
  EXPECT_EQ(bridge.max_read_request, 1024);
  EXPECT_EQ(bridge.max_payload, 256);
  EXPECT_EQ(bridge.acs_control, acs::kSourceValidation | acs::kRequestRedirect | acs::kCompletionRedirect);
  EXPECT_EQ(bridge.acs_line, 11);
  const auto& gpu = out->devices[1];
  EXPECT_EQ(gpu.bdf.to_string(), "0001:41:00.0");
  EXPECT_EQ(gpu.class_code, 0x030200u);
  EXPECT_EQ(gpu.vendor, 0x10de);
  EXPECT_EQ(gpu.device, 0x2330);
  EXPECT_EQ(gpu.subsystem_device, 0x16c1);
  EXPECT_EQ(gpu.slot, "7");
  EXPECT_EQ(gpu.numa, 1);
  EXPECT_EQ(gpu.iommu_group, 12);
  EXPECT_EQ(gpu.ats_enabled, false);
  EXPECT_EQ(gpu.driver, "vfio-pci");
  EXPECT_EQ(gpu.acs_control, std::nullopt);
}

TEST(Lspci, KnowsNamesAndNumericLists) {
  const auto out = parse_lspci(
      "1a:00.0 Ethernet controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"
      "1b:00.0 0207: 15b3:101b (rev 01)\n"
      "1c:00.0 3D controller: NVIDIA Corporation Device 2330 (rev ff)\n\t!!! Unknown header type 7f\n");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->devices[0].vendor, 0x15b3);
  EXPECT_EQ(out->devices[0].device, 0x1021);
  EXPECT_EQ(out->devices[1].class_code, 0x020700u);
  EXPECT_EQ(out->devices[1].device, 0x101b);
  EXPECT_EQ(out->devices[2].device, 0x2330);
  EXPECT_TRUE(out->devices[2].all_ones);
}

TEST(Lspci, KeepsAcsLinesWithoutADevice) {
  const auto out =
      parse_lspci("\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir- UpstreamFwd-\nACSCtl: 0x001d\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->loose_acs.size(), 1u);
  EXPECT_EQ(out->loose_acs[0].control, acs::kSourceValidation | acs::kRequestRedirect);
  EXPECT_FALSE(parse_lspci("ACSCtl: 0x001d\n"));
}

TEST(Lspci, DetailsOfAnUnknownClassAreNotTheDeviceBefore) {
  const auto out = parse_lspci(
      "1a:00.0 Ethernet controller: Mellanox Technologies X\n1b:00.0 Strange gadget: Maker Y\n\t\tMaxPayload "
      "128 bytes, "
      "MaxReadReq 128 bytes\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->devices.size(), 2u);
  EXPECT_EQ(out->devices[0].max_read_request, std::nullopt);
  EXPECT_FALSE(looks_like_lspci("1b:00.0 Strange gadget: Maker Y\n"));
}

TEST(Lspci, UnknownLinksAndDeniedSpacesStayUnknown) {
  const auto out = parse_lspci(
      "22:00.0 PCI bridge: X Y (rev 01)\n\tCapabilities: <access denied>\n\t\tLnkCap:\tPort #0, Speed "
      "unknown, Width x0\n");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->devices[0].capable, model::PcieLink{});
  EXPECT_TRUE(out->devices[0].denied);
  EXPECT_FALSE(looks_like_lspci("12:30:00.5 something happened: at noon"));
  EXPECT_FALSE(looks_like_lspci("0000:9b:00.0 my own words: nothing"));
}

constexpr std::string_view kTree = R"(-+-[0000:60]-+-00.0  Intel Corporation Root
 |           \-01.1-[61-64]----00.0-[62-64]--+-00.0-[63]----00.0  NVIDIA Corporation GH100 [H100]
 |                                           \-01.0-[64]--+-00.0  Mellanox Technologies MT2910 Family [ConnectX-7]
 |                                                        \-00.1  Mellanox Technologies MT2910 Family [ConnectX-7]
 \-[0001:00]---01.0-[01]----00.0  NVIDIA Corporation GH100 [H100]
)";

TEST(LspciTree, ReadsParents) {
  ASSERT_TRUE(looks_like_lspci_tree(kTree));
  const auto out = parse_lspci_tree(kTree);
  ASSERT_TRUE(out);
  ASSERT_EQ(out->size(), 10u);
  const auto at = [&](std::string_view bdf) -> const LspciTreeNode& {
    for (const auto& node : *out) {
      if (node.bdf.to_string() == bdf) return node;
    }
    ADD_FAILURE() << bdf;
    return out->front();
  };
  const auto parent = [&](std::string_view bdf) {
    const auto& node = at(bdf);
    return node.parent ? (*out)[*node.parent].bdf.to_string() : std::string();
  };
  EXPECT_EQ(parent("0000:60:00.0"), "");
  EXPECT_EQ(parent("0000:61:00.0"), "0000:60:01.1");
  EXPECT_EQ(parent("0000:63:00.0"), "0000:62:00.0");
  EXPECT_EQ(parent("0000:62:01.0"), "0000:61:00.0");
  EXPECT_EQ(parent("0000:64:00.1"), "0000:62:01.0");
  EXPECT_EQ(parent("0001:01:00.0"), "0001:00:01.0");
  EXPECT_EQ(at("0000:64:00.1").root, "0000:60");
  EXPECT_EQ(at("0001:01:00.0").line, 5);
  EXPECT_EQ(at("0000:62:00.0").secondary, 0x63);
  EXPECT_TRUE(at("0000:62:00.0").bridge);
  EXPECT_EQ(at("0000:63:00.0").name, "NVIDIA Corporation GH100 [H100]");
}

TEST(LspciTree, ABrokenDrawingHasNoParents) {
  EXPECT_FALSE(parse_lspci_tree(" |   +-01.1-[61-64]----00.0  X\n"));
  EXPECT_FALSE(parse_lspci_tree("-+-[zzzz:60]-+-00.0\n"));
}

}  // namespace
}  // namespace topotune::parse
