#include <gtest/gtest.h>

#include "checks/build.h"

namespace topotune::checks::test {
namespace {

std::string bdf_of(int i) { return "0000:" + std::string(1, static_cast<char>('1' + i)) + "0:00.0"; }

// n GPUs with NVSwitch, all links up.
Machine switched(int n, std::uint16_t model = kH100, int links = 18) {
  Machine machine = bare_metal();
  for (int i = 0; i < n; ++i) {
    auto& gpu = add_gpu(machine, bdf_of(i), model);
    gpu.nvlinks = links;
    gpu.nvlinks_capable = links;
    gpu.links = {{"NVSwitch", links, false, {}}};
  }
  return machine;
}

void lose(model::Gpu& gpu, int links) {
  gpu.nvlinks = *gpu.nvlinks - links;
  for (int i = 0; i < links; ++i) gpu.inactive_links.push_back(i);
  gpu.links[0].count = *gpu.nvlinks;
  if (*gpu.nvlinks == 0) gpu.links.clear();
}

TEST(Nvl01, AllLinks) { EXPECT_TRUE(says("NVL01", switched(8)).clean()); }

TEST(Nvl01, LostLinks) {
  Machine machine = switched(8);
  lose(machine.topology.gpus[3], 2);
  const auto said = says("NVL01", machine);
  ASSERT_TRUE(said.one(Severity::error));
  EXPECT_EQ(said.subject(), "GPU3");
  machine.nvlink_disabled = known(true);
  EXPECT_TRUE(says("NVL01", machine).one(Severity::info)) << "switched off on purpose";
}

TEST(Nvl01, AllGpusHaveEquallyFew) {
  Machine machine = switched(4);
  for (auto& gpu : machine.topology.gpus) lose(gpu, 6);
  const auto said = says("NVL01", machine);
  ASSERT_EQ(said.findings.size(), 4U);
  EXPECT_EQ(said.findings[0].severity, Severity::warn) << "no sibling is whole";
  machine.virtual_machine = known(true);
  EXPECT_EQ(says("NVL01", machine).findings[0].severity, Severity::info) << "a slice of a board";
}

TEST(Nvl01, UnknownModelIsComparedWithSiblings) {
  Machine machine = switched(4, 0x7777);
  EXPECT_TRUE(says("NVL01", machine).clean());
  lose(machine.topology.gpus[1], 1);
  EXPECT_TRUE(says("NVL01", machine).one(Severity::warn));
}

TEST(Nvl01, CardsWithAndWithoutBridge) {
  Machine machine = switched(2, kH100Pcie);
  lose(machine.topology.gpus[0], 6);
  lose(machine.topology.gpus[1], 18);
  EXPECT_TRUE(says("NVL01", machine).clean());
}

TEST(Nvl01, ASingleGpu) {
  Machine machine = switched(1);
  lose(machine.topology.gpus[0], 18);
  EXPECT_TRUE(says("NVL01", machine).clean());
}

TEST(Nvl01, MigHidesLinks) {
  Machine machine = switched(2);
  lose(machine.topology.gpus[0], 18);
  machine.topology.gpus[0].mig = true;
  EXPECT_TRUE(says("NVL01", machine).not_evaluated());
}

TEST(Nvl01, ModelsWithoutNvlink) {
  Machine machine = bare_metal();
  add_gpu(machine, bdf_of(0), kRtx4090);
  add_gpu(machine, bdf_of(1), kRtx4090);
  EXPECT_TRUE(says("NVL01", machine).clean());
}

TEST(Nvl01, KnowsModelsByWholeNamesOnly) {
  Machine machine = switched(2);
  for (auto& gpu : machine.topology.gpus) {
    gpu.pci_vendor.reset();
    gpu.pci_device.reset();
    gpu.name = "NVIDIA H100 80GB HBM3";
  }
  lose(machine.topology.gpus[0], 1);
  EXPECT_TRUE(says("NVL01", machine).one(Severity::error));
  machine.topology.gpus[0].name = machine.topology.gpus[1].name = "NVIDIA H100 PCIe";
  EXPECT_TRUE(says("NVL01", machine).clean());
  machine.topology.gpus[0].name = machine.topology.gpus[1].name = "NVIDIA H100 80GB HBM3 of tomorrow";
  EXPECT_TRUE(says("NVL01", machine).one(Severity::warn)) << "an unknown model";
}

TEST(Nvl01, UnreadLinksAreNotClean) {
  Machine machine = switched(2);
  for (auto& gpu : machine.topology.gpus) gpu.nvlinks.reset(), gpu.nvlinks_capable.reset();
  EXPECT_TRUE(says("NVL01", machine).not_evaluated());
}

void all_pairs(Machine& machine, PathType type, std::optional<int> links) {
  const auto& gpus = machine.topology.gpus;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = i + 1; j < gpus.size(); ++j)
      state_path(machine, gpus[i].id, gpus[j].id, type, links);
}

void cut_off(Machine& machine, const std::string& id) {
  for (auto& path : machine.topology.stated)
    if (path.a == id || path.b == id) path.type = PathType::sys, path.nvlinks.reset();
}

TEST(Nvl02, AGpuThatDroppedOut) {
  Machine machine = matrix_of(8);
  all_pairs(machine, PathType::nvl, 18);
  EXPECT_TRUE(says("NVL02", machine).clean());
  cut_off(machine, "GPU5");
  const auto said = says("NVL02", machine);
  ASSERT_TRUE(said.one(Severity::error));
  EXPECT_EQ(said.subject(), "GPU5");
}

TEST(Nvl02, SeveralGpusOutsideOfASwitchedFabric) {
  Machine machine = matrix_of(8);
  all_pairs(machine, PathType::nvl, 18);
  cut_off(machine, "GPU6");
  cut_off(machine, "GPU7");
  const auto said = says("NVL02", machine);
  ASSERT_EQ(said.findings.size(), 2U);
  EXPECT_EQ(said.findings[0].severity, Severity::warn) << "the models are not known";
  for (auto& gpu : machine.topology.gpus) gpu.name = "NVIDIA H100 80GB HBM3";
  EXPECT_EQ(says("NVL02", machine).findings[0].severity, Severity::error);
  machine.topology.gpus[7].name = "NVIDIA T4";
  EXPECT_TRUE(says("NVL02", machine).clean()) << "several models";
  machine.topology.gpus[7].name = "NVIDIA H100 80GB HBM3";
  for (auto& path : machine.topology.stated)
    if (path.nvlinks) path.nvlinks = 1;
  EXPECT_TRUE(says("NVL02", machine).clean()) << "a mesh of six";
}

TEST(Nvl01, ThePairsOfASwitchedFabricTellTheLinksOfAGpu) {
  Machine machine = matrix_of(8);
  all_pairs(machine, PathType::nvl, 12);
  EXPECT_TRUE(says("NVL01", machine).not_evaluated()) << "all may have lost as many";
  for (auto& path : machine.topology.stated)
    if (path.a == "GPU3" || path.b == "GPU3") path.nvlinks = 10;
  const auto said = says("NVL01", machine);
  ASSERT_TRUE(said.one(Severity::warn));
  EXPECT_EQ(said.subject(), "GPU3");
  machine.topology.source.complete = false;
  EXPECT_TRUE(says("NVL01", machine).not_evaluated())
      << "of another GPU, only the pair with GPU3 may be there";
  machine.topology.source.complete = true;
  for (auto& path : machine.topology.stated) path.nvlinks = path.nvlinks == 10 ? 1 : 2;
  EXPECT_TRUE(says("NVL01", machine).not_evaluated()) << "a mesh has different counts";
}

TEST(Nvl02, AGpuOutsideOfTheHive) {
  for (const int gpus : {8, 5}) {
    Machine machine = matrix_of(gpus);
    all_pairs(machine, PathType::xgmi, {});
    cut_off(machine, "GPU4");
    for (auto& path : machine.topology.stated)
      if (path.type == PathType::sys) path.type.reset(), path.links_told = true;  // "PCIE" inside one node
    const auto said = says("NVL02", machine);
    EXPECT_EQ(said.one(Severity::warn), gpus == 8);
    EXPECT_EQ(said.not_evaluated(), gpus == 5) << "four bridged cards and another";
  }
}

TEST(Nvl02, SmallIslandsOfUnknownModelsAreAWarning) {
  Machine machine = matrix_of(4);
  all_pairs(machine, PathType::nvl, 4);
  cut_off(machine, "GPU3");
  EXPECT_TRUE(says("NVL02", machine).one(Severity::warn));
  for (auto& gpu : machine.topology.gpus) gpu.name = "Tesla V100-SXM2-32GB";
  EXPECT_TRUE(says("NVL02", machine).one(Severity::error));
  machine.topology.gpus[3].name = "NVIDIA T4";
  EXPECT_TRUE(says("NVL02", machine).clean()) << "a display card beside a board";
  for (auto& gpu : machine.topology.gpus) gpu.name = "NVIDIA RTX A6000";
  EXPECT_TRUE(says("NVL02", machine).clean()) << "cards";
}

TEST(Nvl02, BridgedPairsAreNoIslandOfMost) {
  Machine machine = matrix_of(3);
  all_pairs(machine, PathType::sys, {});
  machine.topology.stated[0].type = PathType::nvl;
  EXPECT_TRUE(says("NVL02", machine).clean());
}

TEST(Nvl02, CutTextsProveNothing) {
  Machine machine = matrix_of(8);
  all_pairs(machine, PathType::nvl, 18);
  cut_off(machine, "GPU7");
  machine.topology.stated.back().type.reset();  // GPU6-GPU7
  machine.topology.source.complete = false;
  EXPECT_TRUE(says("NVL02", machine).not_evaluated());
}

TEST(Nvl02, AllLinksOfOneGpuAreInactive) {
  Machine machine = switched(2);
  lose(machine.topology.gpus[1], 18);
  EXPECT_TRUE(says("NVL02", machine).one(Severity::error));
  EXPECT_TRUE(says("NVL02", switched(1)).clean());
}

TEST(Nvl03, OnePairIsBridged) {
  Machine machine = matrix_of(4);
  all_pairs(machine, PathType::sys, {});
  for (std::size_t i = 0; i < 4; ++i) machine.topology.gpus[i].numa = i < 2 ? 0 : 1;
  machine.topology.stated[0].type = PathType::nvl;
  machine.topology.stated[0].nvlinks = 4;
  EXPECT_TRUE(says("NVL03", machine).one(Severity::info));
  EXPECT_EQ(says("NVL03", machine).subject(), "GPU2-GPU3");
  machine.topology.gpus[3].numa = 2;
  EXPECT_TRUE(says("NVL03", machine).clean()) << "different nodes";
  machine.topology.gpus[3].numa = 1;
  machine.topology.gpus[2].name = "NVIDIA A10";
  machine.topology.gpus[0].name = "NVIDIA A40";
  EXPECT_TRUE(says("NVL03", machine).clean()) << "the pairs differ in model";
  machine.topology.gpus[2].name = machine.topology.gpus[0].name = {};
  machine.topology.stated[0].type = PathType::sys;
  EXPECT_TRUE(says("NVL03", machine).clean()) << "no bridge at all";
}

TEST(Nvl03, OddNumbers) {
  Machine machine = matrix_of(3);
  all_pairs(machine, PathType::node, {});
  machine.topology.stated[0].type = PathType::nvl;
  for (auto& gpu : machine.topology.gpus) gpu.numa = 0;
  EXPECT_TRUE(says("NVL03", machine).clean());
}

TEST(Nvl04, PartialContact) {
  Machine machine = matrix_of(2);
  for (auto& gpu : machine.topology.gpus) gpu.name = "NVIDIA RTX A6000";
  state_path(machine, "GPU0", "GPU1", PathType::nvl, 3);
  EXPECT_TRUE(says("NVL04", machine).one(Severity::warn));
  machine.topology.stated[0].nvlinks = 4;
  EXPECT_TRUE(says("NVL04", machine).clean());
  for (auto& gpu : machine.topology.gpus) gpu.name = "NVIDIA H100 PCIe";
  machine.topology.stated[0].nvlinks = 12;
  EXPECT_TRUE(says("NVL04", machine).clean());
  machine.topology.stated[0].nvlinks = 18;
  EXPECT_TRUE(says("NVL04", machine).clean()) << "more than three bridges carry";
  for (auto& gpu : machine.topology.gpus) gpu.name.reset();
  machine.topology.stated[0].nvlinks = 3;
  EXPECT_TRUE(says("NVL04", machine).not_evaluated()) << "a model that may have three links";
}

TEST(Nvl04, OtherBridgesOfTheMachineTell) {
  Machine machine = matrix_of(4);
  all_pairs(machine, PathType::sys, {});
  machine.topology.stated[0].type = machine.topology.stated[5].type = PathType::nvl;
  machine.topology.stated[0].nvlinks = 4;
  machine.topology.stated[5].nvlinks = 3;
  const auto said = says("NVL04", machine);
  ASSERT_TRUE(said.one(Severity::warn));
  EXPECT_EQ(said.subject(), "GPU2-GPU3");
}

TEST(Nvl04, MeshesHaveDifferentCounts) {
  Machine machine = matrix_of(4);
  all_pairs(machine, PathType::nvl, 2);
  machine.topology.stated[0].nvlinks = 1;
  EXPECT_TRUE(says("NVL04", machine).clean());
}

TEST(Nvl05, LinkSpeeds) {
  Machine machine = switched(1);
  EXPECT_TRUE(says("NVL05", machine).not_evaluated());
  for (int i = 0; i < 18; ++i) machine.topology.gpus[0].link_speeds[i] = GBytesPerSec{26.562};
  EXPECT_TRUE(says("NVL05", machine).clean());
  machine.topology.gpus[0].link_speeds[4] = GBytesPerSec{13.281};
  const auto said = says("NVL05", machine);
  ASSERT_TRUE(said.one(Severity::warn));
  EXPECT_EQ(said.subject(), "GPU0 link 4");
  for (auto& [link, speed] : machine.topology.gpus[0].link_speeds) speed = GBytesPerSec{13.281};
  EXPECT_EQ(says("NVL05", machine).findings.size(), 18U) << "all below the model's";
  machine.topology.gpus[0].pci_device = 0x7777;
  EXPECT_TRUE(says("NVL05", machine).clean()) << "unknown model: links are compared only";
}

model::GpuState fabric(const std::string& gpu, int state, int status = 0, std::uint32_t health = 0) {
  model::GpuState out;
  out.gpu = gpu;
  out.fabric_state = state;
  out.fabric_status = status;
  out.fabric_health_mask = health;
  out.clique = "0";
  out.cluster_uuid = "00000000-0000-0000-0000-000000000000";
  return out;
}

TEST(Nvl07, FabricStates) {
  Machine machine = switched(2);
  EXPECT_TRUE(says("NVL07", machine).not_evaluated());
  machine.gpu_states = {fabric("GPU0", 3), fabric("GPU1", 3)};
  EXPECT_TRUE(says("NVL07", machine).clean()) << "zero clique and uuid are normal on one node";
  machine.gpu_states[1].fabric_state = 1;
  EXPECT_TRUE(says("NVL07", machine).one(Severity::error));
  machine.gpu_states[1].fabric_state = 2;
  EXPECT_TRUE(says("NVL07", machine).one(Severity::warn)) << "in progress: read again";
  machine.gpu_states[1].fabric_state = 0;
  EXPECT_TRUE(says("NVL07", machine).clean()) << "not supported";
  machine.gpu_states[1] = fabric("GPU1", 3, 15);
  EXPECT_TRUE(says("NVL07", machine).one(Severity::error)) << "status";
}

TEST(Nvl07, HealthMasks) {
  Machine machine = switched(2);
  constexpr std::uint32_t kAllFalse = 0x1aa;  // four facts false, no wrong configuration
  machine.gpu_states = {fabric("GPU0", 3, 0, kAllFalse), fabric("GPU1", 3, 0, kAllFalse)};
  EXPECT_TRUE(says("NVL07", machine).clean());
  machine.gpu_states[0].fabric_health_mask = 0x1a9;
  EXPECT_TRUE(says("NVL07", machine).one(Severity::warn)) << "bandwidth degraded";
  machine.gpu_states[0].fabric_health_mask = 0x1a6;
  EXPECT_TRUE(says("NVL07", machine).one(Severity::warn)) << "route recovery in progress";
  machine.gpu_states[0].fabric_health_mask = 0x19a;
  EXPECT_TRUE(says("NVL07", machine).one(Severity::error)) << "route unhealthy";
  machine.gpu_states[0].fabric_health_mask = 0x2aa;
  EXPECT_TRUE(says("NVL07", machine).one(Severity::error)) << "wrong configuration";
}

TEST(Nvl07, CliquesOfOneNodeAgree) {
  Machine machine = switched(3);
  machine.gpu_states = {fabric("GPU0", 3), fabric("GPU1", 3), fabric("GPU2", 3)};
  machine.gpu_states[2].clique = "5";
  const auto said = says("NVL07", machine);
  ASSERT_TRUE(said.one(Severity::error));
  EXPECT_EQ(said.subject(), "GPU2");
  machine.topology.gpus[0].mig = true;
  EXPECT_TRUE(says("NVL07", machine).clean());
}

TEST(Nvl07, CardsHaveNoFabric) {
  Machine machine = switched(2, kH100Pcie);
  machine.gpu_states = {fabric("GPU0", 1), fabric("GPU1", 1)};
  EXPECT_TRUE(says("NVL07", machine).clean());
}

Machine with_switches(std::uint16_t device) {
  Machine machine = switched(2);
  auto& sw = add_pci(machine, "0000:c0:00.0", PciKind::nvswitch);
  sw.vendor = 0x10de;
  sw.device = device;
  return machine;
}

TEST(Nvl08, FabricManager) {
  Machine machine = with_switches(0x22a3);
  EXPECT_TRUE(says("NVL08", machine).not_evaluated());
  machine.fabric_manager = known<std::string>("inactive");
  EXPECT_TRUE(says("NVL08", machine).one(Severity::error));
  machine.fabric_manager = known<std::string>("active");
  EXPECT_TRUE(says("NVL08", machine).not_evaluated()) << "versions unknown";
  machine.fabric_manager_version = known<std::string>("550.54.15");
  machine.nvidia_driver = known<std::string>("550.54.15");
  EXPECT_TRUE(says("NVL08", machine).clean());
  machine.fabric_manager_version = known<std::string>("550.54.14");
  EXPECT_TRUE(says("NVL08", machine).one(Severity::error));
  machine.container = known(true);
  EXPECT_TRUE(says("NVL08", machine).not_evaluated());
  EXPECT_TRUE(says("NVL08", switched(8)).clean()) << "no NVSwitch visible";
  EXPECT_TRUE(says("NVL08", with_switches(0x9999)).clean()) << "a generation that is managed outside";
}

TEST(Nvl09, FabricManagerWithoutSwitch) {
  Machine machine = bare_metal();
  machine.fabric_manager = known<std::string>("failed");
  EXPECT_TRUE(says("NVL09", machine).one(Severity::info));
  machine.fabric_manager = known<std::string>("not installed");
  EXPECT_TRUE(says("NVL09", machine).clean());
  machine = with_switches(0x22a3);
  machine.fabric_manager = known<std::string>("failed");
  EXPECT_TRUE(says("NVL09", machine).clean());
}

TEST(Nvl10, Imex) {
  Machine machine = switched(4);
  EXPECT_TRUE(says("NVL10", machine).not_evaluated());
  machine.gpu_states = {fabric("GPU0", 3)};
  EXPECT_TRUE(says("NVL10", machine).clean()) << "a zero uuid: one node";
  machine.gpu_states[0].cluster_uuid = "12345678-0000-0000-0000-000000000000";
  EXPECT_TRUE(says("NVL10", machine).not_evaluated());
  machine.imex_service = known<std::string>("inactive");
  EXPECT_TRUE(says("NVL10", machine).one(Severity::warn));
  machine.imex_service = known<std::string>("active");
  machine.imex_channel = known(false);
  EXPECT_TRUE(says("NVL10", machine).one(Severity::warn));
  machine.imex_channel = known(true);
  EXPECT_TRUE(says("NVL10", machine).clean());
}

Said log_says(const std::string& rule, std::vector<std::string> lines) {
  Machine machine;
  machine.topology.source.kind = SourceKind::text;
  machine.kernel_log = known(std::move(lines));
  return says(rule, machine);
}

TEST(Nvl11, SwitchErrors) {
  EXPECT_TRUE(says("NVL11", bare_metal()).not_evaluated());
  EXPECT_TRUE(log_says("NVL11", {"usb 1-1: new device"}).clean());
  const auto mild = log_says(
      "NVL11",
      {"nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error"});
  ASSERT_TRUE(mild.one(Severity::warn));
  EXPECT_EQ(mild.subject(), "0000:07:00.0");
  EXPECT_TRUE(
      log_says("NVL11", {"nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"})
          .one(Severity::error));
  EXPECT_TRUE(
      log_says("NVL11", {"nvidia-nvswitch0: SXid (PCI:0000:07:00.0): 1, multicast team release"}).clean());
}

TEST(Nvl11, TheFabricManagersLines) {
  const std::string head = "[Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch ";
  const std::string tail = " on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61";
  const auto fatal = log_says("NVL11", {head + "fatal error 20034" + tail});
  ASSERT_TRUE(fatal.one(Severity::error));
  EXPECT_EQ(fatal.subject(), "0000:86:00.0");
  EXPECT_TRUE(log_says("NVL11", {head + "non-fatal error 12028" + tail}).one(Severity::warn));
  EXPECT_EQ(log_says("NVL11", {head + "fatal error 1"}).subject(), "NVSwitch") << "a line that is cut";
  EXPECT_TRUE(log_says("NVL11", {"[ERROR] [tid 1] failed to open NVSwitch"}).clean());
  EXPECT_TRUE(log_says("GPU03", {head + "fatal error 20034" + tail}).not_evaluated()) << "no word of GPUs";
  EXPECT_TRUE(log_says("GPU03", {head + "fatal error 20034" + tail, "usb 1-1: new device"}).clean());
}

TEST(Nvl13, Mig) {
  Machine machine = switched(2);
  EXPECT_TRUE(says("NVL13", machine).not_evaluated());
  for (auto& gpu : machine.topology.gpus) gpu.mig = false;
  EXPECT_TRUE(says("NVL13", machine).clean());
  machine.topology.gpus[0].mig = true;
  EXPECT_TRUE(says("NVL13", machine).one(Severity::info)) << "no job is known";
  EXPECT_TRUE(says("NVL13", machine, {}, {}, true).one(Severity::warn));
}

TEST(Nvl14, Multicast) {
  Machine machine = switched(2);
  machine.gpu_states = {fabric("GPU0", 3), fabric("GPU1", 3)};
  EXPECT_TRUE(says("NVL14", machine).not_evaluated());
  for (auto& state : machine.gpu_states) state.multicast = true;
  EXPECT_TRUE(says("NVL14", machine).clean());
  machine.gpu_states[1].multicast = false;
  EXPECT_TRUE(says("NVL14", machine).one(Severity::warn));
  machine.container = known(true);
  EXPECT_TRUE(says("NVL14", machine).clean());
  machine.container = known(false);
  machine.topology.gpus[1].pci_device = 0x20b2;
  EXPECT_TRUE(says("NVL14", machine).clean()) << "A100 has none";
  machine.topology.gpus[1].pci_device = kH100Pcie;
  EXPECT_TRUE(says("NVL14", machine).clean()) << "cards";
}

// ---- GPU

Machine counted(int on_bus, int in_driver) {
  Machine machine = switched(on_bus);
  std::vector<std::string> bus;
  for (int i = 0; i < on_bus; ++i) bus.push_back(bdf_of(i));
  machine.nvidia_pci_gpus = known(bus);
  machine.nvml_gpu_count = known(in_driver);
  for (int i = 0; i < in_driver; ++i) {
    machine.gpu_states.push_back({});
    machine.gpu_states.back().gpu = "GPU" + std::to_string(i);
  }
  return machine;
}

TEST(Gpu01, AMissingGpu) {
  EXPECT_TRUE(says("GPU01", counted(4, 4)).clean());
  const auto said = says("GPU01", counted(4, 3));
  ASSERT_TRUE(said.one(Severity::error));
  EXPECT_EQ(said.subject(), bdf_of(3));
}

TEST(Gpu01, WhoHoldsIt) {
  Machine machine = counted(4, 3);
  pci(machine, bdf_of(3)).driver = "vfio-pci";
  EXPECT_TRUE(says("GPU01", machine).clean());
  pci(machine, bdf_of(3)).driver = "nouveau";
  EXPECT_TRUE(says("GPU01", machine).clean());
  pci(machine, bdf_of(3)).driver.reset();
  EXPECT_TRUE(says("GPU01", machine).one(Severity::error)) << "the driver holds others of this model";
  pci(machine, bdf_of(3)).device = 0x0fff;
  EXPECT_TRUE(says("GPU01", machine).one(Severity::info))
      << "perhaps a card that the driver does not support";
}

TEST(Gpu01, HiddenOrUnread) {
  Machine machine = counted(4, 3);
  machine.container = known(true);
  EXPECT_TRUE(says("GPU01", machine).not_evaluated());
  machine = counted(4, 3);
  machine.nvml_gpu_count = Fact<int>::missing("not found");
  EXPECT_TRUE(says("GPU01", machine).not_evaluated());
}

TEST(Gpu02, RefusedP2p) {
  Machine machine = switched(2);
  EXPECT_TRUE(says("GPU02", machine).not_evaluated());
  machine.p2p = {{"GPU0", "GPU1", "read", "OK"}};
  EXPECT_TRUE(says("GPU02", machine).clean());
  machine.p2p = {{"GPU0", "GPU1", "read", "CNS"}, {"GPU1", "GPU0", "write", "CNS"}};
  EXPECT_TRUE(says("GPU02", machine).one(Severity::warn)) << "once a pair";
  machine.virtual_machine = known(true);
  EXPECT_TRUE(says("GPU02", machine).one(Severity::info)) << "passthrough";
  machine.virtual_machine = known(false);
  machine.topology.gpus[0].mig = true;
  EXPECT_TRUE(says("GPU02", machine).clean());
  machine.topology.gpus[0].mig = false;
  machine.topology.gpus[0].pci_device = kV100;
  EXPECT_TRUE(says("GPU02", machine).clean()) << "different models";
}

TEST(Gpu02, GeforceAndFarPairs) {
  Machine machine = bare_metal();
  add_pci(machine, "0000:00:01.0", PciKind::bridge);
  add_gpu(machine, bdf_of(0), kRtx4090, "0000:00:01.0");
  add_gpu(machine, bdf_of(1), kRtx4090, "0000:00:01.0");
  machine.p2p = {{"GPU0", "GPU1", "read", "GNS"}};
  EXPECT_TRUE(says("GPU02", machine).one(Severity::info)) << "not supported by design";
  Machine far = matrix_of(2);
  state_path(far, "GPU0", "GPU1", PathType::sys);
  far.p2p = {{"GPU0", "GPU1", "read", "CNS"}};
  EXPECT_TRUE(says("GPU02", far).clean()) << "the pair shares no switch";
}

std::string xid(int code, const std::string& rest = ", pid=1") {
  return "[ 1.0] NVRM: Xid (PCI:0000:9b:00): " + std::to_string(code) + rest;
}

TEST(Gpu03, Xids) {
  EXPECT_TRUE(says("GPU03", bare_metal()).not_evaluated());
  EXPECT_TRUE(log_says("GPU03", {}).clean());
  for (const int code : {48, 64, 79, 95, 109, 110, 119, 120, 136, 140, 143, 155, 158, 74, 144, 150})
    EXPECT_TRUE(log_says("GPU03", {xid(code)}).one(Severity::error)) << code;
  for (const int code : {63, 94, 123, 156, 157})
    EXPECT_TRUE(log_says("GPU03", {xid(code)}).one(Severity::warn)) << code;
  for (const int code : {13, 31, 43}) EXPECT_TRUE(log_says("GPU03", {xid(code)}).one(Severity::info)) << code;
  EXPECT_TRUE(log_says("GPU03", {xid(45)}).clean());
  EXPECT_EQ(log_says("GPU03", {xid(119)}).subject(), "0000:9b:00.0");
  EXPECT_TRUE(log_says("GPU03", {xid(119), xid(119)}).one(Severity::error)) << "once a GPU and code";
}

TEST(Gpu03, NonfatalAndRecoveryActions) {
  EXPECT_TRUE(log_says("GPU03", {xid(145, ", RLW nonfatal error")}).one(Severity::warn));
  EXPECT_TRUE(log_says("GPU03", {xid(74, ", NVLink: corrected error")}).one(Severity::warn));
  EXPECT_TRUE(
      log_says("GPU03",
               {xid(154, ", GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")})
          .one(Severity::error));
  EXPECT_TRUE(
      log_says("GPU03",
               {xid(154, ", GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)")})
          .one(Severity::error));
  EXPECT_TRUE(
      log_says("GPU03", {xid(154, ", GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)")})
          .one(Severity::error));
  EXPECT_TRUE(
      log_says("GPU03", {xid(154, ", GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)")})
          .one(Severity::warn));
  EXPECT_TRUE(
      log_says("GPU03",
               {xid(154, ", GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")})
          .one(Severity::info));
}

TEST(Gpu04, Slowdowns) {
  Machine machine = switched(1);
  EXPECT_TRUE(says("GPU04", machine).not_evaluated());
  machine.gpu_states.push_back({});
  machine.gpu_states[0].gpu = "GPU0";
  machine.gpu_states[0].clock_event_reasons = 0x1 | 0x2 | 0x4;
  EXPECT_TRUE(says("GPU04", machine).clean()) << "idle, application clocks, power cap";
  for (const std::uint64_t bit : {0x8U, 0x20U, 0x40U, 0x80U}) {
    machine.gpu_states[0].clock_event_reasons = bit;
    EXPECT_TRUE(says("GPU04", machine).one(Severity::warn)) << bit;
  }
}

TEST(Nvl01, OneOfSeveralAloneInTheText) {
  Machine machine = switched(1);
  lose(machine.topology.gpus[0], 18);
  machine.topology.gpus[0].index = 6;
  EXPECT_TRUE(says("NVL01", machine).one(Severity::warn)) << "GPU 6 is not a single GPU";
}

TEST(Gpu03, ALossIsToldWithoutAnXidToo) {
  Machine machine = bare_metal();
  const std::string lost =
      "NVRM: The NVIDIA GPU 0000:b3:00.0 fallen off the bus and is not responding to commands.";
  machine.kernel_log = known<std::vector<std::string>>({lost});
  const auto said = says("GPU03", machine);
  ASSERT_TRUE(said.one(Severity::error));
  EXPECT_EQ(said.subject(), "0000:b3:00.0");
  machine.kernel_log =
      known<std::vector<std::string>>({"NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.", lost});
  EXPECT_TRUE(says("GPU03", machine).one(Severity::error)) << "said once";
  machine.kernel_log =
      known<std::vector<std::string>>({"NVRM: GPU 0000:b3:00.0: RmInitAdapter failed! (0x26:0x56:1463)"});
  EXPECT_TRUE(says("GPU03", machine).one(Severity::warn));
}

TEST(Nvl02, AGpuWhoseLinksAreAllInactiveWithoutNames) {
  Machine machine = switched(4);
  auto& dark = machine.topology.gpus[2];
  dark.nvlinks = 0;
  dark.nvlinks_capable.reset();
  dark.inactive_links.clear();
  dark.link_speeds.clear();
  EXPECT_TRUE(says("NVL01", machine).one(Severity::error));
  EXPECT_TRUE(says("NVL02", machine).one(Severity::error));
}

TEST(Gpu03, TheStateOfTheGpuTellsWithoutALog) {
  Machine machine = bare_metal();
  add_gpu(machine, bdf_of(0), kH100);
  machine.gpu_states.emplace_back();
  auto& state = machine.gpu_states.back();
  state.gpu = "GPU0";
  const auto with = [&](const char* key, const char* value) {
    state.other = {{"source", "q.txt:3"}, {key, value}};
    return says("GPU03", machine);
  };
  EXPECT_TRUE(with("GPU Recovery Action", "None").not_evaluated()) << "no kernel log was read";
  EXPECT_TRUE(with("GPU Recovery Action", "Reset").one(Severity::error));
  EXPECT_TRUE(with("GPU Recovery Action", "Drain P2P").one(Severity::warn));
  EXPECT_TRUE(with("Remapping Failure Occurred", "Yes").one(Severity::error));
  EXPECT_TRUE(with("Remapping Failure Occurred", "No").not_evaluated());
  EXPECT_TRUE(with("Remapped Rows Pending", "Yes").one(Severity::warn));
  EXPECT_TRUE(with("Pending Page Blacklist", "Yes").one(Severity::warn));
  EXPECT_TRUE(with("Reset Required", "Yes").one(Severity::error));
  EXPECT_TRUE(with("GPU is lost", "Yes").one(Severity::error));
}

TEST(Gpu03, AGpuThatNvidiaSmiCannotRead) {
  Machine machine = switched(2);
  machine.gpu_states = {{}, {}};
  machine.gpu_states[1].gpu = "GPU1";
  machine.gpu_states[1].other["Name"] = "ERR!";
  const auto row = says("GPU03", machine);
  ASSERT_TRUE(row.one(Severity::warn));
  EXPECT_EQ(row.subject(), "GPU1");
  machine.gpu_states.clear();
  const std::string head = "Unable to determine the device handle for GPU";
  machine.nvml_error =
      known<std::string>(head + " 0000:4F:00.0: GPU is lost.  Reboot the system to recover this GPU");
  const auto lost = says("GPU03", machine);
  ASSERT_TRUE(lost.one(Severity::error));
  EXPECT_EQ(lost.subject(), "0000:4f:00.0");
  machine.nvml_error = known<std::string>(head + "0000:4F:00.0: Unknown Error");
  EXPECT_TRUE(says("GPU03", machine).one(Severity::warn));
  EXPECT_EQ(says("GPU03", machine).subject(), "0000:4f:00.0");
  for (const auto* other :
       {"Failed to initialize NVML: Driver/library version mismatch", "No devices were found"}) {
    machine.nvml_error = known<std::string>(other);
    EXPECT_TRUE(says("GPU03", machine).not_evaluated()) << other;
  }
}

TEST(Gpu03, AChannelThatAnEarlierXidEndedTellsThatOne) {
  Machine machine = bare_metal();
  machine.kernel_log = known<std::vector<std::string>>(
      {"kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=1, name=a, Ch 00000001 caused by previous Xid 149",
       "kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=1, name=a, Ch 00000002 caused by previous Xid 149"});
  const auto said = says("GPU03", machine);
  ASSERT_TRUE(said.one(Severity::error));
  EXPECT_EQ(said.findings[0].observed, "Xid 149");
  machine.kernel_log =
      known<std::vector<std::string>>({"NVRM: Xid (PCI:0000:dc:00): 45, pid=1, Ch 00000001"});
  EXPECT_TRUE(says("GPU03", machine).clean());
}

}  // namespace
}  // namespace topotune::checks::test
