#include "parse/hwloc_xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/paths.h"

namespace topotune::parse {
namespace {

using model::PathType;
using testing::ElementsAre;
using testing::IsEmpty;

model::Topology parse(std::string_view text) {
  auto topology = parse_hwloc_xml(text);
  EXPECT_TRUE(topology) << topology.error().text;
  return topology ? *topology : model::Topology{};
}

const model::Path* between(const std::vector<model::Path>& paths, std::string_view a, std::string_view b) {
  for (const auto& path : paths) {
    if (path.a == a && path.b == b) return &path;
  }
  return nullptr;
}

std::string bridge(std::string_view busid, std::string_view inside) {
  return "<object type=\"Bridge\" bridge_type=\"1-1\" pci_busid=\"" + std::string(busid) +
         "\" pci_type=\"0604 [1000:c030] [1000:0072] 00 00\" pci_link_speed=\"31.5\">" + std::string(inside) +
         "</object>";
}

std::string host_bridge(std::string_view buses, std::string_view inside) {
  return "<object type=\"Bridge\" bridge_type=\"0-1\" bridge_pci=\"" + std::string(buses) + "\">" +
         std::string(inside) + "</object>";
}

std::string gpu(std::string_view busid, int number, std::string_view gp) {
  return "<object type=\"PCIDev\" pci_busid=\"" + std::string(busid) +
         "\" pci_type=\"0302 [10de:20b2] [10de:1463] a1 00\" pci_link_speed=\"31.5\">" +
         "<object type=\"OSDev\" gp_index=\"" + std::string(gp) + "\" name=\"nvml" + std::to_string(number) +
         "\" osdev_type=\"5\"><info name=\"GPUModel\" value=\"A100\"/><info name=\"NVIDIAUUID\" "
         "value=\"GPU-1\"/></object></object>";
}

std::string nic(std::string_view busid, std::string_view name) {
  return "<object type=\"PCIDev\" pci_busid=\"" + std::string(busid) +
         "\" pci_type=\"0207 [15b3:101b] [15b3:0007] 00 00\" pci_link_speed=\"15.75\">" +
         "<object type=\"OSDev\" name=\"ib0\" osdev_type=\"2\"><info name=\"Address\" value=\"" +
         "80:00:00:48:fe:80:00:00:00:00:00:00:78:e7:d1:03:00:21:55:35\"/></object><object type=\"OSDev\" "
         "name=\"" +
         std::string(name) + "\" osdev_type=\"3\"/></object>";
}

// Version 2: nodes stand beside the devices. Switch 0000:02 has GPU1 and the NIC, root port 0000:00:02.0 has
// GPU0.
std::string two_nodes() {
  return R"(<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0">
<object type="Machine" os_index="0" cpuset="0x000000ff" nodeset="0x00000003">
<info name="Architecture" value="aarch64"/>
<object type="Package" os_index="0" cpuset="0x0000000f" nodeset="0x00000001">
<object type="NUMANode" os_index="0" cpuset="0x0000000f" nodeset="0x00000001" local_memory="1000" gp_index="5"/>)" +
         host_bridge(
             "0000:[00-06]",
             bridge("0000:00:01.0",
                    bridge("0000:01:00.0", bridge("0000:02:00.0", gpu("0000:03:00.0", 1, "71")) +
                                               bridge("0000:02:01.0", nic("0000:04:00.0", "mlx5_0")))) +
                 bridge("0000:00:02.0", gpu("0000:05:00.0", 0, "70"))) +
         host_bridge("0000:[40-41]", bridge("0000:40:01.0", nic("0000:41:00.0", "mlx5_1"))) +
         R"(</object><object type="Package" os_index="1" cpuset="0x000000f0" nodeset="0x00000002">
<object type="NUMANode" os_index="1" cpuset="0x000000f0" nodeset="0x00000002" local_memory="2000" gp_index="6"/>)" +
         host_bridge("0000:[80-81]", bridge("0000:80:01.0", gpu("0000:81:00.0", 2, "72"))) +
         R"(</object></object>
<distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os"><indexes length="4">0 1 </indexes>
<u64values length="6">10 32 </u64values><u64values length="6">32 10 </u64values></distances2>
<distances2hetero nbobjs="3" kind="25" name="NVLinkBandwidth"><indexes>OSDev:70 OSDev:71 OSDev:72</indexes>
<u64values>1000000 100000 0 100000 1000000 0 0 0 1000000</u64values></distances2hetero></topology>)";
}

TEST(HwlocXml, ReadsNodesAndDevices) {
  const auto t = parse(two_nodes());
  EXPECT_TRUE(t.source.complete);
  EXPECT_THAT(t.warnings, IsEmpty());
  ASSERT_EQ(t.numa.size(), 2U);
  EXPECT_EQ(t.numa[1].cpus->to_list(), "4-7");
  EXPECT_EQ(t.numa[1].memory_bytes, 2000U);
  EXPECT_EQ(t.numa[1].distances, (std::map<int, int>{{0, 32}, {1, 10}}));
  EXPECT_EQ(t.cpu->arch, "arm64");
  EXPECT_EQ(t.packages.size(), 2U);
  ASSERT_EQ(t.gpus.size(), 3U);
  EXPECT_EQ(t.gpus[0].bdf, "0000:05:00.0");  // by NVML's number, not by place
  EXPECT_EQ(t.gpus[0].name, "A100");
  EXPECT_EQ(t.gpus[0].uuid, "GPU-1");
  EXPECT_EQ(t.gpus[2].numa, 1);
  EXPECT_EQ(t.gpus[2].cpus->to_list(), "4-7");
  ASSERT_EQ(t.nics.size(), 2U);
  EXPECT_EQ(t.nics[0].name, "mlx5_0");
  EXPECT_EQ(t.nics[0].netdevs, std::vector<std::string>{"ib0"});
  EXPECT_EQ(t.nics[0].link_layer, "InfiniBand");
  ASSERT_EQ(t.switches.size(), 1U);
  EXPECT_EQ(t.switches[0].bdf, "0000:01:00.0");
}

TEST(HwlocXml, ClassesAreNvidiaSmis) {
  const auto t = parse(two_nodes());
  const auto paths = model::paths_of(t);
  EXPECT_EQ(between(paths, "GPU0", "GPU1")->type, PathType::nvl);
  EXPECT_EQ(between(paths, "GPU0", "GPU1")->nvlinks, 4);
  EXPECT_EQ(between(paths, "GPU0", "GPU2")->type, PathType::sys);
  EXPECT_EQ(between(paths, "GPU1", "NIC0")->type, PathType::pix);
  EXPECT_EQ(between(paths, "GPU1", "NIC0")->bandwidth->value, 15.75);
  EXPECT_EQ(between(paths, "GPU0", "NIC0")->type, PathType::phb);
  EXPECT_EQ(between(paths, "GPU0", "NIC1")->type, PathType::node);
  EXPECT_EQ(between(paths, "GPU0", "NIC1")->nccl_type, "PHB");
  EXPECT_EQ(between(paths, "GPU2", "NIC1")->type, PathType::sys);
  EXPECT_EQ(t.gpus[0].nvlinks, 4);
  EXPECT_EQ(t.gpus[2].nvlinks, 0);
}

TEST(HwlocXml, VersionOneNodesContainTheirDevices) {
  const auto t = parse(R"(<topology><object type="Machine" cpuset="0x0000000f">
<distances nbobjs="2" relative_depth="1" latency_base="10.000000"><latency value="1.0"/><latency value="2.1"/><latency value="2.1"/>
<latency value="1.0"/></distances>
<object type="NUMANode" os_index="0" cpuset="0x00000003" local_memory="4096"><object type="Socket" os_index="0" cpuset="0x00000003"/></object>
<object type="NUMANode" os_index="1" cpuset="0x0000000c" local_memory="4096"><object type="Socket" os_index="1" cpuset="0x0000000c"/>)" +
                       host_bridge("0000:[80-81]", bridge("0000:80:01.0", gpu("0000:81:00.0", 0, "9"))) +
                       "</object></object></topology>");
  ASSERT_EQ(t.numa.size(), 2U);
  EXPECT_EQ(t.numa[0].distances, (std::map<int, int>{{0, 10}, {1, 21}}));
  ASSERT_EQ(t.gpus.size(), 1U);
  EXPECT_EQ(t.gpus[0].numa, 1);
  EXPECT_EQ(t.packages.size(), 2U);
}

TEST(HwlocXml, MachineWithoutNodesIsOneNode) {
  const auto t = parse(R"(<topology><object type="Machine" cpuset="0x0000000f" local_memory="77">)" +
                       host_bridge("0000:[00-01]", bridge("0000:00:01.0", gpu("0000:01:00.0", 0, "9"))) +
                       "</object></topology>");
  ASSERT_EQ(t.numa.size(), 1U);
  EXPECT_EQ(t.numa[0].memory_bytes, 77U);
  EXPECT_EQ(t.gpus[0].numa, 0);
}

TEST(HwlocXml, DeviceBesideSeveralNodesHasNone) {
  const auto t = parse(R"(<topology version="2.0"><object type="Machine" cpuset="0xf" nodeset="0x3">
<object type="Package" cpuset="0x3" nodeset="0x1"><object type="NUMANode" os_index="0" cpuset="0x3" nodeset="0x1"/></object>
<object type="Package" cpuset="0xc" nodeset="0x2"><object type="NUMANode" os_index="1" cpuset="0xc" nodeset="0x2"/></object>)" +
                       host_bridge("0000:[00-01]", bridge("0000:00:01.0", gpu("0000:01:00.0", 0, "9"))) +
                       "</object></topology>");
  EXPECT_EQ(t.gpus[0].numa, std::nullopt);
}

TEST(HwlocXml, OneBusIdTwiceStaysTwoDevices) {
  const auto t =
      parse(R"(<topology version="2.0"><object type="Machine" cpuset="0xf" nodeset="0x1">
<object type="NUMANode" os_index="0" cpuset="0xf" nodeset="0x1"/>)" +
            host_bridge("0000:[00-01]", bridge("0000:00:01.0", nic("0000:01:00.0", "mlx5_0"))) +
            host_bridge("0000:[80-81]",
                        bridge("0000:80:01.0", gpu("0000:81:00.0", 0, "9") + nic("0000:01:00.0", "mlx5_1"))) +
            "</object></topology>");
  const auto paths = model::paths_of(t);
  EXPECT_EQ(between(paths, "GPU0", "NIC0")->type, PathType::node);
  EXPECT_EQ(between(paths, "GPU0", "NIC1")->type, PathType::pix);
  EXPECT_EQ(t.nics[1].bdf, "0000:01:00.0");
  ASSERT_EQ(t.warnings.size(), 1U);
  EXPECT_EQ(t.warnings[0].code, "duplicate-busid");
}

TEST(HwlocXml, NvSwitchesAndTheirLinks) {
  const std::string nvswitch =
      R"(<object type="PCIDev" subtype="NVSwitch" gp_index="90" pci_busid="0000:09:00.0" pci_type="0680 [10de:1ac2] [0000:0000] a1 00"/>)";
  const auto t = parse(
      R"(<topology version="2.0"><object type="Machine" cpuset="0xf" nodeset="0x1">)" +
      host_bridge("0000:[00-09]", gpu("0000:01:00.0", 0, "1") + gpu("0000:02:00.0", 1, "2") + nvswitch) +
      R"(</object><distances2hetero nbobjs="3" name="NVLinkBandwidth"><indexes>OSDev:1 OSDev:2 PCIDev:90</indexes>
<u64values>0 0 150000 0 0 150000 150000 150000 0</u64values></distances2hetero></topology>)");
  const auto paths = model::paths_of(t);
  EXPECT_EQ(between(paths, "GPU0", "GPU1")->type, PathType::nvl);
  EXPECT_EQ(between(paths, "GPU0", "GPU1")->nvlinks, 6);
  ASSERT_EQ(t.switches.size(), 1U);
  EXPECT_EQ(t.switches[0].kind, "nvswitch");
}

TEST(HwlocXml, XgmiIsKnownWithoutItsNumberOfLinks) {
  const auto amd = [](std::string_view busid, int n) {
    return "<object type=\"PCIDev\" pci_busid=\"" + std::string(busid) +
           "\" pci_type=\"1200 [1002:74a1] [1002:74a1] 00 00\">" + "<object type=\"OSDev\" gp_index=\"" +
           std::to_string(n + 1) + "\" name=\"rsmi" + std::to_string(n) + "\" osdev_type=\"5\"/></object>";
  };
  const auto t = parse(
      R"(<topology version="2.0"><object type="Machine" cpuset="0xf" nodeset="0x1">)" +
      host_bridge("0000:[00-09]", amd("0000:01:00.0", 0) + amd("0000:02:00.0", 1)) +
      R"(</object><distances2 type="OSDev" nbobjs="2" name="XGMIBandwidth" indexing="gp"><indexes>1 2</indexes>
<u64values>1000000 100000 100000 1000000</u64values></distances2></topology>)");
  const auto paths = model::paths_of(t);
  EXPECT_EQ(between(paths, "GPU0", "GPU1")->type, PathType::xgmi);
  EXPECT_EQ(between(paths, "GPU0", "GPU1")->nvlinks, std::nullopt);
  EXPECT_EQ(t.gpus[0].nvlinks, std::nullopt);
}

TEST(HwlocXml, EveryCutIsReadOrRefused) {
  const auto whole = two_nodes();
  for (std::size_t n = 0; n < whole.size(); n += 7) {
    const auto t = parse_hwloc_xml(std::string_view(whole).substr(0, n));
    if (!t) continue;
    EXPECT_FALSE(t->source.complete) << n;
    model::paths_of(*t);
  }
}

TEST(HwlocXml, Recognition) {
  EXPECT_TRUE(looks_like_hwloc_xml("<topology version=\"2.0\">\n<object type=\"Machine\">"));
  EXPECT_TRUE(looks_like_hwloc_xml("<!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><topology>"));
  EXPECT_FALSE(looks_like_hwloc_xml("<topology><sockets/></topology>"));
  EXPECT_FALSE(looks_like_hwloc_xml("tests/hwloc/linux/a.xml"));
  EXPECT_FALSE(parse_hwloc_xml("<topology/>"));
}

}  // namespace
}  // namespace topotune::parse
