#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/topology.h"

namespace topotune::parse {

// The words in which topology files speak of PCI devices.

// "0x030200" -> 0x030200; hwloc's four digits "0302" -> 0x030200.
std::optional<std::uint32_t> parse_pci_class(std::string_view text);

// "16.0 GT/s PCIe", "16 GT/s" -> 16. Nothing for "", "Unknown", 0 and what no link can have.
std::optional<double> parse_link_speed(std::string_view text);
// "16" -> 16 lanes; nothing for 0 (no link), 63 and 255 (unknown).
std::optional<int> parse_link_width(std::string_view text);
std::optional<std::uint16_t> parse_pci_id(std::string_view text);  // "0x10de", "10de"

// What a device is by its class code (pci.ids, "List of known device classes"). Displays of boards'
// management controllers (ASPEED, Matrox, ATI ES1000 and the like) are `other`.
model::PciKind kind_of(std::optional<std::uint32_t> class_code, std::optional<std::uint16_t> vendor,
                       std::optional<std::uint16_t> device);

}  // namespace topotune::parse
