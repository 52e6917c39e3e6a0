#include "act/pci_config.h"

#include <bit>

#include "base/text.h"

namespace topotune::act {

namespace {

constexpr std::size_t kLegacy = 256, kCapabilities = 0x34, kExtended = 0x100;
constexpr unsigned kExpress = 0x10, kAcs = 0x000d;
constexpr unsigned kReadRequest = 0x7000;
constexpr int kMostCapabilities = 64;

unsigned byte_at(std::string_view config, std::size_t at) {
  return at < config.size() ? static_cast<unsigned char>(config[at]) : 0xffU;
}
std::uint16_t word_at(std::string_view config, std::size_t at) {
  return static_cast<std::uint16_t>(byte_at(config, at) | byte_at(config, at + 1) << 8);
}

// Offset of a capability; 0: absent. Links that lead in a circle end the walk.
std::size_t find_capability(std::string_view config, unsigned id) {
  std::size_t at = byte_at(config, kCapabilities) & 0xfcU;
  for (int i = 0; i < kMostCapabilities && at >= 0x40 && at + 2 <= config.size(); ++i) {
    if (byte_at(config, at) == id) return at;
    at = byte_at(config, at + 1) & 0xfcU;
  }
  return 0;
}

std::size_t find_extended(std::string_view config, unsigned id) {
  std::size_t at = kExtended;
  for (int i = 0; i < kMostCapabilities && at >= kExtended && at + 4 <= config.size(); ++i) {
    if (word_at(config, at) == id) return at;
    at = (word_at(config, at + 2) >> 4) & 0xffcU;
  }
  return 0;
}

}  // namespace

Result<ConfigField> find_field(std::string_view config, std::string_view field) {
  if (field == "MaxReadReq") {
    const auto at = find_capability(config, kExpress);
    if (at == 0 || at + 10 > config.size())
      return fail(Errc::unsupported,
                  "no PCI Express capability, or configuration space that is cut to {} bytes", config.size());
    return ConfigField{at + 8, word_at(config, at + 8)};
  }
  if (field != "ACSCtl") return fail(Errc::unsupported, "{}: no such field", field);
  if (config.size() <= kLegacy)
    return fail(Errc::denied, "configuration space is cut to {} bytes: the extended part needs root",
                config.size());
  const auto at = find_extended(config, kAcs);
  if (at == 0 || at + 8 > config.size()) return fail(Errc::unsupported, "no ACS capability");
  return ConfigField{at + 6, word_at(config, at + 6)};
}

Result<std::uint16_t> changed_register(const ConfigField& at, std::string_view field,
                                       std::string_view value) {
  if (field == "MaxReadReq") {
    const auto bytes = parse_int<unsigned>(value);
    if (!bytes || *bytes < 128 || *bytes > 4096 || !std::has_single_bit(*bytes))
      return fail(Errc::malformed, "{} is no read request size", value);
    const auto code = static_cast<unsigned>(std::countr_zero(*bytes)) - 7U;
    return static_cast<std::uint16_t>((at.value & ~kReadRequest) | code << 12);
  }
  const auto bits = value.starts_with("0x") ? parse_hex(value) : std::nullopt;
  if (!bits || *bits > 0xffff) return fail(Errc::malformed, "{} is no 16-bit number such as 0x0000", value);
  return static_cast<std::uint16_t>(*bits);
}

std::string field_text(const ConfigField& at, std::string_view field) {
  if (field == "MaxReadReq") return std::to_string(128U << ((at.value & kReadRequest) >> 12));
  return fmt::format("0x{:04x}", at.value);
}

}  // namespace topotune::act
