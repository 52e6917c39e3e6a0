#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace topotune {

// A PCI address. Domains can have more than 16 bits (VMD, Azure).
struct Bdf {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;
  std::uint8_t function = 0;

  auto operator<=>(const Bdf&) const = default;
  std::string to_string() const;  // "0000:1b:00.0", lower case
};

// Reads "1b:00.0", "0000:1B:00.0", "00000000:1B:00.0" (nvidia-smi), "0000:1b:00" (function 0).
std::optional<Bdf> parse_bdf(std::string_view text);

// The canonical text of an address, or the text itself in lower case when it is none ("ffff:ff:01.0" is one).
std::string canonical_bdf(std::string_view text);

}  // namespace topotune
