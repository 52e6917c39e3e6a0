#include <gtest/gtest.h>

#include "checks/build.h"

// A fact that nobody read is never "checked, clean": each rule without each fact that its condition needs.
namespace topotune::checks::test {
namespace {

model::RdmaPort port(const std::string& device, double gbits = 400) {
  model::RdmaPort out;
  out.device = device;
  out.state = "ACTIVE";
  out.phys_state = "LinkUp";
  out.link_layer = "Ethernet";
  out.gbits_per_s = gbits;
  out.active_mtu = 4096;
  out.hca_type = "MT4129";
  out.firmware = "28.39.1002";
  out.pfc_priorities = 8;
  out.ecn = true;
  return out;
}

// Two ports of a text, without paths; with `paths`, each at PIX of a GPU.
Machine two_ports(bool paths = false) {
  Machine machine;
  machine.topology.source.kind = SourceKind::text;
  machine.rdma_read = known(true);
  machine.ports = {port("mlx5_0"), port("mlx5_1")};
  if (!paths) return machine;
  machine.topology = matrix_of(2).topology;
  for (int i = 0; i < 2; ++i) {
    model::Nic nic;
    nic.index = i;
    nic.id = "NIC" + std::to_string(i);
    nic.name = "mlx5_" + std::to_string(i);
    machine.topology.nics.push_back(nic);
    for (int gpu = 0; gpu < 2; ++gpu)
      state_path(machine, "GPU" + std::to_string(gpu), nic.id, gpu == i ? PathType::pix : PathType::node);
  }
  state_path(machine, "GPU0", "GPU1", PathType::nvl, 18);
  return machine;
}

void take_down(model::RdmaPort& port) {
  port.state = "DOWN";
  port.phys_state = "Polling";
  port.gbits_per_s = 10;
}

TEST(Unread, CardModelOfAPortThatIsDown) {
  auto machine = two_ports(true);
  take_down(machine.ports[1]);
  EXPECT_TRUE(says("RDMA02", machine).one(Severity::warn)) << "CA type and firmware are equal";
  machine.ports[1].hca_type = "MT4127";
  EXPECT_TRUE(says("RDMA02", machine).clean()) << "another type";
  machine.ports[1].hca_type = "MT4129";
  machine.ports[1].firmware = "28.36.0000";
  EXPECT_TRUE(says("RDMA02", machine).not_evaluated()) << "the type does not decide";
  machine.ports[1].hca_type.reset();
  EXPECT_TRUE(says("RDMA02", machine).not_evaluated());
  machine.ports[0].board_id = machine.ports[1].board_id = "A";
  EXPECT_TRUE(says("RDMA02", machine).one(Severity::error));
  machine.ports[1].board_id = "B";
  EXPECT_TRUE(says("RDMA02", machine).clean());
}

TEST(Unread, WithoutPathsTheTypeDoesNotMakeARail) {
  auto machine = two_ports();
  take_down(machine.ports[1]);
  EXPECT_TRUE(says("RDMA02", machine).not_evaluated()) << "it may be the storage port";
  machine.ports[1].phys_state = "Disabled";
  EXPECT_TRUE(says("RDMA02", machine).clean());
  machine.ports[1] = port("mlx5_1", 25);
  machine.ports[1].hca_type = "MT4127";
  for (const auto* rule : {"RDMA02", "RDMA04"}) EXPECT_TRUE(says(rule, machine).clean()) << rule;
}

TEST(Unread, CardModelOfASlowPort) {
  auto machine = two_ports(true);
  EXPECT_TRUE(says("RDMA04", machine).clean());
  machine.ports[1].gbits_per_s = 200;
  EXPECT_TRUE(says("RDMA04", machine).one(Severity::info)) << "by type: an upper limit";
  machine.ports[1].firmware.reset();
  EXPECT_TRUE(says("RDMA04", machine).not_evaluated());
  machine.ports[1].hca_type = "MT4127";
  EXPECT_TRUE(says("RDMA04", machine).clean());
}

TEST(Unread, FactsOfPorts) {
  constexpr const char* kRules[] = {"RDMA04", "RDMA05", "RDMA06", "QOS02"};
  for (const bool paths : {false, true}) {
    const auto whole = two_ports(paths);
    for (const auto* rule : kRules) {
      EXPECT_TRUE(says(rule, whole).clean()) << rule;
      auto machine = whole;
      machine.ports[1].state.reset();
      EXPECT_TRUE(says(rule, machine).not_evaluated()) << rule << " without state";
      machine = whole;
      machine.ports[1].link_layer.reset();
      if (std::string_view(rule) != "RDMA04") {
        EXPECT_TRUE(says(rule, machine).not_evaluated()) << rule << " without link layer";
      }
      machine = whole;
      machine.ports[1].gbits_per_s.reset();
      if (!paths) {
        EXPECT_TRUE(says(rule, machine).not_evaluated()) << rule << " without rate and path";
      }
      machine.ports[1].state = "DOWN";
      if (!paths) {
        EXPECT_TRUE(says(rule, machine).clean()) << rule << ": it carries nothing";
      }
    }
  }
  auto machine = two_ports();
  machine.ports[1].state.reset();
  EXPECT_TRUE(says("RDMA08", machine).not_evaluated());
}

TEST(Unread, PortsOfARail) {
  auto machine = two_ports(true);
  machine.topology.nics[1].name.reset();
  for (const auto* rule : {"RDMA05", "RDMA06", "QOS02"})
    EXPECT_TRUE(says(rule, machine).not_evaluated()) << rule << ": which port NIC1 has is not told";
}

TEST(Unread, RailsOfAJob) {
  auto machine = two_ports();
  const auto said = [&](const char* rule, const char* name, const char* value) {
    Evidence evidence;
    evidence.machine = &machine;
    evidence.environment = std::map<std::string, std::string>{{name, value}};
    return said_in(run(evidence), rule);
  };
  for (auto& one : machine.ports) one.dscp_priority[26] = 3;
  EXPECT_TRUE(said("QOS04", "NCCL_IB_TC", "106").clean());
  EXPECT_TRUE(said("NCCL10", "NCCL_IB_HCA", "mlx5").clean());
  for (auto& one : machine.ports) one.gbits_per_s.reset();
  EXPECT_TRUE(said("QOS04", "NCCL_IB_TC", "106").not_evaluated());
  EXPECT_TRUE(said("NCCL10", "NCCL_IB_HCA", "mlx5").not_evaluated());
}

TEST(Unread, ModelOfTheGpus) {
  auto machine = two_ports(true);
  machine.peermem = Fact<std::string>::missing("not found");
  machine.dmabuf = known(false);
  EXPECT_TRUE(says("GDR01", machine).not_evaluated());
  for (auto& gpu : machine.topology.gpus) gpu.pci_vendor = 0x1002;
  EXPECT_TRUE(says("GDR01", machine).clean()) << "AMD's driver has its own way";
  for (auto& gpu : machine.topology.gpus) {
    gpu.pci_vendor = 0x10de;
    gpu.pci_device = kH100;
  }
  EXPECT_TRUE(says("GDR01", machine).one(Severity::error));
  for (auto& gpu : machine.topology.gpus) gpu.pci_device = 0x7777;
  EXPECT_TRUE(says("GDR01", machine).not_evaluated()) << "a model that is not known";
  machine.peermem = known<std::string>("550");
  EXPECT_TRUE(says("GDR01", machine).clean());
}

TEST(Unread, PathsToNics) {
  auto machine = two_ports(true);
  for (auto& path : machine.topology.stated)
    if (path.type == PathType::pix) path.type = PathType::node;
  EXPECT_TRUE(says("GDR04", machine).clean()) << "no GPU has one near";
  machine.topology.stated[0].type.reset();
  EXPECT_TRUE(says("GDR04", machine).not_evaluated());
}

Machine pair_of(std::optional<PathType> type, const std::string& capability, const std::string& status) {
  auto machine = matrix_of(2);
  if (type) state_path(machine, "GPU0", "GPU1", *type);
  machine.p2p = {{"GPU0", "GPU1", capability, status}};
  return machine;
}

TEST(Unread, FactsOfP2p) {
  EXPECT_TRUE(says("GPU02", pair_of(PathType::pix, "read", "CNS")).one(Severity::warn));
  EXPECT_TRUE(says("GPU02", pair_of(PathType::pix, "", "CNS")).not_evaluated()) << "capability";
  EXPECT_TRUE(says("GPU02", pair_of(PathType::sys, "", "CNS")).clean()) << "far in any case";
  EXPECT_TRUE(says("GPU02", pair_of({}, "read", "CNS")).not_evaluated()) << "path";
  EXPECT_TRUE(says("GPU02", pair_of(PathType::pix, "read", "U")).not_evaluated()) << "status";
  EXPECT_TRUE(says("GPU02", pair_of(PathType::pix, "atomics", "NS")).not_evaluated()) << "reads and writes";
  EXPECT_TRUE(says("GPU02", pair_of(PathType::pix, "", "OK")).clean());
}

TEST(Unread, PathsBetweenGpus) {
  auto machine = matrix_of(4);
  for (int i = 0; i < 4; ++i)
    for (int j = i + 1; j < 4; ++j)
      state_path(machine, "GPU" + std::to_string(i), "GPU" + std::to_string(j), PathType::sys);
  for (const auto* rule : {"NVL02", "NVL03", "NVL04"}) {
    EXPECT_TRUE(says(rule, machine).clean()) << rule;
    auto one = machine;
    one.topology.stated[3].type.reset();
    EXPECT_TRUE(says(rule, one).not_evaluated()) << rule << " without one pair";
    one = machine;
    one.topology.source.complete = false;
    EXPECT_TRUE(says(rule, one).not_evaluated()) << rule << " of a text that is cut";
    one.topology.stated.clear();
    EXPECT_TRUE(says(rule, one).not_evaluated()) << rule << " without any";
  }
}

TEST(Unread, NumberOfLinksOfAPair) {
  auto machine = matrix_of(2);
  state_path(machine, "GPU0", "GPU1", PathType::nvl);
  EXPECT_TRUE(says("NVL04", machine).not_evaluated());
}

TEST(Unread, TheTwoGpusOfAMachineAreEachOthersPeers) {
  auto machine = matrix_of(2);
  for (auto& gpu : machine.topology.gpus) {
    gpu.name = "NVIDIA GeForce RTX 3090";
    gpu.nvlinks = 3;
  }
  EXPECT_TRUE(says("NVL04", machine).one(Severity::warn));
  for (auto& gpu : machine.topology.gpus) gpu.nvlinks = 4;
  EXPECT_TRUE(says("NVL04", machine).clean());
  for (auto& gpu : machine.topology.gpus) gpu.nvlinks = 0;
  EXPECT_TRUE(says("NVL04", machine).clean()) << "no link joins them";
}

TEST(Unread, LinksThatATreeOfPciDevicesDoesNotTell) {
  Machine machine = bare_metal();
  add_gpu(machine, "0000:03:00.0", kH100);
  add_gpu(machine, "0000:04:00.0", kH100);
  for (const auto* rule : {"NVL02", "NVL03", "NVL04"})
    EXPECT_TRUE(says(rule, machine).not_evaluated()) << rule;
  machine.p2p = {{"GPU0", "GPU1", "read", "CNS"}};
  EXPECT_TRUE(says("GPU02", machine).not_evaluated()) << "they may be joined";
  for (auto& gpu : machine.topology.gpus) gpu.pci_device = kRtx4090;
  for (const auto* rule : {"NVL02", "NVL03", "NVL04"})
    EXPECT_TRUE(says(rule, machine).clean()) << rule << ": a model without NVLink";
  for (auto& gpu : machine.topology.gpus) gpu.nvlinks = 0;
  for (const auto* rule : {"NVL02", "NVL03", "NVL04"}) EXPECT_TRUE(says(rule, machine).clean()) << rule;
}

}  // namespace
}  // namespace topotune::checks::test
