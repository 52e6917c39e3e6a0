#include "parse/sysfs_proc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topotune::parse {
namespace {

using testing::ElementsAre;

TEST(SysfsProc, Limits) {
  const auto text =
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max open files            1024                 1048576              files     \n"
      "Max locked memory         8388608              unlimited            bytes     \n";
  const auto memlock = parse_proc_limit(text, "Max locked memory");
  ASSERT_TRUE(memlock);
  EXPECT_EQ(memlock->soft, 8388608u);
  EXPECT_EQ(memlock->hard, std::nullopt);
  EXPECT_EQ(parse_proc_limit(text, "Max open files")->soft, 1024u);
  EXPECT_FALSE(parse_proc_limit(text, "Max file size"));
  EXPECT_FALSE(parse_proc_limit("Max open files  many few files", "Max open files"));
}

TEST(SysfsProc, Status) {
  const auto status = parse_proc_status(
      "Name:\tx\nUid:\t1000\t0\t1000\t1000\nCapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-3,8\n");
  EXPECT_EQ(status.effective_uid, 0);
  EXPECT_EQ(status.cap_effective, 0x1ffffffffffu);
  EXPECT_EQ(status.allowed_cpus->to_list(), "0-3,8");
  EXPECT_FALSE(parse_proc_status("CapEff:\tnone\n").cap_effective);
}

TEST(SysfsProc, HypervisorFlag) {
  EXPECT_EQ(
      parse_cpuinfo("vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor\n\nflags\t: fpu\n").hypervisor,
      true);
  EXPECT_EQ(parse_cpuinfo("flags\t: fpu hypervisors\n").hypervisor, false);
  EXPECT_EQ(parse_cpuinfo("Features\t: fp asimd\n").hypervisor, std::nullopt);
}

TEST(SysfsProc, Modules) {
  EXPECT_THAT(parse_proc_modules("mlx5_core 1 0 - Live 0x0\nib_core 2 1 mlx5_ib, Live 0x0\n"),
              ElementsAre("mlx5_core", "ib_core"));
}

TEST(SysfsProc, Cgroups) {
  const auto v2 = parse_proc_cgroup("0::/kubepods.slice/pod1\n");
  ASSERT_TRUE(v2);
  EXPECT_TRUE(v2->unified);
  EXPECT_EQ(v2->path, "/kubepods.slice/pod1");
  EXPECT_EQ(v2->container, "kubepods");
  const auto v1 = parse_proc_cgroup("3:cpu,cpuacct:/a\n2:cpuset:/docker/77\n0::/init\n");
  EXPECT_FALSE(v1->unified);
  EXPECT_EQ(v1->path, "/docker/77");
  EXPECT_EQ(parse_proc_cgroup("0::/user.slice\n")->container, "");
  EXPECT_FALSE(parse_proc_cgroup("nonsense"));
}

TEST(SysfsProc, RootFileSystemIsTheLastMountOfRoot) {
  EXPECT_EQ(parse_root_file_system(
                "1 0 0:1 / / rw - rootfs none rw\n2 1 0:2 / / rw shared:1 - overlay overlay rw\n"),
            "overlay");
  EXPECT_EQ(parse_root_file_system("3 1 0:2 / /proc rw - proc proc rw\n"), std::nullopt);
}

TEST(SysfsProc, UserNameSpace) {
  EXPECT_EQ(parse_uid_map("         0          0 4294967295\n"), true);
  EXPECT_EQ(parse_uid_map("0 1000 1\n"), false);
  EXPECT_EQ(parse_uid_map(""), std::nullopt);
}

TEST(SysfsProc, Release) {
  EXPECT_EQ(parse_pretty_name("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(parse_pretty_name("PRETTY_NAME=\n"), std::nullopt);
}

TEST(SysfsProc, NvidiaDriver) {
  const auto open = parse_nvidia_version(
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x@y)\nGCC "
      "version: 15.3.0\n");
  ASSERT_TRUE(open);
  EXPECT_EQ(open->driver, "580.159.04");
  EXPECT_EQ(open->open_module, true);
  const auto closed =
      parse_nvidia_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Wed\n");
  EXPECT_EQ(closed->driver, "470.82.01");
  EXPECT_EQ(closed->open_module, false);
  EXPECT_FALSE(parse_nvidia_version("GCC version: 12.2.0\n"));
}

TEST(SysfsProc, SmallTexts) {
  EXPECT_EQ(parse_bracketed("always [madvise] never\n"), "madvise");
  EXPECT_EQ(parse_bracketed("always madvise]"), std::nullopt);
  EXPECT_EQ(parse_node_memory("Node 0 MemTotal:       1006452 kB\n"), 1006452u * 1024);
  EXPECT_EQ(parse_node_memory("Node 0 MemTotal: many kB\n"), std::nullopt);
  EXPECT_THAT(*parse_distances("10 21\n"), ElementsAre(10, 21));
  EXPECT_FALSE(parse_distances("10 x"));
  EXPECT_FALSE(parse_distances("0"));
}

TEST(SysfsProc, HypervisorNames) {
  EXPECT_EQ(hypervisor_name("KVMKVMKVM"), "KVM");
  EXPECT_EQ(hypervisor_name("Other"), "Other");
}

TEST(SysfsProc, FaultsOfDevicesInTheKernelLog) {
  const auto found = device_faults(
      "<6>[    1.0] nvidia 0000:00:06.0: enabling device\n"
      "<3>[    2.0] NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.\n"
      "<6>[    3.0] usb 1-1: new device\n"
      "<4>[    4.0] pcieport 0000:20:00.0: AER: Corrected error received: 0000:20:00.0\n",
      10);
  ASSERT_THAT(found, ElementsAre(testing::HasSubstr("Xid"), testing::HasSubstr("AER")));
  EXPECT_TRUE(found[0].starts_with("[")) << "the level is cut off";
  const std::string xid = "NVRM: Xid (PCI:0000:1b:00): ";
  EXPECT_EQ(device_faults(xid + "13\n" + xid + "31\n" + xid + "79\n", 1),
            std::vector<std::string>{xid + "79"});
}

}  // namespace
}  // namespace topotune::parse
