// NUMA, KERN, CONT, IRQ, VER.
#include <gtest/gtest.h>

#include "checks/build.h"

namespace topotune::checks::test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20, kGiB = std::uint64_t{1} << 30;

Machine two_nodes() {
  Machine machine = bare_metal();
  add_nodes(machine, 2);
  auto& gpu = add_gpu(machine, "0000:03:00.0", kH100);
  gpu.numa = 0;
  gpu.cpus = cpus(0, 7);
  pci(machine, "0000:03:00.0").numa = 0;
  pci(machine, "0000:03:00.0").local_cpus = cpus(0, 7);
  return machine;
}

TEST(Numa02, RanksFarFromTheirGpu) {
  Machine machine = two_nodes();
  EXPECT_TRUE(says("NUMA02", machine).not_evaluated());
  machine.gpu_processes = known<std::vector<model::GpuProcess>>({{42, "GPU0", "python", cpus(0, 3)}});
  EXPECT_TRUE(says("NUMA02", machine).clean());
  machine.gpu_processes.value->front().allowed = cpus(8, 15);
  EXPECT_TRUE(says("NUMA02", machine).one(Severity::warn));
  machine.cgroup_cpus = known(cpus(8, 15));
  EXPECT_TRUE(says("NUMA02", machine).clean()) << "CONT02";
  machine.cgroup_cpus = Fact<CpuSet>::missing("not found");
  add_nic(machine, "0000:04:00.0");
  pci(machine, "0000:04:00.0").local_cpus = cpus(8, 15);
  EXPECT_TRUE(says("NUMA02", machine).clean()) << "near the NIC";
  machine.topology.nics.clear();
  machine.topology.gpus[0].numa.reset();
  machine.topology.gpus[0].cpus = cpus(0, 15);
  machine.online_cpus = known(cpus(0, 15));
  EXPECT_TRUE(says("NUMA02", machine).clean()) << "the node is not known";
  machine = two_nodes();
  machine.gpu_processes = known<std::vector<model::GpuProcess>>({{42, "GPU0", "python", {}}});
  EXPECT_TRUE(says("NUMA02", machine).not_evaluated());
}

TEST(Numa06, Balancing) {
  Machine machine = two_nodes();
  EXPECT_TRUE(says("NUMA06", machine).not_evaluated());
  machine.numa_balancing = known(1);
  EXPECT_TRUE(says("NUMA06", machine).one(Severity::warn));
  machine.numa_balancing = known(2);
  EXPECT_TRUE(says("NUMA06", machine).one(Severity::warn)) << "a bit mask";
  machine.numa_balancing = known(0);
  EXPECT_TRUE(says("NUMA06", machine).clean());
  machine.numa_balancing = Fact<int>::missing("not found");
  EXPECT_TRUE(says("NUMA06", machine).clean()) << "not in this kernel";
  machine.numa_balancing = known(1);
  machine.topology.numa.pop_back();
  EXPECT_TRUE(says("NUMA06", machine).clean()) << "one node";
  add_nodes(machine, 1);
  machine.topology.numa[1].id = 1;
  machine.topology.numa[1].cpus = CpuSet{};
  EXPECT_TRUE(says("NUMA06", machine).clean()) << "the other node has memory only";
}

TEST(Numa06, AMatrixDoesNotShowAllNodes) {
  Machine machine = matrix_of(2);
  machine.topology.numa.push_back({});
  EXPECT_TRUE(says("NUMA06", machine).not_evaluated());
  EXPECT_TRUE(says("NUMA08", machine).not_evaluated());
}

TEST(Numa07, UnknownNode) {
  Machine machine = two_nodes();
  EXPECT_TRUE(says("NUMA07", machine).clean());
  pci(machine, "0000:03:00.0").numa.reset();
  EXPECT_TRUE(says("NUMA07", machine).one(Severity::info));
  machine.topology.source.kind = SourceKind::text;
  EXPECT_TRUE(says("NUMA07", machine).not_evaluated());
  machine.topology.source.kind = SourceKind::live;
  machine.topology.numa.pop_back();
  EXPECT_TRUE(says("NUMA07", machine).clean()) << "one node";
}

TEST(Numa08, Distances) {
  Machine machine = two_nodes();
  EXPECT_TRUE(says("NUMA08", machine).clean());
  machine.topology.numa[0].distances[1] = 10;
  EXPECT_TRUE(says("NUMA08", machine).one(Severity::warn));
  machine.topology.numa[1].cpus = CpuSet{};
  EXPECT_TRUE(says("NUMA08", machine).clean()) << "a memory node without CPUs";
  for (auto& node : machine.topology.numa) node.distances.clear();
  EXPECT_TRUE(says("NUMA08", machine).not_evaluated());
}

TEST(Numa10, CellsAndSockets) {
  Machine machine = two_nodes();
  EXPECT_TRUE(says("NUMA10", machine).not_evaluated());
  machine.topology.packages = {{0, cpus(0, 7)}, {1, cpus(8, 15)}};
  EXPECT_TRUE(says("NUMA10", machine).clean());
  machine.topology.packages = {{0, cpus(0, 3) | cpus(8, 11)}, {1, cpus(4, 7) | cpus(12, 15)}};
  EXPECT_EQ(says("NUMA10", machine).findings.size(), 2U);
  machine.topology.packages = {{0, cpus(0, 15)}};
  EXPECT_TRUE(says("NUMA10", machine).clean()) << "several nodes in one package";
  machine.topology.packages = {{0, cpus(0, 3)}, {1, cpus(4, 7)}, {2, cpus(8, 15)}};
  EXPECT_TRUE(says("NUMA10", machine).clean()) << "a node that holds whole packages";
}

// ---- limits

Machine with_memlock(std::optional<std::uint64_t> soft) {
  Machine machine = gpu_and_nic_on_a_switch();
  machine.memlock = known(model::MemoryLimit{soft, {}});
  return machine;
}

TEST(Kern01, LockedMemory) {
  EXPECT_TRUE(says("KERN01", gpu_and_nic_on_a_switch()).not_evaluated());
  EXPECT_TRUE(says("KERN01", with_memlock({})).clean()) << "unlimited";
  EXPECT_TRUE(says("KERN01", with_memlock(65536)).one(Severity::warn)) << "the job may have another limit";
  EXPECT_TRUE(says("KERN01", with_memlock(16 * kGiB - 1)).one(Severity::warn));
  EXPECT_TRUE(says("KERN01", with_memlock(16 * kGiB)).one(Severity::info));
}

TEST(Kern01, Capability) {
  Machine machine = with_memlock(65536);
  machine.cap_effective = known<std::uint64_t>(std::uint64_t{1} << 14);
  EXPECT_TRUE(says("KERN01", machine).one(Severity::warn)) << "the user namespace is not known";
  machine.initial_user_namespace = known(true);
  EXPECT_TRUE(says("KERN01", machine).clean());
  machine.initial_user_namespace = known(false);
  EXPECT_TRUE(says("KERN01", machine).one(Severity::warn));
  machine.initial_user_namespace = known(true);
  machine.cap_effective = known<std::uint64_t>(std::uint64_t{1} << 13);
  EXPECT_TRUE(says("KERN01", machine).one(Severity::warn)) << "another capability";
}

TEST(Kern01, NoRdmaDevice) {
  Machine machine = bare_metal();
  machine.memlock = known(model::MemoryLimit{65536, {}});
  EXPECT_TRUE(says("KERN01", machine).clean());
  machine.rdma_read = Fact<bool>::missing("not captured");
  EXPECT_TRUE(says("KERN01", machine).one(Severity::warn)) << "whether there is one is not known";
}

TEST(Kern02, OpenFiles) {
  Machine machine = bare_metal();
  EXPECT_TRUE(says("KERN02", machine).not_evaluated());
  machine.nofile = known<std::uint64_t>(1023);
  EXPECT_TRUE(says("KERN02", machine).one(Severity::error));
  machine.nofile = known<std::uint64_t>(1024);
  EXPECT_TRUE(says("KERN02", machine).clean());
  EXPECT_TRUE(says("KERN02", machine, {}, {}, true).one(Severity::warn));
  machine.nofile = known<std::uint64_t>(20480);
  EXPECT_TRUE(says("KERN02", machine, {}, {}, true).clean());
}

using Texts = std::map<std::string, std::string>;

TEST(Kern03, Governors) {
  Machine machine = two_nodes();
  EXPECT_TRUE(says("KERN03", machine).not_evaluated());
  machine.governors = known<Texts>({{"0", "performance"}, {"9", "ondemand"}});
  EXPECT_TRUE(says("KERN03", machine).clean()) << "CPU 9 is not near the GPU";
  machine.governors = known<Texts>({{"0", "ondemand"}});
  EXPECT_TRUE(says("KERN03", machine).one(Severity::warn));
  machine.governors = known<Texts>({{"0", "powersave"}});
  EXPECT_TRUE(says("KERN03", machine).not_evaluated()) << "of which driver";
  machine.cpufreq_driver = known<std::string>("acpi-cpufreq");
  EXPECT_TRUE(says("KERN03", machine).one(Severity::warn));
  machine.cpufreq_driver = known<std::string>("intel_pstate");
  EXPECT_TRUE(says("KERN03", machine).not_evaluated());
  machine.energy_preferences = known<Texts>({{"0", "performance"}});
  EXPECT_TRUE(says("KERN03", machine).clean());
  machine.energy_preferences = known<Texts>({{"0", "balance_power"}});
  EXPECT_TRUE(says("KERN03", machine).one(Severity::warn));
  machine.governors = Fact<Texts>::missing("not found");
  EXPECT_TRUE(says("KERN03", machine).clean()) << "firmware or hypervisor";
}

TEST(Kern04, Leftovers) {
  Machine machine = bare_metal();
  EXPECT_TRUE(says("KERN04", machine).not_evaluated());
  machine.shm_free_bytes = known(kGiB);
  EXPECT_TRUE(says("KERN04", machine).clean()) << "space is ample";
  machine.shm_free_bytes = known(kGiB - 1);
  EXPECT_TRUE(says("KERN04", machine).not_evaluated());
  machine.orphan_shm = known<std::vector<std::string>>({"nccl-abc"});
  EXPECT_TRUE(says("KERN04", machine).one(Severity::warn));
  machine.orphan_shm = known<std::vector<std::string>>({});
  EXPECT_TRUE(says("KERN04", machine).clean());
}

// ---- containers

Machine container(std::uint64_t shm) {
  Machine machine = bare_metal();
  machine.container = known(true);
  machine.shm_bytes = known(shm);
  add_gpu(machine, "0000:03:00.0", kRtx4090);
  add_gpu(machine, "0000:04:00.0", kRtx4090);
  return machine;
}

TEST(Cont01, SharedMemory) {
  EXPECT_TRUE(says("CONT01", container(kGiB)).clean());
  EXPECT_TRUE(says("CONT01", container(64 * kMiB), {}, "2.20.5").one(Severity::error));
  EXPECT_TRUE(says("CONT01", container(64 * kMiB + 1), {}, "2.20.5").one(Severity::warn));
  EXPECT_TRUE(says("CONT01", container(64 * kMiB)).one(Severity::warn)) << "NCCL is not known";
  EXPECT_TRUE(says("CONT01", container(64 * kMiB), {}, "2.24.3").one(Severity::warn)) << "cuMem";
  Machine old_driver = container(64 * kMiB);
  old_driver.cuda_driver = known<std::string>("12.4");
  EXPECT_TRUE(says("CONT01", old_driver, {}, "2.24.3").one(Severity::error));
}

TEST(Cont01, WhereItIsNoFault) {
  Machine machine = container(64 * kMiB);
  machine.topology.gpus.pop_back();
  EXPECT_TRUE(says("CONT01", machine).clean()) << "one GPU";
  machine = container(64 * kMiB);
  machine.container = known(false);
  EXPECT_TRUE(says("CONT01", machine).clean());
  machine.container = Fact<bool>::missing("not captured");
  EXPECT_TRUE(says("CONT01", machine).not_evaluated());
  machine = container(64 * kMiB);
  state_path(machine, "GPU0", "GPU1", PathType::nvl, 4);
  EXPECT_TRUE(says("CONT01", machine, {}, "2.20.5").one(Severity::warn)) << "all pairs use P2P";
  machine.shm_bytes = Fact<std::uint64_t>::missing("denied");
  EXPECT_TRUE(says("CONT01", machine).not_evaluated());
}

TEST(Cont02, CpusOfTheCgroup) {
  Machine machine = two_nodes();
  EXPECT_TRUE(says("CONT02", machine).not_evaluated());
  machine.cgroup_cpus = known(cpus(7, 8));
  EXPECT_TRUE(says("CONT02", machine).clean());
  machine.cgroup_cpus = known(cpus(8, 15));
  EXPECT_TRUE(says("CONT02", machine).one(Severity::warn));
  machine.topology.gpus[0].numa.reset();
  EXPECT_TRUE(says("CONT02", machine).clean()) << "numa_node -1";
  machine.topology.gpus[0].numa = 0;
  machine.topology.numa.pop_back();
  EXPECT_TRUE(says("CONT02", machine).clean()) << "one node";
}

TEST(Cont04, HiddenSysfs) {
  Machine machine = container(kGiB);
  EXPECT_EQ(says("CONT04", machine).findings.size(), 2U);
  for (auto& device : machine.topology.pci) device.capable = {32, 16};
  EXPECT_TRUE(says("CONT04", machine).clean());
  machine = container(kGiB);
  machine.virtual_machine = known(true);
  EXPECT_TRUE(says("CONT04", machine).clean());
  machine.virtual_machine = known(false);
  machine.container = known(false);
  EXPECT_TRUE(says("CONT04", machine).clean());
}

TEST(Cont05, Uverbs) {
  Machine machine = gpu_and_nic_on_a_switch();
  EXPECT_TRUE(says("CONT05", machine).not_evaluated());
  machine.ports[0].uverbs = "ok";
  EXPECT_TRUE(says("CONT05", machine).clean());
  machine.ports[0].uverbs = "not found";
  EXPECT_TRUE(says("CONT05", machine).one(Severity::warn));
  EXPECT_TRUE(says("CONT05", machine, {}, {}, true).one(Severity::error));
  EXPECT_TRUE(says("CONT05", bare_metal()).clean());
}

TEST(Cont06, GidTables) {
  Machine machine = gpu_and_nic_on_a_switch("Ethernet");
  EXPECT_TRUE(says("CONT06", machine).not_evaluated());
  const auto gid = [](int index) {
    return model::Gid{index, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2", "eth0"};
  };
  machine.ports[0].gids = {gid(3)};
  EXPECT_TRUE(says("CONT06", machine).clean());
  machine.ports[0].gids = {gid(4), gid(7)};
  EXPECT_TRUE(says("CONT06", machine).one(Severity::warn));
  EXPECT_TRUE(says("CONT06", machine, {}, "2.21.5").one(Severity::info));
  machine.ports[0].link_layer = "InfiniBand";
  EXPECT_TRUE(says("CONT06", machine).clean());
}

TEST(Cont, NeedsMoreThanOneLook) {
  EXPECT_TRUE(says("CONT03", bare_metal()).not_evaluated());
  EXPECT_TRUE(says("CONT07", bare_metal()).not_evaluated());
}

TEST(Irq03, Vectors) {
  Machine machine = gpu_and_nic_on_a_switch();
  EXPECT_TRUE(says("IRQ03", machine).not_evaluated());
  pci(machine, "0000:04:00.0").numa = 0;
  pci(machine, "0000:04:00.0").local_cpus = cpus(0, 7);
  machine.interrupts = {{1, "mlx5_0", cpus(0, 0)}, {2, "mlx5_0", cpus(1, 1)}};
  EXPECT_TRUE(says("IRQ03", machine).clean());
  machine.interrupts = {{1, "mlx5_0", cpus(0, 0)}, {2, "mlx5_0", cpus(0, 0)}};
  EXPECT_TRUE(says("IRQ03", machine).one(Severity::info)) << "all on one CPU";
  machine.interrupts = {{1, "mlx5_0", cpus(8, 8)}, {2, "mlx5_0", cpus(9, 9)}, {3, "mlx5_0", cpus(1, 1)}};
  EXPECT_TRUE(says("IRQ03", machine).one(Severity::info)) << "most on the other node";
  pci(machine, "0000:04:00.0").numa.reset();
  EXPECT_TRUE(says("IRQ03", machine).clean()) << "node unknown";
}

// ---- versions

TEST(Ver01, DriverFloors) {
  Machine machine = bare_metal();
  EXPECT_TRUE(says("VER01", machine).not_evaluated());
  machine.nvidia_driver = known<std::string>("535.129.03");
  machine.cuda_runtime = known<std::string>("13.0");
  machine.cuda_driver = known<std::string>("12.2");
  EXPECT_TRUE(says("VER01", machine).one(Severity::error));
  machine.cuda_runtime = known<std::string>("12.8");
  EXPECT_TRUE(says("VER01", machine).clean());
  machine.nvidia_driver = known<std::string>("470.57.02");
  machine.cuda_driver = known<std::string>("11.4");
  EXPECT_TRUE(says("VER01", machine).one(Severity::error));
  machine.cuda_driver = known<std::string>("12.8");
  EXPECT_TRUE(says("VER01", machine).clean()) << "forward-compatibility package";
  machine.cuda_driver = Fact<std::string>::missing("not captured");
  EXPECT_TRUE(says("VER01", machine).one(Severity::warn));
  machine.cuda_runtime = known<std::string>("99.1");
  EXPECT_TRUE(says("VER01", machine).not_evaluated());
}

TEST(Ver03, Mismatch) {
  Machine machine = bare_metal();
  EXPECT_TRUE(says("VER03", machine).not_evaluated());
  machine.nvml_error = known<std::string>("Driver/library version mismatch");
  EXPECT_TRUE(says("VER03", machine).one(Severity::error));
  machine.nvml_error = {};
  machine.nvidia_driver = known<std::string>("550.54.15");
  machine.nvml_library = known<std::string>("550.54.15");
  EXPECT_TRUE(says("VER03", machine).clean());
  machine.nvml_library = known<std::string>("550.54.14");
  EXPECT_TRUE(says("VER03", machine).one(Severity::error));
  machine.nvidia_driver = Fact<std::string>::missing("not found");
  EXPECT_TRUE(says("VER03", machine).clean()) << "no driver";
}

}  // namespace
}  // namespace topotune::checks::test
