#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "discover/discover.h"
#include "fake_host.h"
#include "model/paths.h"

namespace topotune::discover {
namespace {

using Json = nlohmann::ordered_json;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

std::string address(int i) { return fmt::format("0000:{:02x}:00.0", 0x10 + i); }

Json link(int number, const std::string& type, const std::string& to) {
  return {{"link", number},
          {"active", true},
          {"gbytes_per_s", 26.562},
          {"remote_type", type},
          {"remote_bus_id", to}};
}

Json nvml_gpu(int i) {
  return {{"index", i},
          {"name", "NVIDIA H100 80GB HBM3"},
          {"pci", {{"bus_id", "0000" + address(i)}, {"vendor", 0x10de}, {"device", 0x2330}}},
          {"compute_capability", {9, 0}},
          {"fabric",
           {{"state", 3},
            {"status", 0},
            {"clique_id", 0},
            {"cluster_uuid", "00000000-0000-0000-0000-000000000000"}}},
          {"nvlink_count", 18},
          {"nvlinks", Json::array()}};
}

// `count` GPUs on the bus and in NVML, each with 18 links over four NVSwitches.
struct Node {
  FakeHost host;
  Json nvml{{"schema", "topotune.probe.nvml/1"}, {"driver_version", "580.95.05"}, {"gpu_count", 0}};

  explicit Node(int count) {
    nvml["gpu_count"] = count;
    for (int i = 0; i < count; ++i) {
      host.pci(fmt::format("pci0000:{:02x}/0000:{:02x}:01.0/{}", 8 + i, 8 + i, address(i)), "0x030200",
               "0x10de", "0x2330", i < count / 2 ? "0" : "1");
      nvml["gpus"].push_back(nvml_gpu(i));
      for (int l = 0; l < 18; ++l)
        nvml["gpus"][static_cast<std::size_t>(i)]["nvlinks"].push_back(
            link(l, "switch", fmt::format("00000000:{:02X}:00.0", 0x40 + l % 4)));
    }
  }
  model::Machine discover_it() {
    host.probes["nvml"] = nvml.dump();
    return discover(host);
  }
};

TEST(DiscoverGpu, EightGpusOverNvswitches) {
  Node node(8);
  const auto machine = node.discover_it();
  const auto& topology = machine.topology;
  ASSERT_EQ(topology.gpus.size(), 8u);
  EXPECT_EQ(topology.gpus[7].id, "GPU7");
  EXPECT_EQ(topology.gpus[7].nvlinks, 18);
  EXPECT_EQ(topology.gpus[7].nvlinks_capable, 18);
  EXPECT_EQ(topology.gpus[7].links.size(), 4u);
  EXPECT_EQ(topology.gpus[7].sm, 90);
  EXPECT_EQ(topology.gpus[7].numa, 1);
  const auto paths = model::paths_of(topology);
  ASSERT_EQ(paths.size(), 28u);
  for (const auto& path : paths) {
    EXPECT_EQ(path.type, model::PathType::nvl);
    EXPECT_EQ(path.nvlinks, 18);
  }
  EXPECT_EQ(model::islands_of(topology, paths).size(), 1u);
  EXPECT_EQ(machine.gpu_states.size(), 8u);
  EXPECT_EQ(machine.gpu_states[0].fabric_state, 3);
}

TEST(DiscoverGpu, GuestsSeeSwitchesWithoutAddress) {
  Node node(2);
  for (auto& gpu : node.nvml["gpus"])
    for (auto& one : gpu["nvlinks"]) one["remote_bus_id"] = "FFFFFFFF:FF:FF.0";
  const auto topology = node.discover_it().topology;
  const auto paths = model::paths_of(topology);
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_EQ(paths[0].type, model::PathType::nvl);
  EXPECT_EQ(paths[0].nvlinks, 18);
}

TEST(DiscoverGpu, DirectLinksNameTheirPeer) {
  Node node(2);
  node.nvml["gpus"][0]["nvlinks"] = {link(0, "gpu", "0000" + address(1)),
                                     link(1, "gpu", "0000" + address(1))};
  node.nvml["gpus"][1]["nvlinks"] = {link(0, "gpu", "0000" + address(0)),
                                     link(1, "gpu", "0000" + address(0))};
  const auto topology = node.discover_it().topology;
  ASSERT_EQ(topology.gpus[0].links.size(), 1u);
  EXPECT_EQ(topology.gpus[0].links[0].to, "GPU1");
  EXPECT_EQ(topology.gpus[0].links[0].count, 2);
}

TEST(DiscoverGpu, InactiveLinksAreNumbered) {
  Node node(2);
  node.nvml["gpus"][0]["nvlinks"][17] = {{"link", 17}, {"active", false}};
  const auto topology = node.discover_it().topology;
  EXPECT_EQ(topology.gpus[0].nvlinks, 17);
  EXPECT_THAT(topology.gpus[0].inactive_links, testing::ElementsAre(17));
}

TEST(DiscoverGpu, UnreadableLinkLeavesTheCountUnknown) {
  Node node(2);
  node.nvml["gpus"][0]["nvlinks"][17] = {{"link", 17}, {"error", "Unknown Error"}};
  EXPECT_EQ(node.discover_it().topology.gpus[0].nvlinks, std::nullopt);
}

TEST(DiscoverGpu, GpuWithoutNvlinkHasNone) {
  Node node(2);
  for (auto& gpu : node.nvml["gpus"]) gpu["nvlink_count"] = gpu["nvlinks"] = {{"error", "Not Supported"}};
  const auto topology = node.discover_it().topology;
  EXPECT_EQ(topology.gpus[0].nvlinks, 0);
  EXPECT_EQ(model::paths_of(topology).at(0).type, model::PathType::sys);
}

TEST(DiscoverGpu, LostGpuStaysInTheList) {
  Node node(2);
  node.nvml["gpus"][1] = {{"index", 1}, {"error", "GPU is lost"}};
  const auto machine = node.discover_it();
  EXPECT_THAT(machine.diagnostics, Contains(Field(&model::Warning::text, HasSubstr("GPU is lost"))));
  EXPECT_THAT(machine.topology.gpus, Contains(Field(&model::Gpu::bdf, std::optional(address(1)))));
}

TEST(DiscoverGpu, GpuThatTheDriverDoesNotCountIsADiagnostic) {
  Node node(2);
  node.nvml["gpus"].erase(1);
  node.nvml["gpu_count"] = 1;
  const auto machine = node.discover_it();
  ASSERT_EQ(machine.topology.gpus.size(), 2u);
  EXPECT_EQ(machine.topology.gpus[1].bdf, address(1));
  EXPECT_EQ(*machine.nvml_gpu_count, 1);
  EXPECT_EQ(machine.nvidia_pci_gpus->size(), 2u);
  EXPECT_THAT(machine.diagnostics, Contains(Field(&model::Warning::code, "gpu-not-in-nvml")));
}

TEST(DiscoverGpu, AbsentDriverLeavesTheBus) {
  Node node(4);
  const auto machine = discover(node.host);
  ASSERT_EQ(machine.topology.gpus.size(), 4u);
  EXPECT_EQ(machine.topology.gpus[2].nvlinks, std::nullopt);
  EXPECT_EQ(machine.nvml_gpu_count.why, "not found");
}

TEST(DiscoverGpu, FailedInitKeepsItsText) {
  Node node(1);
  node.host.errors["nvml"] =
      Error{Errc::unsupported, "nvmlInit_v2: Driver/library version mismatch", {}, {}, {}, {}};
  const auto machine = discover(node.host);
  ASSERT_TRUE(machine.nvml_error);
  EXPECT_THAT(*machine.nvml_error, HasSubstr("mismatch"));
}

TEST(DiscoverGpu, UnreadableAnswerIsADiagnostic) {
  Node node(1);
  node.host.probes["nvml"] = "{\"schema\":";
  const auto machine = discover(node.host);
  EXPECT_EQ(machine.topology.gpus.size(), 1u);
  EXPECT_THAT(machine.diagnostics, Contains(Field(&model::Warning::code, "nvml")));
}

TEST(DiscoverGpu, P2pMatrix) {
  Node node(2);
  node.nvml["p2p"] = {{{"from", 0}, {"to", 1}, {"read", "CNS"}, {"write", {{"error", "Unknown Error"}}}}};
  const auto p2p = node.discover_it().p2p;
  ASSERT_EQ(p2p.size(), 1u);
  EXPECT_EQ(p2p[0].from, "GPU0");
  EXPECT_EQ(p2p[0].status, "CNS");
}

TEST(DiscoverXgmi, LinksOfTheComputeDriver) {
  FakeHost host;
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes/";
  host.files[nodes + "0/properties"] = "simd_count 0\n";
  for (const int i : {1, 2}) {
    host.pci(fmt::format("pci0000:0{}/0000:0{}:01.0/0000:1{}:00.0", i, i, i), "0x120000", "0x1002", "0x74a1");
    const auto node = nodes + std::to_string(i) + "/";
    host.files[node + "properties"] =
        fmt::format("simd_count 1216\nlocation_id {}\ngfx_target_version 90402\n", (0x10 + i) << 8);
    host.files[node + "io_links/0/properties"] = "type 2\nnode_to 0\n";
    host.files[node + "io_links/1/properties"] =
        fmt::format("type 11\nnode_to {}\nmin_bandwidth 64000\nmax_bandwidth 64000\n", 3 - i);
  }
  const auto topology = discover(host).topology;
  ASSERT_EQ(topology.gpus.size(), 2u);
  EXPECT_EQ(topology.gpus[0].sm, 942);
  ASSERT_EQ(topology.gpus[0].links.size(), 1u);
  EXPECT_EQ(topology.gpus[0].links[0].to, "GPU1");
  EXPECT_EQ(model::paths_of(topology).at(0).type, model::PathType::xgmi);
}

TEST(DiscoverFabric, DriverParameterAndVersions) {
  Node node(2);
  node.host.pci("pci0000:50/0000:50:01.0/0000:51:00.0", "0x068000", "0x10de", "0x22a3");
  node.host.files["/proc/driver/nvidia/params"] = "ResmanDebugLevel: 0\nNvLinkDisable: 1\n";
  node.host.programs["nv-fabricmanager"] = "Fabric Manager version is : 580.95.05\n";
  const auto machine = node.discover_it();
  EXPECT_EQ(*machine.nvlink_disabled, true);
  EXPECT_EQ(*machine.fabric_manager_version, "580.95.05");
  EXPECT_FALSE(machine.imex_channel) << "one machine needs no IMEX";
}

TEST(DiscoverFabric, RackMachinesNeedImex) {
  Node node(2);
  for (auto& gpu : node.nvml["gpus"]) gpu["fabric"]["cluster_uuid"] = "12345678-0000-0000-0000-000000000000";
  node.host.programs["systemctl"] = "LoadState=loaded\nActiveState=failed\n";
  const auto machine = node.discover_it();
  EXPECT_EQ(*machine.imex_channel, false);
  EXPECT_EQ(*machine.imex_service, "inactive");
}

}  // namespace
}  // namespace topotune::discover
