#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/fact.h"
#include "model/topology.h"

namespace topotune::model {

struct Gid {
  int index = 0;
  std::string address;  // "fe80:0000:...": 8 groups of 4 digits, lower case
  std::string type;     // "IB/RoCE v1", "RoCE v2"; "" unknown
  std::string netdev;
};

struct RdmaPort {
  std::string device;  // "mlx5_0"
  int port = 1;
  std::string source;
  std::optional<std::string> bdf;
  std::optional<std::string> state;       // "ACTIVE", "DOWN", "INIT", "ARMED"
  std::optional<std::string> phys_state;  // "LinkUp", "Disabled", "Polling"
  std::optional<std::string> link_layer;  // "InfiniBand", "Ethernet"
  std::optional<double> gbits_per_s;
  std::optional<int> active_mtu;          // bytes
  std::optional<int> max_mtu;
  std::optional<int> lid, sm_lid;
  std::optional<std::string> netdev;
  std::optional<int> netdev_mtu;
  std::optional<bool> software;  // soft-RoCE, soft-iWARP: no PCI function behind the RDMA device itself
  std::optional<std::string> board_id, firmware, hca_type, node_guid, system_image_guid;
  std::optional<bool> gids_known;         // true: `gids` is the whole table
  std::vector<Gid> gids;                  // used entries only
  std::map<std::string, std::uint64_t> counters;  // counters/ and hw_counters/
  std::optional<std::string> uverbs;       // opening /dev/infiniband/uverbsN: "ok", "denied", "not found"
  std::optional<unsigned> pfc_priorities;  // bit n: PFC on for priority n
  std::optional<bool> ecn;                 // any of ecn/roce_np/enable/*
  std::optional<bool> adaptive_retransmission;
  std::optional<std::string> trust;        // what decides a packet's priority: "dscp", "pcp"
  std::map<int, int> dscp_priority;        // DSCP -> priority; empty: not known
  std::vector<std::string> networks;       // of the netdev, with the real prefix length: "10.0.3.0/24"
  std::optional<std::uint64_t> carrier_changes;  // of the netdev, since it exists
};

// NVML's answers about one GPU that are not topology.
struct GpuState {
  std::string gpu;  // id in Topology
  std::optional<int> fabric_state;   // nvmlGpuFabricInfo: 0 not supported, 1 not started, 2 in progress, 3 completed
  std::optional<int> fabric_status;  // nvmlReturn_t, 0 is success
  std::optional<std::uint32_t> fabric_health_mask;
  std::optional<std::string> clique, cluster_uuid;
  std::optional<std::uint64_t> clock_event_reasons;
  std::optional<int> utilisation;  // percent
  std::optional<double> temperature_c;
  std::optional<std::uint64_t> bar1_bytes, memory_bytes;
  std::optional<std::uint64_t> pcie_replays;
  std::optional<std::string> persistence, compute_mode, vbios, board_part;
  std::optional<std::string> cc_mode;  // confidential computing
  // By link number, then "replay", "recovery", "crc_flit", "crc_data": counted since the driver was loaded.
  std::map<int, std::map<std::string, std::uint64_t>> nvlink_errors;
  std::optional<bool> multicast;       // CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED
  std::map<std::string, std::string> other;  // text of nvidia-smi -q that rules quote
};

// Status of one direction of a pair: "OK", "CNS", "GNS", "TNS", "DR", "NS", "U".
struct P2pStatus {
  std::string from, to, capability;  // capability: "read", "write", "nvlink", "atomics", "prop"
  std::string status;
};

struct MemoryLimit {
  std::optional<std::uint64_t> soft, hard;  // nullopt: unlimited
};

// A process that computes on a GPU, with the CPUs that it may run on.
struct GpuProcess {
  int pid = 0;
  std::string gpu;  // id in Topology
  std::string name;
  std::optional<CpuSet> allowed;  // Cpus_allowed_list
};

// An NCCL topology file that the input names or holds beside other texts.
struct TopologyFile {
  std::string name;
  std::string text;
};

struct Interrupt {
  int irq = 0;
  std::string device;  // RDMA device or netdev
  std::optional<CpuSet> effective;
};

// An ACSCtl line of which the text does not tell the device ("lspci -vvv | grep ACSCtl").
struct LooseAcs {
  std::string source;  // "lspci.txt:3"
  std::string text;
  std::uint16_t control = 0;  // bits as in the ACS Control register
};

// Everything that is known of one machine, from wherever. Discovery fills it from a Host, `discover/folder` from the
// texts of usual commands; rules read only this.
struct Machine {
  Topology topology;

  // Software
  Fact<std::string> nvidia_driver;         // "580.159.04"
  Fact<std::string> nvml_library;          // version that libnvidia-ml reports
  Fact<std::string> nvml_error;            // text of a failed init
  Fact<std::string> cuda_driver;           // "13.0": newest CUDA the driver supports
  Fact<std::string> cuda_runtime;          // of libcudart found
  Fact<std::string> nccl;                  // "2.28.9"
  Fact<std::string> ucx, ofed;
  Fact<std::string> kernel;                // uname -r
  Fact<std::string> kernel_command_line;
  Fact<std::string> os;                    // PRETTY_NAME
  Fact<std::map<std::string, std::string>> modules;   // loaded module -> version or ""
  Fact<std::vector<std::string>> nccl_plugins;        // libnccl-*.so found on the library path
  Fact<bool> nvidia_open_kernel_module;
  Fact<std::string> fabric_manager;        // "active", "inactive", "not installed"
  Fact<std::string> fabric_manager_version;
  Fact<std::string> imex_service;          // nvidia-imex: "active", "inactive", "not installed"
  Fact<bool> imex_channel;                 // a device node below /dev/nvidia-caps-imex-channels
  Fact<bool> nvlink_disabled;              // driver parameter NVreg_NvLinkDisable=1

  // Where it runs
  Fact<bool> virtual_machine;              // hypervisor bit
  Fact<std::string> hypervisor;            // "KVM", ...
  Fact<bool> container;
  Fact<std::string> boot_id;
  Fact<bool> root;                         // effective uid 0

  // Kernel settings and limits
  Fact<int> numa_balancing;
  Fact<std::string> thp, aspm_policy;
  Fact<std::map<std::string, std::string>> iommu_groups;  // bdf -> group type ("DMA", "DMA-FQ", "identity")
  Fact<MemoryLimit> memlock;               // bytes
  Fact<std::uint64_t> nofile;
  Fact<std::uint64_t> cap_effective;
  Fact<bool> initial_user_namespace;
  Fact<std::uint64_t> shm_bytes, shm_free_bytes;
  Fact<std::uint64_t> shm_device;          // st_dev of /dev/shm: equal in processes that share it
  Fact<CpuSet> allowed_cpus;               // of this process
  Fact<CpuSet> cgroup_cpus;                // cpuset.cpus.effective
  Fact<CpuSet> online_cpus;
  Fact<std::string> cpu_max;               // cgroup v2 cpu.max: "max 100000", "400000 100000"
  Fact<std::uint64_t> cpu_throttled;       // nr_throttled of cpu.stat
  Fact<std::string> hostname;
  std::optional<std::int64_t> read_at;     // seconds since 1970: when the facts were read
  std::optional<double> uptime_seconds;    // at that time
  Fact<std::map<std::string, std::string>> governors;  // cpu number -> scaling_governor
  Fact<std::string> cpufreq_driver;        // "intel_pstate", "acpi-cpufreq"
  Fact<std::map<std::string, std::string>> energy_preferences;  // cpu number -> energy_performance_preference
  Fact<std::vector<std::string>> orphan_shm;  // /dev/shm/nccl-* that no living process maps
  Fact<bool> irqbalance;                   // the service runs

  // GPUDirect
  Fact<std::string> peermem;               // version of nvidia_peermem, "" when loaded without one
  Fact<std::vector<std::string>> memory_peers;  // names below /sys/kernel/mm/memory_peers
  Fact<bool> dmabuf;                       // an MR of device memory could be registered

  // Devices
  Fact<std::vector<std::string>> nvidia_pci_gpus;  // bdfs of class 0300/0302, vendor 10de, from the bus
  Fact<int> nvml_gpu_count;
  std::vector<GpuState> gpu_states;
  std::vector<P2pStatus> p2p;
  Fact<std::vector<GpuProcess>> gpu_processes;
  std::vector<RdmaPort> ports;
  Fact<bool> rdma_read;                    // the RDMA class was listed (empty list included)
  std::vector<Interrupt> interrupts;
  Fact<std::vector<std::string>> kernel_log;  // lines that name a device fault
  std::vector<std::string> kernel_log_sources;  // "dmesg.txt:12" of each line of kernel_log; empty: one source for all
  std::vector<LooseAcs> loose_acs;

  std::vector<TopologyFile> topology_files;

  // Contradictions between sources, failures of single devices: said, never hidden.
  std::vector<Warning> diagnostics;

  // What an input of commands' texts consists of: "ibstat.txt: ibstat".
  std::vector<std::string> inputs;
};

const GpuState* find_state(const Machine& machine, std::string_view gpu);

}  // namespace topotune::model
