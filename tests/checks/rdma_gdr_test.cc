#include <gtest/gtest.h>

#include "checks/build.h"

namespace topotune::checks::test {
namespace {

using model::RdmaPort;

// ---- RDMA

Machine rails(int count, const std::string& layer = "InfiniBand") {
  Machine machine = gpu_and_nic_on_a_switch(layer);
  for (int i = 1; i < count; ++i) {
    const auto port = "0000:02:1" + std::to_string(i) + ".0";
    add_pci(machine, port, PciKind::bridge, "0000:01:00.0").pcie_switch_port = true;
    add_nic(machine, "0000:1" + std::to_string(i) + ":00.0", port, layer);
  }
  return machine;
}

TEST(Rdma01, UserSpaceDrivers) {
  Machine machine = rails(1);
  pci(machine, "0000:04:00.0").driver = "mlx5_core";
  EXPECT_TRUE(says("RDMA01", machine).clean());
  pci(machine, "0000:04:00.0").driver = "uio_pci_generic";
  EXPECT_TRUE(says("RDMA01", machine).one(Severity::error));
  pci(machine, "0000:04:00.0").driver = "igb_uio";
  EXPECT_TRUE(says("RDMA01", machine).one(Severity::error));
  pci(machine, "0000:04:00.0").driver = "vfio-pci";
  EXPECT_TRUE(says("RDMA01", machine).one(Severity::warn));
  pci(machine, "0000:03:00.0").driver = "vfio-pci";
  EXPECT_TRUE(says("RDMA01", machine).clean()) << "a host that passes its devices on";
  pci(machine, "0000:04:00.0").driver = "uio_pci_generic";
  pci(machine, "0000:04:00.0").vendor = 0x8086;
  EXPECT_TRUE(says("RDMA01", machine).clean()) << "DPDK on another card";
}

TEST(Rdma01, FarNicsMayBeForDpdk) {
  Machine machine = bare_metal();
  add_gpu(machine, "0000:03:00.0", kH100);
  add_nic(machine, "0001:04:00.0");
  pci(machine, "0001:04:00.0").driver = "uio_pci_generic";
  EXPECT_TRUE(says("RDMA01", machine).clean());
}

void take_down(RdmaPort& port) {
  port.state = "DOWN";
  port.phys_state = "Polling";
  port.gbits_per_s = 10;
}

TEST(Rdma02, ADeadRail) {
  Machine machine = rails(2);
  EXPECT_TRUE(says("RDMA02", machine).clean());
  take_down(machine.ports[1]);
  const auto said = says("RDMA02", machine);
  ASSERT_TRUE(said.one(Severity::error));
  EXPECT_EQ(said.subject(), "mlx5_1");
  machine.virtual_machine = known(true);
  EXPECT_TRUE(says("RDMA02", machine).one(Severity::warn)) << "paths may be hidden";
}

TEST(Rdma02, WhatIsNoDeadRail) {
  Machine machine = rails(2);
  take_down(machine.ports[1]);
  machine.ports[1].board_id = "MT_OTHER";
  EXPECT_TRUE(says("RDMA02", machine).clean()) << "no sibling of this model";
  machine.ports[1].board_id = "MT_0838";
  machine.ports[1].phys_state = "Disabled";
  EXPECT_TRUE(says("RDMA02", machine).clean()) << "disabled on purpose";
  machine.ports[1].phys_state = "Polling";
  machine.ports[0].system_image_guid = machine.ports[1].system_image_guid = "0xabc";
  machine.ports[1].lid = 65535;
  EXPECT_TRUE(says("RDMA02", machine).clean()) << "second port of one card";
  machine.ports[1].system_image_guid = "0xdef";
  EXPECT_TRUE(says("RDMA02", machine).one(Severity::error)) << "another card";
  take_down(machine.ports[0]);
  EXPECT_TRUE(says("RDMA02", machine).clean()) << "no active sibling: RDMA03";
  machine.ports[1].state.reset();
  EXPECT_TRUE(says("RDMA02", machine).not_evaluated());
}

TEST(Rdma02, ManagementPorts) {
  Machine machine = rails(1);
  take_down(add_nic(machine, "0001:00:00.0"));
  EXPECT_TRUE(says("RDMA02", machine).clean()) << "not near a GPU";
}

TEST(Rdma02, WithoutPathsItIsAWarning) {
  Machine machine;
  machine.topology.source.kind = SourceKind::text;
  EXPECT_TRUE(says("RDMA02", machine).not_evaluated());
  for (const auto* name : {"mlx5_0", "mlx5_1"}) {
    RdmaPort port;
    port.device = name;
    port.state = "ACTIVE";
    port.gbits_per_s = 200;
    port.board_id = "A";
    machine.ports.push_back(port);
  }
  take_down(machine.ports[1]);
  EXPECT_TRUE(says("RDMA02", machine).one(Severity::warn));
}

TEST(Rdma03, NoActivePort) {
  Machine machine = rails(2);
  EXPECT_TRUE(says("RDMA03", machine).clean());
  for (auto& port : machine.ports) take_down(port);
  EXPECT_TRUE(says("RDMA03", machine).one(Severity::warn));
  EXPECT_TRUE(says("RDMA03", machine, {}, {}, true).one(Severity::error));
  machine.ports[0].state.reset();
  EXPECT_TRUE(says("RDMA03", machine).not_evaluated());
  EXPECT_TRUE(says("RDMA03", bare_metal()).clean());
  Machine unread;
  EXPECT_TRUE(says("RDMA03", unread).not_evaluated());
}

TEST(Rdma04, SlowPorts) {
  Machine machine = rails(2);
  EXPECT_TRUE(says("RDMA04", machine).clean());
  machine.ports[1].gbits_per_s = 200;
  EXPECT_TRUE(says("RDMA04", machine).one(Severity::warn));
  machine.ports[0].system_image_guid = machine.ports[1].system_image_guid = "0xabc";
  EXPECT_TRUE(says("RDMA04", machine).one(Severity::info)) << "one card's two ports";
  machine.ports[0].system_image_guid.reset();
  machine.ports[1].board_id = "OTHER";
  EXPECT_TRUE(says("RDMA04", machine).clean()) << "another model";
  machine.ports[1].gbits_per_s.reset();
  EXPECT_TRUE(says("RDMA04", machine).not_evaluated());
}

TEST(Rdma05, RoceMtu) {
  Machine machine = rails(1, "Ethernet");
  EXPECT_TRUE(says("RDMA05", machine).clean());
  machine.ports[0].active_mtu = 1024;
  EXPECT_TRUE(says("RDMA05", machine).one(Severity::warn));
  machine.ports[0].link_layer = "InfiniBand";
  EXPECT_TRUE(says("RDMA05", machine).clean());
  machine.ports[0].link_layer = "Ethernet";
  machine.ports[0].active_mtu.reset();
  EXPECT_TRUE(says("RDMA05", machine).not_evaluated());
  add_nic(machine, "0001:00:00.0", {}, "Ethernet").active_mtu = 1024;
  machine.ports[0].active_mtu = 4096;
  EXPECT_TRUE(says("RDMA05", machine).clean()) << "management NIC";
}

TEST(Rdma06, DifferentMtu) {
  Machine machine = rails(2);
  EXPECT_TRUE(says("RDMA06", machine).clean());
  machine.ports[1].active_mtu = 2048;
  EXPECT_TRUE(says("RDMA06", machine).one(Severity::warn));
  EXPECT_EQ(says("RDMA06", machine).subject(), "mlx5_1");
  machine.ports[1].link_layer = "Ethernet";
  EXPECT_TRUE(says("RDMA06", machine).clean()) << "different fabrics";
}

TEST(Rdma08, TwoLinkLayers) {
  Machine machine = rails(2);
  EXPECT_TRUE(says("RDMA08", machine).clean());
  machine.ports[1].link_layer = "Ethernet";
  EXPECT_TRUE(says("RDMA08", machine).one(Severity::warn));
  take_down(machine.ports[1]);
  EXPECT_TRUE(says("RDMA08", machine).clean()) << "the odd one is down";
  machine = rails(1);
  add_nic(machine, "0001:00:00.0", {}, "Ethernet");
  EXPECT_TRUE(says("RDMA08", machine).one(Severity::info)) << "the odd one is no rail";
}

Machine with_gids(std::vector<model::Gid> gids) {
  Machine machine = rails(1, "Ethernet");
  machine.ports[0].gids = std::move(gids);
  machine.ports[0].gids_known = true;
  return machine;
}

const model::Gid kLinkLocal{0, "fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2", "eth0"};
const model::Gid kRoutable{3, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2", "eth0"};
const model::Gid kOld{2, "0000:0000:0000:0000:0000:ffff:0a00:0001", "IB/RoCE v1", "eth0"};

TEST(Rdma09, RoutableGids) {
  EXPECT_TRUE(says("RDMA09", with_gids({kLinkLocal, kRoutable})).clean());
  EXPECT_TRUE(says("RDMA09", with_gids({})).one(Severity::error));
  EXPECT_TRUE(says("RDMA09", with_gids({kLinkLocal})).one(Severity::warn));
  EXPECT_TRUE(says("RDMA09", with_gids({kOld})).one(Severity::warn));
}

TEST(Rdma09, WhatIsNotJudged) {
  auto machine = with_gids({});
  machine.ports[0].gids_known = false;
  EXPECT_TRUE(says("RDMA09", machine).not_evaluated()) << "a cut table";
  machine.ports[0].gids_known = true;
  machine.ports[0].link_layer = "InfiniBand";
  EXPECT_TRUE(says("RDMA09", machine).clean());
  machine.ports[0].link_layer = "Ethernet";
  take_down(machine.ports[0]);
  EXPECT_TRUE(says("RDMA09", machine).clean()) << "not active";
}

Said nccl08(const Machine& machine, std::optional<std::map<std::string, std::string>> environment,
            const std::string& nccl = {}) {
  Evidence evidence;
  evidence.machine = &machine;
  evidence.nccl_version = nccl;
  evidence.environment = std::move(environment);
  return said_in(run(evidence), "NCCL08");
}

TEST(Nccl08, TheIndexThatIsSet) {
  const auto machine = with_gids({kLinkLocal, kOld, kRoutable});
  EXPECT_TRUE(nccl08(machine, {{{"NCCL_IB_GID_INDEX", "3"}}}).clean());
  const auto local = nccl08(machine, {{{"NCCL_IB_GID_INDEX", "0"}}});
  ASSERT_TRUE(local.one(Severity::warn));
  EXPECT_EQ(local.findings[0].expected, "index 3");
  EXPECT_TRUE(nccl08(machine, {{{"NCCL_IB_GID_INDEX", "2"}}}).one(Severity::warn)) << "RoCE v1";
  EXPECT_TRUE(nccl08(machine, {{{"NCCL_IB_GID_INDEX", "7"}}}).one(Severity::error)) << "empty";
}

TEST(Nccl08, TheIndexThatIsNotSet) {
  const auto machine = with_gids({kLinkLocal, kRoutable});
  EXPECT_TRUE(nccl08(machine, {}).not_evaluated());
  EXPECT_TRUE(nccl08(machine, std::map<std::string, std::string>{}).not_evaluated()) << "version unknown";
  EXPECT_TRUE(nccl08(machine, std::map<std::string, std::string>{}, "2.21.5").clean());
  EXPECT_TRUE(nccl08(machine, std::map<std::string, std::string>{}, "2.20.5").one(Severity::warn)) << "index 0";
  EXPECT_TRUE(nccl08(machine, {}, "2.20.5").not_evaluated());
}

TEST(Nccl08, WhereItDoesNotMatter) {
  auto machine = with_gids({kLinkLocal});
  machine.ports[0].link_layer = "InfiniBand";
  EXPECT_TRUE(nccl08(machine, {{{"NCCL_IB_GID_INDEX", "0"}}}).clean());
  machine = with_gids({});
  machine.ports[0].gids_known = false;
  EXPECT_TRUE(nccl08(machine, {{{"NCCL_IB_GID_INDEX", "3"}}}).not_evaluated());
}

TEST(Rdma10, SubnetManager) {
  Machine machine = rails(1);
  machine.ports[0].sm_lid = 1;
  EXPECT_TRUE(says("RDMA10", machine).clean());
  machine.ports[0].state = "INIT";
  EXPECT_TRUE(says("RDMA10", machine).one(Severity::warn)) << "one reading";
  machine.ports[0].link_layer = "Ethernet";
  EXPECT_TRUE(says("RDMA10", machine).clean());
  machine.ports[0].link_layer = "InfiniBand";
  machine.ports[0].phys_state = "Polling";
  EXPECT_TRUE(says("RDMA10", machine).clean()) << "the link is down";
  machine.ports[0].state = "ACTIVE";
  machine.ports[0].sm_lid = 0;
  EXPECT_TRUE(says("RDMA10", machine).one(Severity::warn));
}

TEST(Rdma11, SoftwareDevices) {
  Machine machine = rails(1);
  EXPECT_TRUE(says("RDMA11", machine).clean());
  RdmaPort port;
  port.device = "siw0";
  machine.ports.push_back(port);
  EXPECT_TRUE(says("RDMA11", machine).one(Severity::info));
}

TEST(Rdma12, Efa) {
  Machine machine = bare_metal();
  EXPECT_TRUE(says("RDMA12", machine).clean());
  auto& efa = add_pci(machine, "0000:04:00.0", PciKind::nic);
  efa.vendor = 0x1d0f;
  efa.device = 0xefa1;
  EXPECT_TRUE(says("RDMA12", machine).not_evaluated());
  machine.modules = known<std::map<std::string, std::string>>({{"ena", ""}});
  EXPECT_TRUE(says("RDMA12", machine).one(Severity::error));
  machine.container = known(true);
  EXPECT_TRUE(says("RDMA12", machine).not_evaluated());
  machine.container = known(false);
  machine.modules = known<std::map<std::string, std::string>>({{"efa", "2.1"}});
  EXPECT_TRUE(says("RDMA12", machine).clean());
}

TEST(Qos02, PfcAndEcn) {
  Machine machine = rails(1, "Ethernet");
  EXPECT_TRUE(says("QOS02", machine).not_evaluated());
  machine.ports[0].pfc_priorities = 0;
  machine.ports[0].ecn = false;
  EXPECT_TRUE(says("QOS02", machine).one(Severity::warn));
  machine.ports[0].ecn = true;
  EXPECT_TRUE(says("QOS02", machine).one(Severity::info));
  machine.ports[0].pfc_priorities = 8;
  EXPECT_TRUE(says("QOS02", machine).clean());
  machine.ports[0].pfc_priorities = 0;
  machine.ports[0].ecn = false;
  machine.ports[0].adaptive_retransmission = true;
  EXPECT_TRUE(says("QOS02", machine).clean()) << "lossy by design";
  EXPECT_TRUE(says("QOS02", rails(1)).clean()) << "InfiniBand";
}

TEST(Counters, NeedTwoReadings) {
  for (const auto* rule : {"CTR01", "CTR02", "CTR03", "CTR04", "CTR05", "CTR06"}) {
    EXPECT_TRUE(says(rule, rails(1)).not_evaluated()) << rule;
    EXPECT_TRUE(says(rule, bare_metal()).clean()) << rule << " without an RDMA NIC";
  }
}

// ---- GPUDirect

using Modules = std::map<std::string, std::string>;

Machine without_path() {
  Machine machine = rails(1);
  machine.peermem = Fact<std::string>::missing("not found");
  machine.memory_peers = Fact<std::vector<std::string>>::missing("not found");
  machine.dmabuf = known(false);
  return machine;
}

TEST(Gdr01, NoKernelPath) {
  EXPECT_TRUE(says("GDR01", without_path()).one(Severity::error));
  Machine machine = without_path();
  machine.peermem = known<std::string>("550");
  EXPECT_TRUE(says("GDR01", machine).clean());
  machine = without_path();
  machine.memory_peers = known<std::vector<std::string>>({"nv_mem"});
  EXPECT_TRUE(says("GDR01", machine).clean());
  machine = without_path();
  machine.dmabuf = known(true);
  EXPECT_TRUE(says("GDR01", machine).clean());
}

TEST(Gdr01, DmaBufNotProbed) {
  Machine machine = without_path();
  machine.dmabuf = Fact<bool>::missing("not captured");
  EXPECT_TRUE(says("GDR01", machine).one(Severity::warn));
  machine.nvidia_open_kernel_module = known(false);
  EXPECT_TRUE(says("GDR01", machine).one(Severity::error)) << "closed modules have no DMA-BUF";
  machine.nvidia_open_kernel_module = known(true);
  machine.kernel = known<std::string>("5.4.0-100");
  EXPECT_TRUE(says("GDR01", machine).one(Severity::error)) << "the kernel is too old";
  machine.kernel = known<std::string>("5.15.0");
  machine.cuda_driver = known<std::string>("11.6");
  EXPECT_TRUE(says("GDR01", machine).one(Severity::error)) << "CUDA is too old";
}

TEST(Gdr01, NotApplicable) {
  Machine machine = without_path();
  machine.topology.gpus[0].pci_device = kRtx4090;
  EXPECT_TRUE(says("GDR01", machine).clean()) << "GeForce";
  machine = without_path();
  take_down(machine.ports[0]);
  EXPECT_TRUE(says("GDR01", machine).clean()) << "no active rail";
  machine = without_path();
  pci(machine, "0000:04:00.0").vendor = 0x1d0f;
  pci(machine, "0000:04:00.0").device = 0xefa2;
  EXPECT_TRUE(says("GDR01", machine).clean()) << "EFA";
  machine = without_path();
  machine.peermem = Fact<std::string>::missing("denied");
  EXPECT_TRUE(says("GDR01", machine).not_evaluated());
  machine = without_path();
  machine.ports.clear();
  machine.rdma_read = Fact<bool>::missing("not captured");
  EXPECT_TRUE(says("GDR01", machine).not_evaluated());
}

Machine far_nic() {
  Machine machine = bare_metal();
  add_nodes(machine, 1);
  add_gpu(machine, "0000:03:00.0", kH100);
  add_nic(machine, "0000:04:00.0");
  machine.peermem = Fact<std::string>::missing("not found");
  machine.dmabuf = known(false);
  return machine;
}

TEST(Gdr01, BeyondTheHostBridge) {
  Machine machine = far_nic();
  EXPECT_TRUE(says("GDR01", machine).one(Severity::info)) << "off by default there";
  machine.virtual_machine = known(true);
  EXPECT_TRUE(says("GDR01", machine).one(Severity::warn)) << "the path may be hidden";
}

TEST(Gdr02, NotRegistered) {
  Machine machine = rails(1);
  EXPECT_TRUE(says("GDR02", machine).not_evaluated());
  machine.peermem = known<std::string>("550");
  machine.memory_peers = known<std::vector<std::string>>({});
  machine.dmabuf = known(false);
  EXPECT_TRUE(says("GDR02", machine).one(Severity::warn));
  machine.memory_peers = known<std::vector<std::string>>({"nv_mem"});
  EXPECT_TRUE(says("GDR02", machine).clean());
  machine.memory_peers = known<std::vector<std::string>>({});
  machine.dmabuf = known(true);
  EXPECT_TRUE(says("GDR02", machine).clean());
  machine.dmabuf = known(false);
  machine.memory_peers = Fact<std::vector<std::string>>::missing("not found");
  EXPECT_TRUE(says("GDR02", machine).not_evaluated()) << "inbox stacks have no such directory";
  machine.peermem = Fact<std::string>::missing("not found");
  EXPECT_TRUE(says("GDR02", machine).clean()) << "not loaded";
}

TEST(Gdr03, OldNccl) {
  Machine machine = rails(1);
  machine.peermem = known<std::string>("550");
  machine.memory_peers = known<std::vector<std::string>>({"other"});
  machine.dmabuf = known(false);
  EXPECT_TRUE(says("GDR03", machine).not_evaluated()) << "version unknown";
  EXPECT_TRUE(says("GDR03", machine, {}, "2.20.5").one(Severity::error));
  EXPECT_TRUE(says("GDR03", machine, {}, "2.22.3").one(Severity::error));
  EXPECT_TRUE(says("GDR03", machine, {}, "2.23.4").clean());
  machine.memory_peers = known<std::vector<std::string>>({"nvidia-peermem"});
  EXPECT_TRUE(says("GDR03", machine, {}, "2.20.5").clean());
  EXPECT_TRUE(says("GDR03", machine, {}, "2.22.3").one(Severity::error));
  machine.memory_peers = known<std::vector<std::string>>({"nv_mem_nc"});
  EXPECT_TRUE(says("GDR03", machine, {}, "2.22.3").clean());
  machine.dmabuf = known(true);
  machine.memory_peers = known<std::vector<std::string>>({});
  EXPECT_TRUE(says("GDR03", machine, {}, "2.20.5").clean());
}

Machine two_gpus_one_near(bool nvlink) {
  Machine machine = matrix_of(2);
  model::Nic nic;
  nic.id = "NIC0";
  nic.name = "mlx5_0";
  machine.topology.nics.push_back(nic);
  state_path(machine, "GPU0", "GPU1", nvlink ? PathType::nvl : PathType::sys);
  state_path(machine, "GPU0", "NIC0", PathType::pix);
  state_path(machine, "GPU1", "NIC0", PathType::sys);
  return machine;
}

TEST(Gdr04, NoNicNear) {
  const auto said = says("GDR04", two_gpus_one_near(false));
  ASSERT_TRUE(said.one(Severity::warn));
  EXPECT_EQ(said.subject(), "GPU1");
  EXPECT_TRUE(says("GDR04", two_gpus_one_near(true)).one(Severity::info)) << "PXN";
  Machine machine = two_gpus_one_near(false);
  machine.topology.stated[2].type = PathType::pxb;
  EXPECT_TRUE(says("GDR04", machine).clean());
  machine.topology.stated[1].type = machine.topology.stated[2].type = PathType::node;
  EXPECT_TRUE(says("GDR04", machine).clean()) << "no GPU has one";
  machine = two_gpus_one_near(false);
  machine.topology.stated[2].type.reset();
  EXPECT_TRUE(says("GDR04", machine).not_evaluated());
  EXPECT_TRUE(says("GDR04", matrix_of(2)).clean()) << "no NIC";
  machine = two_gpus_one_near(false);
  machine.topology.gpus[1].c2c = model::C2cLink{1, {}};
  machine.topology.stated[2].type = PathType::node;
  EXPECT_TRUE(says("GDR04", machine).clean()) << "P2C";
}

TEST(Gdr07, OldModule) {
  Machine machine = bare_metal();
  EXPECT_TRUE(says("GDR07", machine).not_evaluated());
  machine.modules = known<Modules>({{"nvidia", "550"}});
  EXPECT_TRUE(says("GDR07", machine).clean());
  machine.modules = known<Modules>({{"nv_peer_mem", "1.2"}});
  machine.nvidia_driver = known<std::string>("470.57.02");
  EXPECT_TRUE(says("GDR07", machine).one(Severity::warn));
  machine.nvidia_driver = known<std::string>("460.32");
  EXPECT_TRUE(says("GDR07", machine).clean());
}

}  // namespace
}  // namespace topotune::checks::test
