#include "parse/nvidia_smi_topo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace topotune::parse {
namespace {

using model::PathType;
using model::Topology;
using testing::HasSubstr;

Topology read(const std::string& text) {
  EXPECT_TRUE(looks_like_nvidia_smi_topo(text)) << text;
  auto topology = parse_nvidia_smi_topo(text);
  EXPECT_TRUE(topology) << (topology ? "" : topology.error().to_string());
  return topology.value_or(Topology{});
}

// "NV12", "PIX", "?" for an unknown pair, "none" for a pair that is not listed.
std::string pair(const Topology& topology, std::string_view a, std::string_view b) {
  for (const auto& path : topology.stated) {
    if (!(path.a == a && path.b == b) && !(path.a == b && path.b == a)) continue;
    if (!path.type) return "?";
    if (path.type == PathType::nvl) return path.nvlinks ? fmt::format("NV{}", *path.nvlinks) : "NV?";
    return name_of(*path.type);
  }
  return "none";
}

std::string cpus(const Topology& topology, std::size_t gpu) {
  const auto& set = topology.gpus.at(gpu).cpus;
  return set ? set->to_list() : "null";
}

int numa(const Topology& topology, std::size_t gpu) { return topology.gpus.at(gpu).numa.value_or(-7); }

// The line of the first warning with this code: 0 without a line, -1 when there is none.
int warned(const Topology& topology, std::string_view code) {
  for (const auto& warning : topology.warnings) {
    if (warning.code == code) return warning.line.value_or(0);
  }
  return -1;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

const char kTabs[] =
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV6\tPXB\tSYS\t0-7,16-23\t0\t\tN/A\n"
    "GPU1\tNV6\t X \tSYS\tPIX\t8-15,24-31\t1\t\tN/A\n"
    "NIC0\tPXB\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tPIX\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  NV#  = bonded links\n\nNIC Legend:\n\n  NIC0: mlx5_3\n  NIC1: "
    "mlx5_bond_0\n";

void expect_small_machine(const Topology& topology) {
  ASSERT_EQ(topology.gpus.size(), 2u);
  ASSERT_EQ(topology.nics.size(), 2u);
  EXPECT_EQ(pair(topology, "GPU0", "GPU1"), "NV6");
  EXPECT_EQ(pair(topology, "GPU0", "NIC0"), "PXB");
  EXPECT_EQ(pair(topology, "GPU0", "NIC1"), "SYS");
  EXPECT_EQ(pair(topology, "GPU1", "NIC1"), "PIX");
  EXPECT_EQ(pair(topology, "NIC0", "NIC1"), "SYS");
  EXPECT_EQ(topology.stated.size(), 6u);
  EXPECT_EQ(cpus(topology, 0), "0-7,16-23");
  EXPECT_EQ(cpus(topology, 1), "8-15,24-31");
  EXPECT_EQ(numa(topology, 0), 0);
  EXPECT_EQ(numa(topology, 1), 1);
  EXPECT_TRUE(topology.source.complete);
  EXPECT_TRUE(topology.warnings.empty());
}

TEST(NvidiaSmiTopo, ReadsTabsAndEscapes) {
  const auto topology = read(kTabs);
  expect_small_machine(topology);
  EXPECT_EQ(topology.source.kind, model::SourceKind::nvidia_smi_topo);
  EXPECT_EQ(topology.nics[0].name, "mlx5_3");
  EXPECT_EQ(topology.nics[1].name, "mlx5_bond_0");
  EXPECT_TRUE(topology.nics[0].rdma);
  EXPECT_EQ(topology.gpus[0].nvlinks, 6);
  ASSERT_EQ(topology.numa.size(), 2u);
  EXPECT_EQ(topology.numa[1].cpus->to_list(), "8-15,24-31");
  EXPECT_FALSE(topology.numa[1].memory_bytes);
}

TEST(NvidiaSmiTopo, ReadsTheSameBehindEveryDecoration) {
  const std::string plain = kTabs;
  const std::string visible = replaced(plain, "\x1b[", "[");
  const std::string carets = replaced(plain, "\x1b", "^[");
  const std::string windows = replaced(plain, "\n", "\r\n");
  const std::string old_mac = replaced(plain, "\n", "\r");
  const std::string quoted = "> " + replaced(plain, "\n", "\n> ");
  const std::string fenced =
      "Our node:\n```console\n$ nvidia-smi topo -m\n" + plain + "```\nWhat is wrong with GPU0?\n";
  const std::string indented = "    " + replaced(plain, "\n", "\n    ");
  const std::string pdsh = "node7: " + replaced(plain, "\n", "\nnode7: ");
  const std::string logged = "[1,0]<stdout>:" + replaced(plain, "\n", "\n[1,0]<stdout>:");
  const std::string compose = "app-1  | " + replaced(plain, "\n", "\napp-1  | ");
  const std::string nbsp = replaced(replaced(plain, "\t", "\t\xc2\xa0"), " X ", "\xc2\xa0X ");
  const std::string spread = replaced(plain, "\n", "\n\n");
  for (const auto& text :
       {visible, carets, windows, old_mac, quoted, fenced, indented, pdsh, logged, compose, nbsp, spread}) {
    SCOPED_TRACE(text);
    expect_small_machine(read(text));
  }
}

TEST(NvidiaSmiTopo, ReadsUtf16AndWrittenOutEscapes) {
  std::string wide = "\xff\xfe";
  for (const char c : std::string(kTabs)) wide += std::string(1, c) + '\0';
  expect_small_machine(read(wide));
  const std::string json = "{\"out\": \"" +
                           replaced(replaced(replaced(kTabs, "\x1b", "\\u001b"), "\t", "\\t"), "\n", "\\n") +
                           "\"}";
  expect_small_machine(read(json));
}

TEST(NvidiaSmiTopo, ReadsCheckEnvOutput) {
  const auto topology = read(
      "Python: 3.12\nGPU 0,1: Some GPU\nNVIDIA Topology: \tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tPHB\t0-31\tN/A\nGPU1\tPHB\t X \t0-31\tN/A\n\nHypervisor vendor: KVM\nulimit soft: 1024\n");
  EXPECT_EQ(pair(topology, "GPU0", "GPU1"), "PHB");
  EXPECT_EQ(cpus(topology, 1), "0-31");
  EXPECT_FALSE(topology.gpus[0].numa);
  EXPECT_TRUE(topology.source.complete);
}

TEST(NvidiaSmiTopo, ReadsOldFormatWithNamedNics) {
  const auto topology = read(
      "        GPU0    GPU1    GPU2    mlx4_0  hfi1_0  CPU Affinity\n"
      "GPU0     X      PSB     SOC     PHB     SOC     0-5,12-17\n"
      "GPU1    PSB      X      SOC     PHB     SOC     0-5,12-17\n"
      "GPU2    SOC     SOC      X      SOC     PIX     6-11,18-23\n"
      "mlx4_0  PHB     PHB     SOC      X      SOC\n"
      "hfi1_0  SOC     SOC     PIX     SOC      X\n");
  ASSERT_EQ(topology.nics.size(), 2u);
  EXPECT_EQ(topology.nics[0].id, "NIC0");
  EXPECT_EQ(topology.nics[0].name, "mlx4_0");
  EXPECT_EQ(topology.nics[1].name, "hfi1_0");
  EXPECT_EQ(pair(topology, "GPU0", "GPU1"), "PIX");
  EXPECT_EQ(pair(topology, "GPU0", "GPU2"), "SYS");
  EXPECT_EQ(pair(topology, "GPU2", "NIC1"), "PIX");
  EXPECT_FALSE(topology.gpus[0].numa);
  EXPECT_TRUE(topology.source.complete);
}

TEST(NvidiaSmiTopo, ReadsHeaderWithoutItsLeadingBlanks) {
  const auto topology = read(
      "GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
      "GPU0     X      NODE    PIX                                     N/A\n"
      "GPU1    NODE     X      NODE    0-3             0               N/A\n"
      "NIC0    PIX     NODE     X\n");
  EXPECT_EQ(pair(topology, "GPU0", "NIC0"), "PIX");
  EXPECT_EQ(cpus(topology, 0), "null");
  EXPECT_EQ(cpus(topology, 1), "0-3");
}

TEST(NvidiaSmiTopo, ReadsEmptyAffinityColumns) {
  const auto topology = read("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t\t\t\t\tN/A\n");
  EXPECT_EQ(cpus(topology, 0), "null");
  EXPECT_FALSE(topology.gpus[0].numa);
  EXPECT_TRUE(topology.source.complete);
  const auto gh = read("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-71\t0\t\t1\n");
  EXPECT_EQ(numa(gh, 0), 0);  // the node of the CPU, not of the GPU's memory
}

TEST(NvidiaSmiTopo, ReadsMarkdownTables) {
  const auto topology = read(
      "| CPU Affinity | NUMA Affinity |          | GPU0  | GPU1 | mlx5_0 |\n"
      "|:-------------|---------------|----------|-------|------|--------|\n"
      "| 0-3          | 1             | **GPU0** | **X** | NV4  |  PHB   |\n"
      "| 4-7          | 0             | **GPU1** | NV4   |  X   |        |\n"
      "|              |               | mlx5_0   | PHB   | SYS  |   X    |\n");
  EXPECT_EQ(pair(topology, "GPU0", "GPU1"), "NV4");
  EXPECT_EQ(pair(topology, "GPU1", "NIC0"), "SYS");
  EXPECT_EQ(cpus(topology, 0), "0-3");
  EXPECT_EQ(numa(topology, 0), 1);
  EXPECT_FALSE(topology.source.complete);  // one cell is empty
  const auto unlabelled = read(
      "| GPU0 | GPU1 | CPU Affinity |\n|--|--|--|\n| GPU0 | X | SYS | 0-3 |\n| GPU1 | SYS | X | 4-7 |\n");
  EXPECT_EQ(pair(unlabelled, "GPU0", "GPU1"), "SYS");
  EXPECT_EQ(cpus(unlabelled, 1), "4-7");
  EXPECT_TRUE(unlabelled.source.complete);
}

TEST(NvidiaSmiTopo, TakesGluedCellsApart) {
  const auto topology = read(
      "        GPU0    GPU1    NIC0NIC1    NIC2CPU Affinity    NUMA AffinityGPU NUMA ID\n"
      "GPU0X      NV18NODENODE    SYS0-27,56-83   0       N/A\n"
      "GPU1    NV18     X      SYSSYS  PIX     28-55,84-111    1N/A\n"
      "NIC0    NODE    SYS      X      PIX     SYS\n"
      "NIC1    NODESYS  PIX     X      SYS\n"
      "NIC2    SYS     PIX     SYS     SYS      X\n");
  EXPECT_EQ(topology.nics.size(), 3u);
  EXPECT_EQ(pair(topology, "GPU0", "GPU1"), "NV18");
  EXPECT_EQ(pair(topology, "GPU0", "NIC1"), "NODE");
  EXPECT_EQ(pair(topology, "GPU1", "NIC2"), "PIX");
  EXPECT_EQ(cpus(topology, 0), "0-27,56-83");
  EXPECT_EQ(numa(topology, 1), 1);
  EXPECT_TRUE(topology.source.complete);
  const auto digits = read("\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tNV180-31\nGPU1\tNV18\tX\t0-31\n");
  EXPECT_EQ(pair(digits, "GPU0", "GPU1"), "NV18");
  EXPECT_EQ(cpus(digits, 0), "0-31");
}

TEST(NvidiaSmiTopo, JoinsWrappedLines) {
  const auto topology = read(
      "        GPU0    GPU1    GPU2    NIC0    CPU \n"
      "Affinity    NUMA Affinity\n"
      "GPU0     X      NV2     NO\n"
      "DE    PIX     0-3,8-\n"
      "11     0\n"
      "GPU1    NV2      X      SYS\n"
      "SYS     4-7,12-15     1\n"
      "GPU2    NODE    SYS      X      SYS     0-3,8-11     0\n"
      "NIC0    PIX     SYS     SYS      X\n"
      "Legend:\n  SYS  = Connection traversing PCIe as well as the SMP interconnect between\n  NUMA nodes\n");
  EXPECT_EQ(pair(topology, "GPU0", "GPU2"), "NODE");
  EXPECT_EQ(pair(topology, "GPU1", "NIC0"), "SYS");
  EXPECT_EQ(cpus(topology, 0), "0-3,8-11");
  EXPECT_EQ(numa(topology, 1), 1);
  EXPECT_TRUE(topology.source.complete);
}

// --- cut-off texts
// -------------------------------------------------------------------------------------------------

const char kWhole[] =
    "        GPU0    GPU1    GPU2    CPU Affinity    NUMA Affinity\n"
    "GPU0     X      NV12    NV12    0-7,16-23       0\n"
    "GPU1    NV12     X      NV12    0-7,16-23       0\n"
    "GPU2    NV12    NV12     X      8-15,24-31      1\n";

TEST(NvidiaSmiTopo, EveryPrefixSaysOnlyWhatIsThere) {
  const std::string text = kWhole;
  const auto whole = read(text);
  EXPECT_TRUE(whole.source.complete);
  for (std::size_t size = text.find("GPU0     X") + 10; size + 1 < text.size(); ++size) {
    SCOPED_TRACE(text.substr(0, size));
    const auto part = parse_nvidia_smi_topo(text.substr(0, size));
    ASSERT_TRUE(part);
    EXPECT_EQ(part->gpus.size(), 3u);
    for (std::size_t g = 0; g < 3; ++g) {
      EXPECT_THAT(cpus(*part, g), testing::AnyOf("null", cpus(whole, g)));
      EXPECT_THAT(numa(*part, g), testing::AnyOf(-7, numa(whole, g)));
    }
    for (const auto* other : {"GPU1", "GPU2"})
      EXPECT_THAT(pair(*part, "GPU0", other), testing::AnyOf("?", "NV12"));
    EXPECT_FALSE(part->source.complete);
    EXPECT_NE(warned(*part, "truncated"), -1);
  }
}

TEST(NvidiaSmiTopo, KnowsPairsThatOneHalfShows) {
  const auto topology = read(
      "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\nGPU0\t X \tPIX\tSYS\tSYS\t0-7\nGPU1\tPIX\t X "
      "\tSYS\tSYS\t0-7\n");
  EXPECT_EQ(pair(topology, "GPU1", "GPU3"), "SYS");
  EXPECT_EQ(pair(topology, "GPU2", "GPU3"), "?");
  EXPECT_EQ(warned(topology, "truncated"), 3);
  EXPECT_THAT(topology.warnings[0].text, HasSubstr("no row for GPU2, GPU3"));
}

TEST(NvidiaSmiTopo, ACutNumberIsNotANumber) {
  const auto topology = read("\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tNV1");
  EXPECT_EQ(pair(topology, "GPU0", "GPU1"), "?");
  const auto blank = read("\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tNV1 ");
  EXPECT_EQ(pair(blank, "GPU0", "GPU1"), "NV1");
  const auto other = read("\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tNV1\tNV2\t0\nGPU1\tNV1");
  EXPECT_EQ(pair(other, "GPU0", "GPU1"), "NV1");
}

TEST(NvidiaSmiTopo, AWholeListAtTheEndCounts) {
  const std::string begin =
      "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tPIX\tSYS\t0-7,16-23\nGPU1\tPIX\t X \tSYS\t";
  EXPECT_EQ(cpus(read(begin + "8-15,24-31"), 1), "8-15,24-31");
  EXPECT_EQ(cpus(read(begin + "8-15,24-3"), 1), "null");
  EXPECT_EQ(cpus(read(begin + "8-15"), 1), "null");
  EXPECT_EQ(cpus(read(begin + "0-7,1"), 1), "null");
  EXPECT_EQ(cpus(read(begin + "8-15,"), 1), "null");
}

TEST(NvidiaSmiTopo, ReadsHalfMatrices) {
  const auto lower = read("      GPU0 GPU1 GPU2\nGPU0  X\nGPU1  NV4  X\nGPU2  SYS  PHB  X\n");
  EXPECT_EQ(pair(lower, "GPU0", "GPU1"), "NV4");
  EXPECT_EQ(pair(lower, "GPU1", "GPU2"), "PHB");
  EXPECT_FALSE(lower.source.complete);
  const auto upper =
      read("      GPU0 GPU1 GPU2\nGPU0  X    NV4  SYS\nGPU1       X    PHB\nGPU2            X\n");
  EXPECT_EQ(pair(upper, "GPU1", "GPU2"), "PHB");
  EXPECT_EQ(pair(upper, "GPU0", "GPU2"), "SYS");
}

TEST(NvidiaSmiTopo, AMissingCellDoesNotMoveTheOthers) {
  const auto topology = read(
      "        GPU0    GPU1    GPU2    NIC0    CPU Affinity\n"
      "GPU0     X      NV4     SYS     PIX     0-7\n"
      "GPU1    NV4      X              PIX     0-7\n"
      "GPU2    SYS     SYS      X      SYS     8-15\n"
      "NIC0    PIX     PIX     SYS      X\n");
  EXPECT_EQ(pair(topology, "GPU1", "GPU2"), "SYS");
  EXPECT_EQ(pair(topology, "GPU1", "NIC0"), "PIX");
  EXPECT_EQ(cpus(topology, 1), "0-7");
  EXPECT_FALSE(topology.source.complete);
}

// --- a lost header
// -------------------------------------------------------------------------------------------------

TEST(NvidiaSmiTopo, InfersDevicesWithoutHeader) {
  const auto topology = read(
      "GPU0     X      NV4     NV4     PIX     SYS     0-15    0               N/A\n"
      "GPU1    NV4      X      NV4     SYS     SYS     0-15    0               N/A\n");
  ASSERT_EQ(topology.gpus.size(), 3u);  // NVLinks end at GPUs
  EXPECT_EQ(pair(topology, "GPU1", "GPU2"), "NV4");
  EXPECT_TRUE(topology.nics.empty());
  EXPECT_EQ(numa(topology, 1), 0);
  EXPECT_FALSE(topology.source.complete);
  EXPECT_EQ(warned(topology, "header-missing"), 1);
}

TEST(NvidiaSmiTopo, RowsAndLegendNameTheColumns) {
  const auto rows = read(
      "GPU0     X      SYS     PIX     0-15\nGPU1    SYS      X      SYS     16-31\nmlx5_2  PIX     SYS      "
      "X\n");
  ASSERT_EQ(rows.nics.size(), 1u);
  EXPECT_EQ(rows.nics[0].name, "mlx5_2");
  EXPECT_EQ(pair(rows, "GPU0", "NIC0"), "PIX");
  const auto legend =
      read("GPU0     X      SYS     PIX     NODE    0-15\n\nNIC Legend:\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n");
  EXPECT_EQ(legend.gpus.size(), 2u);
  ASSERT_EQ(legend.nics.size(), 2u);
  EXPECT_EQ(pair(legend, "GPU0", "NIC1"), "NODE");
}

// --- other matrices
// ------------------------------------------------------------------------------------------------

const char kPeers[] = "\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tNS\tX\n\nLegend:\n  OK  = Status Ok\n";

TEST(NvidiaSmiTopo, OnlyTheFirstTopologyMatrixCounts) {
  const std::string other = replaced(replaced(kWhole, "NV12", "SYS "), "0-7,16-23", "0-3      ");
  for (const auto& text : {std::string(kWhole) + "\n" + kPeers, std::string(kPeers) + "\n" + kWhole,
                           std::string(kWhole) + "\nnode 2\n" + other}) {
    SCOPED_TRACE(text);
    const auto topology = read(text);
    EXPECT_EQ(topology.gpus.size(), 3u);
    EXPECT_EQ(pair(topology, "GPU0", "GPU1"), "NV12");
    EXPECT_EQ(cpus(topology, 0), "0-7,16-23");
    EXPECT_TRUE(topology.source.complete);
  }
  EXPECT_EQ(warned(read(std::string(kWhole) + other), "more-matrices"), 5);
}

TEST(NvidiaSmiTopo, RefusesWhatIsNoMatrix) {
  const auto text_of = [](std::string_view text) {
    const auto result = parse_nvidia_smi_topo(text);
    return result ? std::string("accepted") : result.error().to_string();
  };
  EXPECT_THAT(text_of(kPeers), HasSubstr("topo -p2p"));
  EXPECT_FALSE(looks_like_nvidia_smi_topo(kPeers));
  EXPECT_EQ(text_of("$ nvidia-smi topo -m\nFailed to initialize NVML: Driver/library version mismatch\n"),
            "2: no topology matrix: nvidia-smi said \"Failed to initialize NVML: Driver/library version "
            "mismatch\"");
  for (const char* text : {"", "\n", "GPU0", "GPU0 GPU1", "between GPU0 GPU1 and GPU2 is SYS\n",
                           "GPU0: GPU0 is fine", "\xff\xfe\x01", "GPU[0] : (Topology) Numa Node: 0",
                           "       GPU0         GPU1\nGPU0   0            XGMI\nGPU1   XGMI         0\n"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(looks_like_nvidia_smi_topo(text));
    EXPECT_THAT(text_of(text), HasSubstr("no topology matrix"));
  }
}

TEST(NvidiaSmiTopo, RefusesMoreDevicesThanAnyMachineHas) {
  std::string header;
  for (int i = 0; i < 2000; ++i) header += fmt::format("\tGPU{}", i);
  const auto result = parse_nvidia_smi_topo(header + "\tCPU Affinity\nGPU0\t X \tSYS\n");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::too_large);
  EXPECT_THAT(result.error().text, HasSubstr("2000 devices"));
}

// --- what cannot be true
// -------------------------------------------------------------------------------------------

TEST(NvidiaSmiTopo, WarnsOfContradictions) {
  const auto topology = read(
      "\tGPU0\tGPU1\tGPU2\tNIC0\nGPU0\t X \tNV4\tSYS\tPIX\nGPU1\tNV3\t X "
      "\tSYS\tSYS\nGPU2\tPHB\tSYS\tNV2\tSYS\nNIC0\tPIX\tSYS\tSYS\t X \n");
  EXPECT_EQ(pair(topology, "GPU0", "GPU1"), "NV3") << "each row shows its own GPU's links";
  EXPECT_EQ(pair(topology, "GPU0", "GPU2"), "?");
  EXPECT_EQ(pair(topology, "GPU0", "NIC0"), "PIX");
  EXPECT_EQ(warned(topology, "contradiction"), 3);
  EXPECT_EQ(warned(topology, "self-nvlink"), 4);
}

TEST(NvidiaSmiTopo, WarnsOfUnreadableCells) {
  const auto topology = read(
      "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tN0DE\tSYS\t0-3\nGPU1\tNV999\t X "
      "\tSYS\t0-3\nGPU2\tSYS\tSYS\t X \t4-7\n");
  EXPECT_EQ(pair(topology, "GPU0", "GPU1"), "?");
  EXPECT_EQ(pair(topology, "GPU0", "GPU2"), "SYS");
  EXPECT_EQ(warned(topology, "unreadable-cell"), 2);
  EXPECT_FALSE(topology.source.complete);
}

TEST(NvidiaSmiTopo, WarnsOfImpossibleAffinities) {
  const auto with = [](const std::string& one, const std::string& node) {
    return read("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t" + one +
                "\t0\nGPU1\tSYS\t X \t8-15\t" + node + "\nLegend:\n");
  };
  const auto reversed = with("0-3,23-16", "1");
  EXPECT_EQ(warned(reversed, "reversed-range"), 2);
  EXPECT_EQ(cpus(reversed, 0), "null");
  EXPECT_TRUE(reversed.source.complete);
  EXPECT_EQ(warned(with("0-7,4-5", "1"), "duplicate-cpu"), 2);
  EXPECT_EQ(cpus(with("0-7,4-5", "1"), 0), "0-7");
  EXPECT_EQ(warned(with("0-9", "1"), "affinity-overlap"), 3);
  EXPECT_EQ(warned(with("0-7", "1"), "affinity-overlap"), -1);
  EXPECT_EQ(warned(with("0-99999999999", "1"), "unreadable-affinity"), 2);
  const auto range = with("0-7", "0-1");
  EXPECT_FALSE(range.gpus[1].numa);
  EXPECT_EQ(warned(range, "numa-range"), 3);
  EXPECT_EQ(numa(with("0-7", "-1"), 1), -7);
}

TEST(NvidiaSmiTopo, AGpuThatIsAMemoryNodeListsTheNodesOfItsSide) {
  const auto text = [](const std::string& id) {
    return read("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV18\t0-71\t0,3-9\t\t" +
                id + "\nGPU1\tNV18\t X \t72-143\t1,19-25\t\t" + id + "\nLegend:\n");
  };
  EXPECT_EQ(numa(text("2"), 0), 0);
  EXPECT_EQ(numa(text("18"), 1), 1);
  EXPECT_EQ(warned(text("2"), "numa-range"), -1);
  EXPECT_EQ(warned(text("N/A"), "numa-range"), 2) << "a list without memory of GPUs is a cpuset's";
}

TEST(NvidiaSmiTopo, AGpuWithoutAPrintedListHasItsNodes) {
  const auto topology =
      read("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0-7\t0\nGPU1\tSYS\t X \tN/A\t0\n");
  EXPECT_EQ(cpus(topology, 1), "0-7");
}

// --- links of a GPU
// ------------------------------------------------------------------------------------------------

std::string uniform(int gpus, const std::string& cell) {
  std::string text;
  for (int i = 0; i < gpus; ++i) text += fmt::format("\tGPU{}", i);
  text += "\tCPU Affinity\n";
  for (int i = 0; i < gpus; ++i) {
    text += fmt::format("GPU{}", i);
    for (int j = 0; j < gpus; ++j) text += i == j ? "\t X " : "\t" + cell;
    text += "\t0-7\n";
  }
  return text;
}

TEST(NvidiaSmiTopo, CountsLinksOnlyWhereTheyCanBeKnown) {
  const auto links = [](int gpus, const std::string& cell) {
    return read(uniform(gpus, cell)).gpus[0].nvlinks;
  };
  EXPECT_EQ(links(8, "NV18"), 18);  // behind switches
  EXPECT_EQ(links(8, "NV12"), 12);
  EXPECT_EQ(links(16, "NV6"), 6);
  EXPECT_EQ(links(4, "NV4"), 12);            // a direct mesh
  EXPECT_EQ(links(2, "NV12"), 12);           // either way
  EXPECT_EQ(links(4, "NV6"), std::nullopt);  // 6 behind switches, or 18 direct
  EXPECT_EQ(links(2, "SYS"), std::nullopt);
  const auto cube = read("\tGPU0\tGPU1\tGPU2\nGPU0\tX\tNV1\tNV2\nGPU1\tNV1\tX\tSYS\nGPU2\tNV2\tSYS\tX\n");
  EXPECT_EQ(cube.gpus[0].nvlinks, 3);
  ASSERT_EQ(cube.gpus[0].links.size(), 2u);
  EXPECT_EQ(cube.gpus[0].links[1].to, "GPU2");
  EXPECT_EQ(read(uniform(8, "NV18")).gpus[3].links[0].to, "NVSwitch");
}

// --- size
// ----------------------------------------------------------------------------------------------------------

TEST(NvidiaSmiTopo, LongLinesAndManyLinesCostLittle) {
  std::string one_line(8 << 20, 'x');
  for (std::size_t i = 0; i + 5 < one_line.size(); i += 64) one_line.replace(i, 5, "GPU0 ");
  EXPECT_FALSE(parse_nvidia_smi_topo(one_line));
  std::string many = kWhole;
  for (int i = 0; i < 200000; ++i) many += "node7:12:34 [0] NCCL INFO Channel GPU0 is up\n";
  EXPECT_TRUE(parse_nvidia_smi_topo(many));
}

// A cgroup without the GPU's CPUs, Windows: the CPU list is empty, and the node is not a CPU.
TEST(Topo, AnEmptyAffinityIsNoShiftedOne) {
  const auto tabs = read(
      "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tNV6\tPXB\t0-7\t0\t\tN/A\n"
      "GPU1\tNV6\t X \tSYS\t\t1\t\tN/A\n"
      "NIC0\tPXB\tSYS\t X \t\t\t\t\n");
  EXPECT_EQ(cpus(tabs, 1), "null");
  EXPECT_EQ(numa(tabs, 1), 1);
  EXPECT_EQ(warned(tabs, "truncated"), -1);
  const auto blanks = read(
      "        GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
      "GPU0     X      NV6     PXB     0-7     0               N/A\n"
      "GPU1    NV6      X      SYS             1               N/A\n"
      "NIC0    PXB     SYS      X\n");
  EXPECT_EQ(cpus(blanks, 0), "0-7");
  EXPECT_EQ(cpus(blanks, 1), "null");
  EXPECT_EQ(numa(blanks, 1), 1);
  const auto alone = read("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t\t\t\tN/A\n");
  EXPECT_EQ(cpus(alone, 0), "null");
  EXPECT_EQ(numa(alone, 0), -7);
  EXPECT_EQ(warned(alone, "truncated"), -1);
  const auto old = read("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t\t1\n");
  EXPECT_EQ(cpus(old, 0), "null");
  EXPECT_EQ(numa(old, 0), 1);
}

}  // namespace
}  // namespace topotune::parse
