#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/cpuset.h"
#include "base/units.h"

namespace topotune::model {

// The words of `topotune.topology/1` (CLI contract). Order: nearest first.
enum class PathType { nvl, xgmi, c2c, pix, pxb, phb, node, sys };
const char* name_of(PathType type);                                  // "NVL", "PIX", ...
std::optional<PathType> path_type_from(std::string_view name);       // exact upper case

enum class SourceKind { live, capture, nvidia_smi_topo, nccl_topo_xml, rccl_topo_xml, hwloc_xml, folder, text };
const char* name_of(SourceKind kind);  // "live", "capture", "nvidia-smi-topo", ...

// About the input, not about the machine. `code` is a stable word such as "truncated" or "self-nvlink".
struct Warning {
  std::string code;
  std::string text;
  std::optional<int> line;  // from 1
};

struct Source {
  SourceKind kind = SourceKind::live;
  std::string name;      // file name as given, "live"
  bool complete = true;  // false: cut off, partly illegible, or not every pair is in it
};

struct NumaNode {
  int id = 0;
  std::optional<CpuSet> cpus;
  std::optional<std::uint64_t> memory_bytes;
  std::map<int, int> distances;  // ACPI SLIT: 10 is local
};

struct Package {
  int id = 0;
  CpuSet cpus;
};

// One side of a PCIe link. Unknown (0, 255, "Unknown") is nullopt.
struct PcieLink {
  std::optional<double> gts;  // GT/s per lane: 2.5, 5, 8, 16, 32, 64
  std::optional<int> width;   // lanes
  bool operator==(const PcieLink&) const = default;
};

// Raw one-direction bandwidth after line coding (8b/10b up to Gen2, 128b/130b, Gen6 FLIT ~ 236/256), or nothing.
std::optional<GBytesPerSec> bandwidth_of(const PcieLink& link);

enum class PciKind { host_bridge, bridge, gpu, nic, nvswitch, other };

// What NCCL's topology XML calls arch, vendor, familyid and modelid; words as there ("x86_64", "GenuineIntel").
struct CpuModel {
  std::string arch, vendor;
  std::optional<int> family, model;
  bool operator==(const CpuModel&) const = default;
};

// Every PCI function above or at a GPU, NIC or NVSwitch. `parent` is the id of the bridge above ("" = directly below
// the host bridge `root`). Ids are canonical BDFs, or the input's own ids for synthetic switches.
struct PciDevice {
  std::string id;
  std::string parent;
  std::string root;  // host bridge: "0000:20" (domain:bus), "cpu0" in NCCL XML
  PciKind kind = PciKind::other;
  std::optional<std::uint32_t> class_code;  // 0x030200
  std::optional<std::uint16_t> vendor, device, subsystem_vendor, subsystem_device;
  PcieLink current, capable;
  std::optional<GBytesPerSec> link_bandwidth;  // where the input tells bandwidth only (hwloc's pci_link_speed)
  std::optional<int> numa;  // nullopt: -1 or unknown
  std::optional<CpuSet> local_cpus;
  std::optional<std::string> driver;
  std::optional<bool> virtual_function;
  std::vector<std::string> peer_links;  // ids of switches joined to this one beside the tree (NCCL's pcilink)
  bool pcie_switch_port = false;  // upstream or downstream port of a switch, as against a root port
  bool root_port = false;
  std::string source;  // where it was read
  std::optional<std::string> name;  // the text of lspci: "Mellanox Technologies MT2910 Family [ConnectX-7]"
  // `parent` follows from the order of bus numbers only; the input did not print what is behind each bridge.
  bool parent_inferred = false;
  // Configuration space beyond byte 64 (root only). Unreadable: nullopt.
  std::optional<std::uint16_t> acs_capability, acs_control;
  std::optional<int> max_read_request, max_payload;
  std::optional<bool> ats_enabled;
  std::optional<bool> config_all_ones;  // fallen off the bus
  std::optional<std::string> power_state;  // "D0", "D3cold"
  std::optional<bool> l1_aspm;             // link/l1_aspm
  std::string config_why;               // why the extended space was not read
  // Errors that the port has counted since boot, by kind: "correctable", "nonfatal", "fatal" (TOTAL_ERR_* of
  // aer_dev_*, Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats).
  std::map<std::string, std::uint64_t> aer;
};

// NVLinks (or xGMI) of one GPU towards one end. `to` is a GPU id, an NVSwitch's PCI id, "NVSwitch", or "" (unknown).
struct NvLinkGroup {
  std::string to;
  int count = 0;
  bool xgmi = false;
  std::optional<GBytesPerSec> per_link;  // one direction
  bool counted = true;                   // false: joined, but how many links is unknown; `count` is 1
};

// GPU to its CPU, chip to chip (Grace).
struct C2cLink {
  int count = 0;
  std::optional<GBytesPerSec> per_link;  // one direction
  bool operator==(const C2cLink&) const = default;
};

struct Gpu {
  std::string id;  // "GPU<n>" in the input's own numbering
  int index = 0;
  std::optional<std::string> bdf, name, uuid;
  std::string pci;  // id in Topology::pci where that is not `bdf` (several machines in one file, one bdf twice)
  std::optional<std::uint16_t> pci_vendor, pci_device;
  std::optional<int> sm;  // 90: compute capability 9.0; gfx number for AMD (rccl "gcn")
  std::optional<int> numa;
  std::optional<CpuSet> cpus;
  std::optional<int> nvlinks;  // active links
  std::optional<int> nvlinks_capable;
  std::optional<bool> gdr;
  std::optional<bool> mig;
  std::vector<NvLinkGroup> links;
  std::optional<C2cLink> c2c;
  std::vector<int> inactive_links;                          // link numbers
  std::map<int, GBytesPerSec> link_speeds;                  // by link number, one direction
};

struct Nic {
  std::string id;  // "NIC<n>"
  int index = 0;
  std::optional<std::string> name;  // RDMA device ("mlx5_0") or netdev
  std::optional<std::string> bdf;
  std::string pci;  // id in Topology::pci where that is not `bdf`
  std::optional<int> numa;
  std::optional<std::string> link_layer;  // "InfiniBand", "Ethernet"
  std::optional<GbitsPerSec> rate;
  std::optional<bool> gdr;
  bool is_virtual = false;  // no PCI device behind it
  bool rdma = false;
  std::optional<int> port;
  std::optional<std::uint64_t> guid;
  std::vector<std::string> netdevs;
};

struct PciSwitch {
  std::string id;
  std::string bdf;
  std::string kind;  // "pcie" or "nvswitch"
};

// One unordered pair. `stated` paths come from a matrix; the others are derived from the tree (model/paths.h).
struct Path {
  std::string a, b;
  std::optional<PathType> type;
  std::optional<int> nvlinks;  // links of the narrower hop
  std::optional<GBytesPerSec> bandwidth;
  std::string why;                      // the arithmetic of `bandwidth`: "18 links x 26.562 GB/s x 0.776"
  std::optional<std::string> nccl_type;  // where NCCL would decide otherwise, in NCCL's word
  // Of two GPUs: the input tells whether NVLink or xGMI joins them, be their class on PCIe known or not.
  bool links_told = false;
};

struct Topology {
  Source source;
  std::vector<Warning> warnings;
  std::vector<NumaNode> numa;
  std::vector<Package> packages;
  std::vector<CpuSet> cores;  // hardware threads of each core, in order of their first CPU; empty: not told
  std::optional<CpuModel> cpu;
  std::vector<Gpu> gpus;
  std::vector<Nic> nics;
  std::vector<PciDevice> pci;
  std::vector<PciSwitch> switches;
  std::vector<Path> stated;  // only where the input is a matrix
  bool tree_known = false;   // `pci` carries parents: paths can be derived
  // How the tree is to be read: NCCL XML has one class (PHB) for devices that meet in one cpu element.
  bool nccl_classes = false;
};

const Gpu* find_gpu(const Topology& topology, std::string_view id);
const PciDevice* find_pci(const Topology& topology, std::string_view id);

}  // namespace topotune::model
