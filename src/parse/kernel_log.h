#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::parse {

enum class KernelEventKind {
  xid,             // NVRM: Xid (PCI:…): code
  sxid,            // nvidia-nvswitchN: SXid (PCI:…): code
  gpu_lost,        // NVRM: … has fallen off the bus; RmInitAdapter failed
  api_mismatch,    // NVRM: API mismatch: client and module versions
  pcie_bandwidth,  // "31.5 Gb/s available PCIe bandwidth, limited by …"
  aer,             // PCIe AER error (not "enabled")
  link,            // an adapter's link went down or up, cable events, lost carrier
  peer_memory,     // nvidia-peermem could not be loaded or registered
  iommu_fault,     // DMAR/AMD-Vi page fault
  other            // other lines of these drivers that name an error
};

// One line that names a device fault.
struct KernelEvent {
  int line = 0;
  KernelEventKind kind = KernelEventKind::other;
  std::string text;  // the whole line, trimmed
  std::optional<std::string> bdf;
  std::optional<int> code;                               // Xid, SXid
  std::optional<std::string> device;                     // "nvidia-nvswitch3", interface name
  std::optional<double> available_gbits, capable_gbits;  // pcie_bandwidth
};

struct KernelLog {
  std::vector<KernelEvent> events;  // of the last boot that the text shows
  bool earlier_boots = false;       // events of earlier boots were left out
  std::size_t left_out = 0;         // more lines of a flood (AER, link, page faults) than are kept
  std::optional<std::string> kernel, command_line, hypervisor, nvidia_driver, iommu_domain;
  std::optional<bool> nvidia_open;
  int kernel_line = 0, command_line_line = 0, hypervisor_line = 0, nvidia_driver_line = 0, iommu_line = 0;
};

// `dmesg` (also -T) and `journalctl -k` (with "-- Boot …" lines), or any part of them.
bool looks_like_kernel_log(std::string_view text);
Result<KernelLog> parse_kernel_log(std::string_view text);

// When a line was written, in seconds from a point of its own kind of stamp: since boot ("[  12.3]"), in a year
// of 31-day months ("Feb 23 16:24:18", "[Sun Feb 23 16:24:18 2025]", "2025-02-23T16:24:18"). Good for spans
// within one log.
std::optional<double> seconds_of_stamp(std::string_view line);

// One line alone: an event, or nothing.
std::optional<KernelEvent> kernel_event_of(std::string_view line);

}  // namespace topotune::parse
