#include "discover/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "discover/merge_rdma.h"
#include "model/paths.h"

namespace topotune::discover {
namespace {

FolderInput read(std::vector<NamedText> texts) {
  auto out = read_texts(texts);
  EXPECT_TRUE(out) << (out ? "" : out.error().text);
  return out ? std::move(*out) : FolderInput{};
}

std::vector<std::string> warnings_of(const model::Machine& machine, std::string_view code) {
  std::vector<std::string> out;
  for (const auto& warning : machine.diagnostics) {
    if (warning.code == code) out.push_back(warning.text);
  }
  return out;
}

constexpr const char* kMatrix =
    "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV4\tPIX\nGPU1\tNV4\t X \tSYS\nNIC0\tPIX\tSYS\t X \n\nNIC Legend:\n\n  "
    "NIC0: mlx5_0\n";
constexpr const char* kQuery =
    "==============NVSMI LOG==============\nDriver Version : 550.1\nCUDA Version : 12.4\nAttached GPUs : 2\n"
    "GPU 00000000:41:00.0\n    Product Name : NVIDIA X100\n    MIG Mode\n        Current : Disabled\n    GPU "
    "UUID : GPU-a\n"
    "GPU 00000000:61:00.0\n    Product Name : NVIDIA X100\n    GPU UUID : GPU-b\n";

TEST(Folder, JoinsGpusByIndexUuidAndAddress) {
  const auto out = read({{"nvlink.txt",
                          "GPU 0: NVIDIA X100 (UUID: GPU-a)\n Link 0: 25 GB/s\n Link 1: <inactive>\n"
                          "GPU 1: NVIDIA X100 (UUID: GPU-b)\n Link 0: 25 GB/s\n Link 1: 20 GB/s\n"},
                         {"q.txt", kQuery},
                         {"topo.txt", kMatrix}});
  const auto& topology = out.machine.topology;
  ASSERT_EQ(topology.gpus.size(), 2u);
  const auto& gpu = topology.gpus[0];
  EXPECT_EQ(gpu.id, "GPU0");
  EXPECT_EQ(gpu.bdf, "0000:41:00.0");
  EXPECT_EQ(gpu.uuid, "GPU-a");
  EXPECT_EQ(gpu.nvlinks, 1);
  EXPECT_EQ(gpu.nvlinks_capable, 2);
  EXPECT_EQ(gpu.inactive_links, std::vector<int>{1});
  EXPECT_EQ(gpu.mig, false);
  EXPECT_EQ(topology.gpus[1].link_speeds.at(1).value, 20);
  EXPECT_EQ(topology.stated.size(), 3u);
  EXPECT_EQ(out.machine.nvml_gpu_count.source, "q.txt:4");
  EXPECT_EQ(out.machine.nvidia_driver.source, "q.txt:2");
  EXPECT_THAT(out.machine.inputs,
              testing::UnorderedElementsAre("nvlink.txt: nvidia-smi nvlink", "q.txt: nvidia-smi -q",
                                            "topo.txt: nvidia-smi-topo"));
}

TEST(Folder, TheOrderOfFilesDoesNotMatter) {
  const std::vector<NamedText> texts = {{"a", kQuery}, {"b", kMatrix}};
  const auto one = read(texts);
  const auto two = read({texts[1], texts[0]});
  ASSERT_EQ(one.machine.topology.gpus.size(), two.machine.topology.gpus.size());
  EXPECT_EQ(one.machine.topology.gpus[1].bdf, two.machine.topology.gpus[1].bdf);
}

TEST(Folder, ContradictionsAreSaid) {
  const auto out = read(
      {{"q.txt", kQuery},
       {"version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.9  Thu\n"},
       {"three.txt", "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tSYS\tSYS\nGPU1\tSYS\t X \tSYS\nGPU2\tSYS\tSYS\t X \n"}});
  const auto said = warnings_of(out.machine, "contradiction");
  ASSERT_EQ(said.size(), 2u);
  EXPECT_THAT(said[0], testing::HasSubstr("NVIDIA driver version: q.txt:2 and version:1 disagree"));
  EXPECT_THAT(said[1], testing::HasSubstr("2 GPUs are attached"));
  EXPECT_EQ(*out.machine.nvidia_driver, "550.1");
}

TEST(Folder, UnknownTextsAreNamedAndLogsKept) {
  const auto out = read({{"notes.txt", "just words\n"},
                         {"run.log", "n1:1:2 [0] NCCL INFO NET/IB : Using x\n"},
                         {"job.env", "NCCL_DEBUG=INFO\n"},
                         {"limits.conf", "* soft nofile 100\n"}});
  EXPECT_THAT(out.unrecognised, testing::ElementsAre("notes.txt"));
  EXPECT_EQ(warnings_of(out.machine, "not-recognised"),
            std::vector<std::string>{"not recognised: notes.txt"});
  ASSERT_EQ(out.logs.size(), 1u);
  EXPECT_EQ(out.logs[0].name, "run.log");
  ASSERT_EQ(out.configs.size(), 1u);
  EXPECT_EQ(out.configs[0].name, "job.env");
  EXPECT_EQ(*out.machine.nofile, 100u);
  EXPECT_EQ(out.machine.nofile.source, "limits.conf:1");
}

TEST(Folder, OnlyThePartsThatSetVariablesAreConfiguration) {
  const auto out =
      read({{"all.txt", "$ uname -r\n6.1.0\n$ env | grep NCCL\nNCCL_DEBUG=INFO\n$ ulimit -n\n64\n"}});
  ASSERT_EQ(out.configs.size(), 1u);
  EXPECT_EQ(out.configs[0].text, "\n\n\nNCCL_DEBUG=INFO\n");
  const std::vector<NamedText> prose = {{"note.txt", "It works with NCCL_P2P_DISABLE=1.\n"}};
  EXPECT_FALSE(read_texts(prose));
}

TEST(Folder, AServiceAnswersInOneWord) {
  const auto out = read(
      {{"t",
        "$ systemctl is-active nvidia-fabricmanager\ninactive\n$ ls /sys/kernel/mm/memory_peers\nnv_mem\n"}});
  EXPECT_EQ(*out.machine.fabric_manager, "inactive");
  EXPECT_EQ(*out.machine.memory_peers, std::vector<std::string>{"nv_mem"});
}

TEST(Folder, NothingKnownIsAnError) {
  const std::vector<NamedText> texts = {{"a", "just words\n"}, {"b", ""}};
  const auto out = read_texts(texts);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, Errc::unrecognised);
  EXPECT_FALSE(read_texts({}));
}

TEST(Folder, ATranscriptIsManyTexts) {
  const auto out =
      read({{"all.txt",
             "$ uname -r\n6.1.0-9\n$ cat /proc/sys/kernel/numa_balancing\n1\n"
             "$ nvidia-smi topo -p2p r\n\tGPU0\tGPU1\n GPU0\tX\tCNS\n GPU1\tOK\tX\n"
             "$ ulimit -l\n64\n$ numactl --hardware\navailable: 1 nodes (0)\nnode 0 cpus: 0 1\n"}});
  EXPECT_EQ(*out.machine.kernel, "6.1.0-9");
  EXPECT_EQ(*out.machine.numa_balancing, 1);
  EXPECT_EQ(out.machine.numa_balancing.source, "all.txt:4");
  EXPECT_EQ(out.machine.memlock->soft, 65536u);
  ASSERT_EQ(out.machine.p2p.size(), 2u);
  EXPECT_EQ(out.machine.p2p[0].capability, "read");
  EXPECT_EQ(out.machine.p2p[0].status, "CNS");
  ASSERT_EQ(out.machine.topology.numa.size(), 1u);
  EXPECT_EQ(out.machine.topology.source.kind, model::SourceKind::text);
}

constexpr const char* kBridges =
    "40:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] GPP Bridge\n\tBus: primary=40, secondary=41, "
    "subordinate=43\n"
    "41:00.0 PCI bridge: Broadcom / LSI PEX890xx\n\tBus: primary=41, secondary=42, subordinate=43\n"
    "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
    "42:00.0 3D controller: NVIDIA Corporation GH100 [H100]\n\tNUMA node: 1\n"
    "42:01.0 Ethernet controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n\t\t\tMaxPayload 256 "
    "bytes, MaxReadReq 512 bytes\n";

TEST(Folder, LspciGivesTreeAndGpus) {
  const auto out = read({{"lspci.txt", kBridges}});
  const auto& topology = out.machine.topology;
  EXPECT_TRUE(topology.tree_known);
  const auto* gpu = model::find_pci(topology, "0000:42:00.0");
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->parent, "0000:41:00.0");
  EXPECT_EQ(gpu->root, "0000:40");
  EXPECT_EQ(gpu->kind, model::PciKind::gpu);
  const auto* bridge = model::find_pci(topology, "0000:41:00.0");
  EXPECT_EQ(bridge->acs_control, 0x1d);
  EXPECT_TRUE(bridge->pcie_switch_port);
  EXPECT_EQ(model::find_pci(topology, "0000:42:01.0")->max_read_request, 512);
  ASSERT_EQ(topology.gpus.size(), 1u);
  EXPECT_EQ(topology.gpus[0].numa, 1);
  ASSERT_EQ(topology.nics.size(), 1u);
  EXPECT_TRUE(topology.nics[0].rdma);
  EXPECT_EQ(*out.machine.nvidia_pci_gpus, std::vector<std::string>{"0000:42:00.0"});
  const auto paths = model::paths_of(topology);
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_EQ(paths[0].type, model::PathType::pix);
}

TEST(Folder, GpusOfAMatrixGetTheAddressesOfLspci) {
  const auto out = read(
      {{"topo-m.txt", "\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n"},
       {"lspci.txt",
        "61:00.0 VGA compatible controller: NVIDIA Corporation AD102\n41:00.0 VGA compatible controller: "
        "NVIDIA Corporation AD102\n"}});
  ASSERT_EQ(out.machine.topology.gpus.size(), 2u);
  EXPECT_EQ(out.machine.topology.gpus[0].bdf, "0000:41:00.0");
  EXPECT_EQ(out.machine.topology.gpus[1].bdf, "0000:61:00.0");
}

TEST(Folder, TheDriversListIsNotFilledUpFromTheBus) {
  const auto out =
      read({{"q.txt", kQuery},
            {"lspci.txt",
             "41:00.0 3D controller: NVIDIA Corporation X\n61:00.0 3D controller: NVIDIA Corporation X\n"
             "81:00.0 3D controller: NVIDIA Corporation X\n"}});
  EXPECT_EQ(out.machine.topology.gpus.size(), 2u);
  EXPECT_EQ(out.machine.nvidia_pci_gpus->size(), 3u);
  EXPECT_EQ(*out.machine.nvml_gpu_count, 2);
}

// Without "Bus:" lines the tree follows from the order of bus numbers, where that explains every GPU and NIC.
TEST(Folder, InfersTheTreeFromBusNumbers) {
  const std::string bridges =
      "15:01.0 PCI bridge: Intel Corporation Device 352a\n16:00.0 PCI bridge: Broadcom / LSI PEX890xx\n"
      "17:00.0 PCI bridge: Broadcom / LSI PEX890xx\n17:01.0 PCI bridge: Broadcom / LSI PEX890xx\n";
  const auto out = read({{"l", bridges + "18:00.0 3D controller: NVIDIA Corporation X\n"
                                         "19:00.0 Ethernet controller: Mellanox Technologies Y\n"}});
  const auto* nic = model::find_pci(out.machine.topology, "0000:19:00.0");
  ASSERT_NE(nic, nullptr);
  EXPECT_EQ(nic->parent, "0000:17:01.0");
  EXPECT_TRUE(nic->parent_inferred);
  EXPECT_TRUE(out.machine.topology.tree_known);
  EXPECT_EQ(warnings_of(out.machine, "tree-inferred").size(), 1u);

  const auto gap = read({{"l", bridges + "18:00.0 3D controller: NVIDIA Corporation X\n"
                                         "30:00.0 Ethernet controller: Mellanox Technologies Y\n"}});
  EXPECT_EQ(model::find_pci(gap.machine.topology, "0000:18:00.0")->parent, "");
  EXPECT_FALSE(gap.machine.topology.tree_known);
}

TEST(Folder, PortsOfManyCommandsAreOne) {
  const auto out = read(
      {{"ibstat.txt", "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n\t\tLink layer: Ethernet\n"},
       {"dev.txt", "mlx5_0 port 1 ==> enp26s0f0np0 (Up)\n"},
       {"gids.txt", "DEV PORT INDEX GID VER DEV\nmlx5_0 1 3 fe80:0000:0000:0000:0000:0000:0000:0001 v2 x\n"},
       {"ip.txt", "3: enp26s0f0np0: <UP> mtu 4200 qdisc mq state UP\n"},
       {"lspci.txt", "1a:00.0 Ethernet controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"}});
  ASSERT_EQ(out.machine.ports.size(), 1u);
  const auto& port = out.machine.ports[0];
  EXPECT_EQ(port.state, "ACTIVE");
  EXPECT_EQ(port.netdev_mtu, 4200);
  EXPECT_EQ(port.bdf, "0000:1a:00.0");
  EXPECT_EQ(port.gids_known, true);
  ASSERT_EQ(out.machine.topology.nics.size(), 1u);
  EXPECT_EQ(out.machine.topology.nics[0].name, "mlx5_0");
  EXPECT_EQ(out.machine.topology.nics[0].bdf, "0000:1a:00.0");
  EXPECT_EQ(out.machine.topology.nics[0].rate->value, 400);
  EXPECT_EQ(*out.machine.rdma_read, true);
}

TEST(Folder, NvlinkEndsAreSwitchesOnlyWhereTheTextProvesIt) {
  const auto ends = [](const char* link) {
    return read({{"r", std::string("GPU 0: X (UUID: a)\n Link 0: Remote Device 00000000:07:00.0: Link ") +
                           link + "\n"}})
        .machine.topology.gpus[0]
        .links.at(0)
        .to;
  };
  EXPECT_EQ(ends("46"), "0000:07:00.0");
  EXPECT_EQ(ends("3"), "");
  const auto cut = read({{"r",
                          "GPU 0: X (UUID: a)\n Link 0: Remote Device 00000000:07:00.0: Link 46\n"
                          " Link 1: Remote Device 00000000:07:00.0: Link 47\n"
                          "GPU 1: X (UUID: b)\n Link 0: Remote Device 00000000:07:00.0: Link 40\n"}});
  EXPECT_EQ(cut.machine.topology.gpus[0].nvlinks, 2);
  EXPECT_EQ(cut.machine.topology.gpus[1].nvlinks, std::nullopt);
  EXPECT_FALSE(cut.machine.topology.gpus[1].links.at(0).counted);
}

TEST(Folder, TheKernelsNodesReplaceTheMasksOfATopologyFile) {
  const auto out = read({{"topo.xml",
                          "<system version=\"1\">\n  <cpu numaid=\"0\" affinity=\"ff\" arch=\"x86_64\" "
                          "vendor=\"GenuineIntel\"/>\n"
                          "</system>\n"},
                         {"numa.txt", "available: 1 nodes (0)\nnode 0 cpus: 0 1 2 3\n"}});
  ASSERT_EQ(out.machine.topology_files.size(), 1u);
  ASSERT_EQ(out.machine.topology.numa.size(), 1u);
  EXPECT_EQ(out.machine.topology.numa[0].cpus->to_list(), "0-3");
  EXPECT_EQ(warnings_of(out.machine, "contradiction").size(), 1u);
}

TEST(Folder, ATopologyFileOfAnotherMachineIsNotTheBase) {
  const std::string xml =
      "<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"ff\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n"
      "<pci busid=\"0000:99:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\"><gpu "
      "dev=\"0\" sm=\"80\"/></pci>\n"
      "</cpu>\n</system>\n";
  const auto other = read({{"topo.xml", xml}, {"q.txt", kQuery}});
  ASSERT_EQ(other.machine.topology.gpus.size(), 2u);
  EXPECT_EQ(other.machine.topology.gpus[0].bdf, "0000:41:00.0");
  EXPECT_EQ(other.machine.topology_files.size(), 1u);
  EXPECT_EQ(read({{"topo.xml", xml}}).machine.topology.gpus.at(0).bdf, "0000:99:00.0");
}

TEST(Folder, KernelLogLinesCarryTheirPlace) {
  const auto out = read({{"dmesg.txt", "[ 1.0] x\n[ 2.0] NVRM: Xid (PCI:0000:9b:00): 79, gone\n"}});
  EXPECT_THAT(*out.machine.kernel_log, testing::ElementsAre("[ 2.0] NVRM: Xid (PCI:0000:9b:00): 79, gone"));
  EXPECT_THAT(out.machine.kernel_log_sources, testing::ElementsAre("dmesg.txt:2"));
}

TEST(Folder, InterfaceNamesTellAddresses) {
  EXPECT_EQ(bdf_of_interface("enp27s0f1np1"), "0000:1b:00.1");
  EXPECT_EQ(bdf_of_interface("ibp26s0"), "0000:1a:00.0");
  EXPECT_EQ(bdf_of_interface("enP2p1s0"), "0002:01:00.0");
  EXPECT_EQ(bdf_of_interface("ens1f0"), std::nullopt);
  EXPECT_EQ(bdf_of_interface("eth0"), std::nullopt);
  EXPECT_EQ(bdf_of_interface("enp999s0"), std::nullopt);
}

TEST(Folder, ManyDevicesAreRefusedOrBounded) {
  std::string text;
  for (int i = 0; i < 20000; ++i)
    text += "GPU " + std::to_string(i) + ": X (UUID: u" + std::to_string(i) + ")\n Link 0: 25 GB/s\n";
  const auto out = read({{"n", text}});
  EXPECT_LE(out.machine.topology.gpus.size(), 4096u);
}

TEST(Folder, AFabricManagerLogIsNoKernelLog) {
  const auto quiet =
      read({{"fm.log", "[Feb 25 2025 13:59:45] [INFO] [tid 1808] multicast group 0 is freed.\n"}});
  EXPECT_FALSE(quiet.machine.kernel_log.known());
}

TEST(Folder, PciePairsOfRocmLieBetweenTheirNodes) {
  const auto out =
      read({{"rocm.txt",
             "==== Link Type between two GPUs ====\n       GPU0   GPU1   GPU2\nGPU0   0 PCIE PCIE\n"
             "GPU1   PCIE 0 PCIE\nGPU2   PCIE PCIE 0\n==== Numa Nodes ====\n"
             "GPU[0]\t\t: (Topology) Numa Node: 0\nGPU[1]\t\t: (Topology) Numa Node: 0\n"
             "GPU[2]\t\t: (Topology) Numa Node: 1\n"}});
  const auto& stated = out.machine.topology.stated;
  ASSERT_EQ(stated.size(), 3u);
  EXPECT_EQ(stated[0].type, std::nullopt) << "on one node the text does not tell";
  EXPECT_TRUE(stated[0].links_told) << "that no xGMI joins them it does";
  EXPECT_EQ(stated[1].type, model::PathType::sys);
}

TEST(Folder, AmdCardsOfLspciAreGpusProcessorGraphicsAreNot) {
  const auto names =
      read({{"lspci.txt",
             "00:00.0 Host bridge: Advanced Micro Devices, Inc. [AMD] Root Complex\n"
             "07:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Vega 20 (rev 02)\n"
             "0a:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Cezanne [Radeon "
             "Vega Series]\n24:00.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED\n"}});
  ASSERT_EQ(names.machine.topology.gpus.size(), 1u);
  EXPECT_EQ(names.machine.topology.gpus[0].bdf, "0000:07:00.0");
  const auto numbers =
      read({{"lspci.txt",
             "00:00.0 Host bridge [0600]: Advanced Micro Devices, Inc. [AMD] X [1022:1480]\n"
             "07:00.0 VGA compatible controller [0300]: Advanced Micro Devices, Inc. [AMD/ATI] X "
             "[1002:66a0] (rev 02)\n0a:00.0 VGA compatible controller [0300]: Advanced Micro Devices, "
             "Inc. [AMD/ATI] X [1002:1638]\n"}});
  ASSERT_EQ(numbers.machine.topology.gpus.size(), 1u);
}

TEST(Folder, TablesOfAmdSmi) {
  const auto out = read({{"amd-smi.txt",
                          "ACCESS TABLE:\n             0000:0c:00.0 0000:22:00.0 0000:38:00.0\n"
                          "0000:0c:00.0 ENABLED      ENABLED      ENABLED\n"
                          "0000:22:00.0 ENABLED      ENABLED      ENABLED\n"
                          "0000:38:00.0 ENABLED      ENABLED      ENABLED\n\n"
                          "LINK TYPE TABLE:\n             0000:0c:00.0 0000:22:00.0 0000:38:00.0\n"
                          "0000:0c:00.0 SELF         XGMI         PCIE\n"
                          "0000:22:00.0 XGMI         SELF         PCIE\n"
                          "0000:38:00.0 PCIE         PCIE         SELF\n\n"
                          "NUMA BW TABLE:\n             0000:0c:00.0 0000:22:00.0 0000:38:00.0\n"
                          "0000:0c:00.0 N/A          50000-50000  N/A\n"}});
  const auto& topology = out.machine.topology;
  ASSERT_EQ(topology.gpus.size(), 3u);
  EXPECT_EQ(topology.gpus[1].bdf, "0000:22:00.0");
  ASSERT_EQ(topology.stated.size(), 3u);
  EXPECT_EQ(topology.stated[0].type, model::PathType::xgmi);
  EXPECT_EQ(topology.stated[1].type, std::nullopt);
}

TEST(Folder, EveryGpuOfAnXmlQueryIsRead) {
  const auto out = read({{"q.xml",
                          "<nvidia_smi_log>\n<attached_gpus>2</attached_gpus>\n<gpu id=\"0000:0A:00.0\">\n"
                          "<fb_memory_usage>\n<free>N/A</free>\n</fb_memory_usage>\n</gpu>\n"
                          "<gpu id=\"0000:0B:00.0\">\n</gpu>\n</nvidia_smi_log>\n"}});
  EXPECT_EQ(out.machine.topology.gpus.size(), 2u);
}

TEST(Folder, ALostGpuIsToldByItsValues) {
  const auto lost = [](const std::string& text) {
    const auto out = read({{"q", text}});
    return out.machine.gpu_states.at(0).other.count("GPU is lost") +
           out.machine.gpu_states.at(1).other.count("GPU is lost") * 10;
  };
  EXPECT_EQ(lost("==NVSMI LOG==\nAttached GPUs : 2\nGPU 00000000:41:00.0\n    Product Name : X\n"
                 "GPU 00000000:61:00.0\n    FB Memory Usage\n        Total : GPU is lost\n"),
            10u);
  EXPECT_EQ(
      lost("<nvidia_smi_log>\n<gpu id=\"00000000:41:00.0\"><utilization><gpu_util>GPU is lost</gpu_util>"
           "</utilization></gpu>\n<gpu id=\"00000000:61:00.0\"></gpu>\n</nvidia_smi_log>\n"),
      1u);
}

}  // namespace
}  // namespace topotune::discover
