#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "discover/discover.h"
#include "fake_host.h"

namespace topotune::discover {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DiscoverLimits, ProcessLimits) {
  FakeHost host;
  host.files["/proc/self/limits"] =
      "Limit                     Soft Limit           Hard Limit           Units\n"
      "Max locked memory         65536                unlimited            bytes\n"
      "Max open files            unlimited            unlimited            files\n";
  host.files["/proc/self/status"] = "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000004000\nCpus_allowed_list:\t0-7\n";
  const auto machine = discover(host);
  EXPECT_EQ(machine.memlock->soft, 65536u);
  EXPECT_EQ(machine.memlock->hard, std::nullopt);
  EXPECT_EQ(*machine.cap_effective, 0x4000u);
  EXPECT_EQ(machine.allowed_cpus->count(), 8);
  EXPECT_EQ(*machine.root, true);
}

TEST(DiscoverLimits, HypervisorByTheProcessor) {
  FakeHost host;
  host.probes["process"] = R"({"hypervisor":true,"hypervisor_vendor":"KVMKVMKVM"})";
  host.files["/sys/class/dmi/id/sys_vendor"] = "Vendor\n";
  const auto machine = discover(host);
  EXPECT_EQ(*machine.virtual_machine, true);
  EXPECT_EQ(*machine.hypervisor, "KVM");
}

TEST(DiscoverLimits, BareMetalHasNoHypervisor) {
  FakeHost host;
  host.files["/proc/cpuinfo"] = "flags\t: fpu vme\n";
  host.files["/sys/class/dmi/id/sys_vendor"] = "Vendor\n";
  const auto machine = discover(host);
  EXPECT_EQ(*machine.virtual_machine, false);
  EXPECT_FALSE(machine.hypervisor) << "the maker of the machine is none";
}

TEST(DiscoverLimits, CgroupWithoutCpusetHasItsParents) {
  FakeHost host;
  host.files["/proc/self/cgroup"] = "0::/user.slice/session-1.scope\n";
  host.files["/sys/fs/cgroup/user.slice/cpuset.cpus.effective"] = "0-3\n";
  EXPECT_EQ(discover(host).cgroup_cpus->to_list(), "0-3");
}

TEST(DiscoverLimits, CgroupOfAContainerIsItsMount) {
  FakeHost host;
  host.files["/proc/self/cgroup"] = "2:cpuset:/docker/77\n0::/\n";
  host.files["/sys/fs/cgroup/cpuset/cpuset.effective_cpus"] = "4-5\n";
  const auto machine = discover(host);
  EXPECT_EQ(machine.cgroup_cpus->to_list(), "4-5");
  EXPECT_EQ(*machine.container, true);
}

TEST(DiscoverLimits, SharedMemory) {
  FakeHost host;
  host.probes["statvfs /dev/shm"] = R"({"bytes":67108864,"free_bytes":1000,"type":"tmpfs","device":84})";
  const auto machine = discover(host);
  EXPECT_EQ(*machine.shm_device, 84u);
  EXPECT_EQ(*machine.shm_bytes, 67108864u);
  EXPECT_EQ(*machine.shm_free_bytes, 1000u);
}

TEST(DiscoverSoftware, DriverLibrariesAndModules) {
  FakeHost host;
  host.files["/proc/driver/nvidia/version"] =
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n";
  host.files["/proc/modules"] = "nvidia_peermem 1 0 - Live 0x0\nnvidia 1 0 - Live 0x0\n";
  host.files["/sys/module/nvidia_peermem/version"] = "580.159.04\n";
  host.probes["libraries"] = R"({"libraries":[
      {"kind":"nccl","path":"/opt/libnccl.so.2","version":"2.28.9"},{"kind":"nccl","path":"/b","version":"2.1"},
      {"kind":"nccl_plugin","path":"/opt/libnccl-net.so"}]})";
  const auto machine = discover(host);
  EXPECT_EQ(*machine.nvidia_driver, "580.159.04");
  EXPECT_EQ(*machine.nvidia_open_kernel_module, true);
  EXPECT_EQ(*machine.peermem, "580.159.04");
  EXPECT_TRUE(machine.modules->contains("nvidia"));
  EXPECT_EQ(*machine.nccl, "2.28.9") << "the first on the path is the one that loads";
  EXPECT_THAT(*machine.nccl_plugins, ElementsAre("/opt/libnccl-net.so"));
  EXPECT_EQ(machine.cuda_runtime.why, "not found");
}

TEST(DiscoverSoftware, KernelLogKeepsFaultsOnly) {
  FakeHost host;
  host.probes["kernel_log"] = "<6>[ 1.0] nvidia: loading\n<3>[ 2.0] NVRM: Xid (PCI:0000:1b:00): 79, pid=1\n";
  EXPECT_THAT(*discover(host).kernel_log, ElementsAre(HasSubstr("Xid")));
}

TEST(DiscoverSoftware, DeniedKernelLogIsUnknown) {
  FakeHost host;
  host.deny("kernel_log");
  EXPECT_EQ(discover(host).kernel_log.why, "denied");
}

}  // namespace
}  // namespace topotune::discover
