#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parse/pci_text.h"

namespace topotune::parse {

// Small texts below /sys/bus/pci/devices/BDF. What the kernel prints for "unknown" is nothing here.
// Speeds, widths, classes and ids: pci_text.h.

// numa_node: "1" -> 1; "-1" -> nothing.
std::optional<int> parse_numa_node(std::string_view text);

// Where a device hangs, from the text of its link: "../../../devices/pci0000:20/0000:20:00.0/0000:21:00.0".
struct PciPosition {
  std::string root;                  // "0000:20": domain and bus of the nearest host bridge
  std::vector<std::string> bridges;  // from the root port down, canonical addresses
  std::string id;                    // the device's own address
};
// Nothing when the text has no "pciDDDD:BB" component or does not end with a PCI address, or is deeper than
// 64 devices. Behind a VMD the last root counts (".../pci10000:80/10000:80:02.0/10000:81:00.0").
std::optional<PciPosition> parse_pci_link(std::string_view link);
// The PCI address nearest to the end of a device link:
// "../../devices/pci0000:20/.../0000:23:00.0/virtio3/net/eth0".
std::optional<std::string> last_pci_address(std::string_view link);

// aer_dev_correctable and its siblings: the number behind TOTAL_ERR_COR, TOTAL_ERR_NONFATAL, TOTAL_ERR_FATAL.
std::optional<std::uint64_t> parse_aer_total(std::string_view text);

// Configuration space (`config`): PCI Local Bus 3.0, PCI Express Base (capability 0x10; extended 0x000d ACS,
// 0x000f ATS).
struct PciConfig {
  enum class Port { endpoint, root_port, upstream, downstream, bridge, integrated, unknown };
  bool all_ones = false;  // the first 64 bytes read 0xff: the device does not answer
  std::optional<std::uint16_t> vendor, device;
  std::optional<Port> port;                                  // of the PCI Express capability
  std::optional<int> max_payload, max_read_request;          // bytes, Device Control
  std::optional<bool> extended;                              // whether bytes beyond 256 were there to read
  std::optional<std::uint16_t> acs_capability, acs_control;  // nothing: not read, or no such capability
  std::optional<bool> ats_enabled;
  std::string why;  // why something is missing: "only 64 bytes (needs root)"
};
PciConfig parse_pci_config(std::string_view bytes);

}  // namespace topotune::parse
