#include "parse/pci_text.h"

#include "base/text.h"

namespace topotune::parse {

using model::PciKind;

std::optional<std::uint32_t> parse_pci_class(std::string_view text) {
  text = trim(text);
  const auto digits = text.size() - (text.starts_with("0x") ? 2 : 0);
  const auto value = parse_hex(text);
  if (!value || *value > 0xffffff) return std::nullopt;
  return static_cast<std::uint32_t>(digits == 4 ? *value << 8 : *value);
}

std::optional<double> parse_link_speed(std::string_view text) {
  text = trim(text);
  const auto speed = parse_double(text.substr(0, text.find_first_of(" \tG")));
  if (!speed || *speed < 1 || *speed > 256) return std::nullopt;
  return speed;
}

std::optional<int> parse_link_width(std::string_view text) {
  text = trim(text);
  if (text.starts_with("x")) text.remove_prefix(1);
  const auto width = parse_int<int>(text);
  if (!width || *width < 1 || *width > 32) return std::nullopt;
  return width;
}

std::optional<std::uint16_t> parse_pci_id(std::string_view text) {
  const auto value = parse_hex(trim(text));
  if (!value || *value > 0xffff) return std::nullopt;
  return static_cast<std::uint16_t>(*value);
}

namespace {

// Vendors of consoles and virtual displays; AMD's VGA adapters before Radeon HD 7000 (GCN) are no compute
// devices.
bool console(std::uint32_t sub, std::optional<std::uint16_t> vendor, std::optional<std::uint16_t> device) {
  if (sub == 0x0380 && vendor == 0x1234) return false;  // QEMU's display without a console stands for a GPU in guests
  for (const int one : {0x1a03, 0x102b, 0x18ca, 0x1234, 0x1013, 0x1b36, 0x15ad, 0x1414, 0x1af4}) {
    if (vendor == one) return true;
  }
  return sub == 0x0300 && vendor == 0x1002 && device && *device < 0x6600;
}

}  // namespace

PciKind kind_of(std::optional<std::uint32_t> class_code, std::optional<std::uint16_t> vendor,
                std::optional<std::uint16_t> device) {
  if (!class_code) return PciKind::other;
  const auto sub = *class_code >> 8, base = *class_code >> 16;
  if (sub == 0x0600) return PciKind::host_bridge;
  if (sub == 0x0604 || sub == 0x0609 || sub == 0x0801) return PciKind::bridge;
  if (sub == 0x0680) return vendor && vendor != 0x10de ? PciKind::other : PciKind::nvswitch;
  if (base == 0x03 || sub == 0x1200) return console(sub, vendor, device) ? PciKind::other : PciKind::gpu;
  if (base == 0x02 || sub == 0x0c06) return PciKind::nic;
  return PciKind::other;
}

}  // namespace topotune::parse
