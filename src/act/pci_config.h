#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace topotune::act {

// Fields of a function's configuration space (its bytes as sysfs gives them, little endian). PCIe Base
// Specification: PCI Express capability 0x10, Device Control at +8, Max_Read_Request_Size in bits 14:12 (128
// << n bytes); extended capability 0x000d (ACS), ACS Control at +6.
struct ConfigField {
  std::size_t offset = 0;   // of the 16-bit register
  std::uint16_t value = 0;  // of the whole register
};

// Where `field` is and what its register holds. Errors: the capability is absent, or the space too short (not
// root).
Result<ConfigField> find_field(std::string_view config, std::string_view field);

// The register with `field` changed to `value` ("0x0011", "4096"); malformed for another text.
Result<std::uint16_t> changed_register(const ConfigField& at, std::string_view field, std::string_view value);

// The field's text, as plans write it.
std::string field_text(const ConfigField& at, std::string_view field);

}  // namespace topotune::act
