#include <gtest/gtest.h>

#include "parse/fabric_manager_log.h"
#include "parse/ip_link.h"
#include "parse/kernel_log.h"
#include "parse/limits_conf.h"
#include "parse/lscpu.h"
#include "parse/lsmod.h"
#include "parse/lspci.h"
#include "parse/numactl.h"
#include "parse/rocm_smi.h"
#include "parse/ulimit.h"
#include "parse/versions.h"

namespace topotune::parse {
namespace {

TEST(Numactl, ReadsNodesAndDistances) {
  const auto out = parse_numactl(
      "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 1024 MB\nnode 0 free: 512 MB\nnode 1 cpus:\n"
      "node distances:\nnode   0   1\n  0:  10  21\n  1:  21  10\nphyscpubind: 1\n");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->nodes, 2);
  ASSERT_EQ(out->list.size(), 2u);
  EXPECT_EQ(out->list[0].node.cpus->to_list(), "0-1");
  EXPECT_EQ(out->list[0].node.memory_bytes, 1024u << 20);
  EXPECT_EQ(out->list[0].free_bytes, 512u << 20);
  EXPECT_TRUE(out->list[1].node.cpus->empty());
  EXPECT_EQ(out->list[1].node.distances.at(0), 21);
  EXPECT_EQ(out->allowed->to_list(), "1");
}

TEST(Numactl, ACutListOfCpusIsUnknown) {
  const auto out = parse_numactl("available: 1 nodes (0)\nnode 0 cpus: 0 1 2");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->list[0].node.cpus, std::nullopt);
  EXPECT_FALSE(looks_like_numactl("several CPUs are available: see there\n"));
}

TEST(Lscpu, ReadsNodesAndHypervisor) {
  const auto out = parse_lscpu(
      "Architecture:        x86_64\nCPU(s):              4\nOn-line CPU(s) list: 0-3\nVendor ID: "
      "GenuineIntel\n"
      "Socket(s): 1\nFlags: fpu hypervisor sse\nHypervisor vendor: KVM\nNUMA node0 CPU(s): 0,2\nNUMA node1 "
      "CPU(s): 1,3\n");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->online->to_list(), "0-3");
  EXPECT_EQ(out->hypervisor, "KVM");
  EXPECT_EQ(out->hypervisor_flag, true);
  ASSERT_EQ(out->nodes.size(), 2u);
  EXPECT_EQ(out->nodes[1].cpus.to_list(), "1,3");
  EXPECT_EQ(parse_lscpu("CPU(s): 4\nFlags: fpu sse\n")->hypervisor_flag, false);
  EXPECT_EQ(parse_lscpu("CPU(s): 4\nFlags: fpu ss")->hypervisor_flag, std::nullopt);
}

TEST(Lscpu, ReadsTables) {
  const auto wide = parse_lscpu("CPU NODE SOCKET CORE ONLINE\n0 0 0 0 yes\n1 1 1 1 yes\n");
  ASSERT_TRUE(wide);
  ASSERT_EQ(wide->table.size(), 2u);
  EXPECT_EQ(wide->table[1].socket, 1);
  const auto commas = parse_lscpu("# CPU,Core,Socket,Node\n0,0,0,0\n1,0,0,1\n");
  ASSERT_TRUE(commas);
  EXPECT_EQ(commas->table.at(1).node, 1);
}

TEST(Lscpu, TheFirstOfTwoTablesCounts) {
  const auto out =
      parse_lscpu("# CPU,Core,Socket,Node\n0,0,0,0\n1,1,1,1\n# CPU,Core,Socket,Node\n0,0,1,0\n1,1,0,1\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->table.size(), 2u);
  EXPECT_EQ(out->table[0].socket, 0);
}

TEST(Lscpu, OtherLanguagesAreRefusedWithTheCommandToGive) {
  for (const auto* text :
       {"Architektur:   x86_64\nCPU(s):   64\nSockel:   2\n", "架构：   x86_64\nCPU:   64\n"}) {
    EXPECT_TRUE(looks_like_lscpu(text)) << text;
    const auto out = parse_lscpu(text);
    ASSERT_FALSE(out) << text;
    EXPECT_EQ(out.error().hint, "LC_ALL=C lscpu");
  }
  EXPECT_TRUE(parse_lscpu("CPU(s): 64\n"));
}

TEST(Numactl, OtherLanguagesAreRefusedWithTheCommandToGive) {
  const std::string_view text = "verfügbar: 2 Knoten (0-1)\nKnoten 0 CPUs: 0 1 2 3\n";
  ASSERT_TRUE(looks_like_numactl(text));
  EXPECT_EQ(parse_numactl(text).error().hint, "LC_ALL=C numactl --hardware");
}

TEST(Forms, OfCommandsThatAreNotReadAreRefusedByName) {
  const std::string_view pci = "Slot:\t00:00.0\nClass:\tHost bridge\nVendor:\tIntel Corporation\n";
  ASSERT_TRUE(looks_like_lspci(pci));
  EXPECT_EQ(parse_lspci(pci).error().hint, "lspci -vvv");
  const std::string_view rocm = "{\n \"card0\": {\"Device ID\": \"0x738c\"}}";
  ASSERT_TRUE(looks_like_rocm_smi(rocm));
  EXPECT_EQ(parse_rocm_smi(rocm).error().code, Errc::unsupported);
  EXPECT_FALSE(looks_like_rocm_smi("{\"card0\": 1}"));
}

TEST(KernelLog, FindsXidsInEveryForm) {
  const auto event = [](std::string_view line) { return kernel_event_of(line); };
  const auto dmesg = event("[ 12.3] NVRM: Xid (PCI:0000:9b:00): 119, pid=1, name=x, Timeout");
  ASSERT_TRUE(dmesg);
  EXPECT_EQ(dmesg->kind, KernelEventKind::xid);
  EXPECT_EQ(dmesg->code, 119);
  EXPECT_EQ(dmesg->bdf, "0000:9b:00.0");
  EXPECT_EQ(event("Feb 1 00:00:01 n1 kernel: NVRM: Xid (0000:03:00): 79, GPU has fallen off the bus.")->code,
            79);
  const auto sxid = event("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress");
  EXPECT_EQ(sxid->kind, KernelEventKind::sxid);
  EXPECT_EQ(sxid->code, 12028);
  EXPECT_EQ(sxid->device, "nvidia-nvswitch3");
}

TEST(KernelLog, ReadsBandwidthLines) {
  const auto event = kernel_event_of(
      "mlx5_core 0000:1a:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 link at "
      "0000:00:1c.0 "
      "(capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, KernelEventKind::pcie_bandwidth);
  EXPECT_EQ(event->bdf, "0000:1a:00.0");
  EXPECT_EQ(event->available_gbits, 31.504);
  EXPECT_EQ(event->capable_gbits, 252.048);
}

TEST(KernelLog, LeavesNormalLinesOut) {
  EXPECT_FALSE(kernel_event_of("[ 1.0] pcieport 0000:00:01.0: AER: enabled with IRQ 24"));
  EXPECT_FALSE(
      kernel_event_of("[ 1.0] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95  Release"));
  EXPECT_FALSE(kernel_event_of("[ 1.0] NVRM: GPU at PCI:0000:9b:00: GPU-1"));
  EXPECT_TRUE(
      kernel_event_of("pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer"));
}

TEST(KernelLog, OnlyTheLastBootCounts) {
  const auto out = parse_kernel_log(
      "NVRM: Xid (PCI:0000:9b:00): 79, x\n-- Boot 123 --\n"
      "n1 kernel: Linux version 6.1.0-9 (x) #1 SMP\nn1 kernel: Kernel command line: root=/dev/x ro iommu=pt\n"
      "n1 kernel: Hypervisor detected: KVM\nn1 kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.5 "
      " Thu\n"
      "n1 kernel: NVRM: Xid (PCI:0000:9b:00): 31, y\n");
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->earlier_boots);
  ASSERT_EQ(out->events.size(), 1u);
  EXPECT_EQ(out->events[0].code, 31);
  EXPECT_EQ(out->events[0].line, 7);
  EXPECT_EQ(out->kernel, "6.1.0-9");
  EXPECT_EQ(out->command_line, "root=/dev/x ro iommu=pt");
  EXPECT_EQ(out->hypervisor, "KVM");
  EXPECT_EQ(out->nvidia_driver, "535.5");
  EXPECT_EQ(out->nvidia_open, false);
}

TEST(KernelLog, IsKnownByItsStamps) {
  EXPECT_TRUE(looks_like_kernel_log("[    0.000000] Linux\n[    1.500000] usb\n"));
  EXPECT_TRUE(looks_like_kernel_log("[Sun Feb 23 16:24:18 2025] a\n"));
  EXPECT_TRUE(looks_like_kernel_log("kern  :warn  : [    1.500000] usb\n"));
  EXPECT_TRUE(looks_like_kernel_log("2026-01-05T10:00:00,123456+00:00 usb 1-1: x\n"));
  EXPECT_FALSE(looks_like_kernel_log("[0] NCCL INFO x\n[1] NCCL INFO y\n"));
}

TEST(Ulimit, ReadsEveryShellAndTheKernel) {
  EXPECT_EQ(
      parse_ulimit("max locked memory       (kbytes, -l) 64\nopen files                      (-n) 1024\n")
          ->memlock->value.soft,
      65536u);
  EXPECT_EQ(parse_ulimit("open files                      (-n) 1024\n")->nofile->value.soft, 1024u);
  EXPECT_EQ(parse_ulimit("max locked memory           (kbytes, -l) unlimited\n")->memlock->value.soft,
            std::nullopt);
  const auto proc =
      parse_ulimit("Max locked memory         8388608              unlimited            bytes\n");
  EXPECT_EQ(proc->memlock->value.soft, 8388608u);
  EXPECT_EQ(proc->memlock->value.hard, std::nullopt);
  EXPECT_EQ(parse_ulimit("-l: locked-in-memory size (kb)      64\n")->memlock->value.soft, 65536u);
  EXPECT_EQ(parse_ulimit("unlimited\n", "ulimit -l")->memlock->value.soft, std::nullopt);
  EXPECT_EQ(parse_ulimit("100\n", "ulimit -Sn")->nofile->value.soft, 100u);
  EXPECT_FALSE(parse_ulimit("100\n", "ulimit -c"));
}

TEST(LimitsConf, ALaterLineReplacesAnEarlierOne) {
  const auto conf = parse_limits_conf(
      "# * soft nofile 1\n* soft nofile 2000\n* soft memlock unlimited\n@x soft nofile 7\n*  soft  nofile  "
      "100\n"
      "* hard nofile 200\n");
  ASSERT_TRUE(conf);
  const auto limits = limits_of(*conf);
  EXPECT_EQ(limits.nofile->value.soft, 100u);
  EXPECT_EQ(limits.nofile->value.hard, 200u);
  EXPECT_EQ(limits.nofile->line, 5);
  EXPECT_TRUE(limits.memlock);
  EXPECT_EQ(limits.memlock->value.soft, std::nullopt);
}

TEST(LimitsConf, AHardLimitAloneTellsLittle) {
  EXPECT_FALSE(limits_of(*parse_limits_conf("* hard memlock unlimited\n")).memlock);
  EXPECT_EQ(limits_of(*parse_limits_conf("* hard memlock 64\n")).memlock->value.soft, 65536u);
  EXPECT_EQ(limits_of(*parse_limits_conf("* - memlock 64\n")).memlock->value.hard, 65536u);
  EXPECT_FALSE(looks_like_limits_conf("NCCL - core library\n"));
}

TEST(RocmSmi, ReadsNodesAndMatrices) {
  const auto out = parse_rocm_smi(
      "==== ROCm System Management Interface ====\nGPU[0]\t\t: (Topology) Numa Node: 0\nGPU[1] : (Topology) "
      "Numa Node: -1\n"
      "==== Link Type between two GPUs ====\n       GPU0         GPU1\nGPU0   0            XGMI\nGPU1   XGMI "
      "        0\n"
      "==== Hops between two GPUs ====\n       GPU0         GPU1\nGPU0   0            1\nGPU1   1            "
      "0\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->gpus.size(), 2u);
  EXPECT_EQ(out->gpus[0].numa, 0);
  EXPECT_EQ(out->gpus[1].numa, std::nullopt);
  ASSERT_EQ(out->pairs.size(), 2u);
  EXPECT_EQ(out->pairs[0].link, "XGMI");
  EXPECT_EQ(out->pairs[0].hops, 1);
}

TEST(FabricManager, ReadsLogsVersionAndService) {
  const auto log = parse_fabric_manager(
      "[Jan 1] [INFO] [tid 1] Fabric Manager version 535.5 is running with the following configuration "
      "options\n"
      "[Jan 1] [ERROR] [tid 1] detected NVSwitch fatal error 20034 on fid 0\n");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->version, "535.5");
  ASSERT_EQ(log->errors.size(), 1u);
  EXPECT_EQ(log->errors[0].code, 20034);
  EXPECT_TRUE(log->errors[0].sxid);
  const auto service = parse_fabric_manager(
      "x nvidia-fabricmanager.service - NVIDIA fabric manager service\n   Loaded: loaded\n   Active: failed "
      "(Result: x)\n");
  EXPECT_EQ(service->state, "failed");
  EXPECT_EQ(parse_fabric_manager("Unit nvidia-fabricmanager.service could not be found.\n")->state,
            "not installed");
  EXPECT_EQ(parse_fabric_manager("Fabric Manager version is : 550.1\n")->version, "550.1");
}

TEST(IpLink, ReadsMtuAndAddress) {
  const auto out = parse_ip_link(
      "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT\n"
      "2: ens1@if3: <BROADCAST,UP> mtu 4200 qdisc mq state UP\n    link/ether 00:11:22:33:44:55 parentbus "
      "pci parentdev "
      "0000:3b:00.0\nib0: flags=4163<UP,BROADCAST,RUNNING>  mtu 2044\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->size(), 3u);
  EXPECT_EQ((*out)[1].name, "ens1");
  EXPECT_EQ((*out)[1].mtu, 4200);
  EXPECT_EQ((*out)[1].bdf, "0000:3b:00.0");
  EXPECT_EQ((*out)[2].mtu, 2044);
}

TEST(Lsmod, KnowsWholeLists) {
  const auto out = parse_lsmod(
      "Module                  Size  Used by\nnvidia_peermem         16384  0\nib_core 434176 2 a,b\n");
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->header);
  EXPECT_TRUE(out->modules.contains("nvidia_peermem"));
  EXPECT_FALSE(parse_lsmod("nvidia_peermem         16384  0\n")->header);
  EXPECT_FALSE(looks_like_lsmod("1024 12.80 0.08\n"));
}

TEST(Versions, ReadOneLineEach) {
  const auto driver = parse_driver_version_file(
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.9.4  Release\n");
  ASSERT_TRUE(driver);
  EXPECT_EQ(driver->driver.value, "580.9.4");
  EXPECT_TRUE(driver->open);
  EXPECT_FALSE(
      parse_driver_version_file("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.5  Thu\n")->open);
  EXPECT_EQ(parse_nvcc("Cuda compilation tools, release 12.4, V12.4.131\n")->value, "12.4");
  EXPECT_EQ(parse_uname("Linux n1 5.15.0-1-generic #1 SMP Mon x86_64 GNU/Linux\n")->value,
            "5.15.0-1-generic");
  EXPECT_EQ(parse_uname("6.1.0\n", "uname -r")->value, "6.1.0");
  EXPECT_EQ(parse_os_release("NAME=x\nPRETTY_NAME=\"Some Linux 12\"\n")->value, "Some Linux 12");
  EXPECT_EQ(parse_ofed_info("MLNX_OFED_LINUX-5.8-1.1.2.1:\n")->value, "5.8-1.1.2.1");
}

TEST(Versions, KernelCommandLineIsNoProse) {
  EXPECT_TRUE(looks_like_kernel_command_line("BOOT_IMAGE=/vmlinuz root=/dev/x ro\n"));
  EXPECT_TRUE(looks_like_kernel_command_line("console=ttyS0 quiet reboot=k\n"));
  EXPECT_FALSE(looks_like_kernel_command_line("the machine is quiet and ro\n"));
  EXPECT_TRUE(looks_like_kernel_command_line("anything\n", "cat /proc/cmdline"));
}

TEST(DfShm, ReadsSizes) {
  const auto out = parse_df_shm(
      "Filesystem Size Used Avail Use% Mounted on\nshm              64M   60M  4.0M  94% /dev/shm\n");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->bytes, 64u << 20);
  EXPECT_EQ(out->free_bytes, 4u << 20);
  EXPECT_EQ(parse_df_shm("tmpfs 65536 0 65536 0% /dev/shm\n")->bytes, 64u << 20);
}

TEST(KernelLog, IsKnownByLevelsAndInASystemLog) {
  EXPECT_TRUE(looks_like_kernel_log("<6>[  201.650687] sysrq: x\n<1>[  201.654822] BUG: y\n"));
  EXPECT_TRUE(looks_like_kernel_log("6,3964,206764307,-;nvidia-nvswitch2: open (major=510)\n"));
  EXPECT_FALSE(looks_like_kernel_log("6,3964,x,-;text\n1,2;3\n<b>[1.5] html\n"));
  const std::string system = "Aug 17 00:00:24 n systemd[1]: Finished.\n",
                    kernel = "Aug 17 00:00:25 n kernel: x\n";
  EXPECT_TRUE(looks_like_kernel_log(system + system + kernel)) << "other programs' lines do not count";
  EXPECT_FALSE(looks_like_kernel_log(system)) << "nothing of the kernel is in it";
  EXPECT_TRUE(looks_like_kernel_log(system + "Aug 17 00:00:26 n systemd-networkd[2]: ib0: Lost carrier\n"));
}

TEST(KernelLog, JoinsTheLinesOfALostGpu) {
  const auto out = parse_kernel_log(
      "[ 18.3] NVRM: The NVIDIA GPU 0000:b3:00.0\n         NVRM: (PCI ID: 10de:26b5) installed in this "
      "system has\n"
      "         NVRM: fallen off the bus and is not responding to commands.\n[ 20.0] usb 1-1: new\n"
      "[ 21.0] NVRM: fallen off the bus and is not responding to commands.\n");
  ASSERT_EQ(out->events.size(), 2u);
  EXPECT_EQ(out->events[0].kind, KernelEventKind::gpu_lost);
  EXPECT_EQ(out->events[0].bdf, "0000:b3:00.0");
  EXPECT_EQ(out->events[0].line, 3);
  EXPECT_EQ(kernel_event_of(out->events[0].text)->bdf, "0000:b3:00.0");
  EXPECT_EQ(out->events[1].bdf, std::nullopt) << "of another message";
}

TEST(KernelLog, ReadsEveryKindOfStamp) {
  EXPECT_EQ(seconds_of_stamp("[   12.5] x"), 12.5);
  EXPECT_EQ(seconds_of_stamp("<6>[   12.5] x"), 12.5);
  const auto of = [](const char* line) { return seconds_of_stamp(line).value_or(-1); };
  EXPECT_EQ(of("Aug 17 06:18:06 n p: x") - of("Aug 17 06:18:01 n p: x"), 5);
  EXPECT_EQ(of("[Sun Feb 23 16:24:18 2025] x") - of("[Sat Feb 22 16:24:18 2025] x"), 86400);
  EXPECT_EQ(of("2025-02-23T16:25:18,123456+00:00 x") - of("2025-02-23T16:24:18,123456+00:00 x"), 60);
  EXPECT_EQ(of("no stamp at all"), -1);
  EXPECT_EQ(of(""), -1);
  EXPECT_EQ(of("["), -1);
}

TEST(FabricManager, ItsLogIsKnownByItsLines) {
  const std::string line = "[Feb 25 2025 13:59:45] [INFO] [tid 1808] multicast group 0 is freed.\n";
  EXPECT_TRUE(looks_like_fabric_manager(line));
  const auto log = parse_fabric_manager(line);
  ASSERT_TRUE(log);
  EXPECT_TRUE(log->errors.empty());
}

}  // namespace
}  // namespace topotune::parse
