#include "base/bdf.h"

#include <fmt/format.h>

#include "base/text.h"

namespace topotune {

std::string Bdf::to_string() const {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, device, function);
}

std::optional<Bdf> parse_bdf(std::string_view text) {
  Bdf out;
  const auto dot = text.rfind('.');
  if (dot != std::string_view::npos) {
    const auto function = parse_int<std::uint8_t>(text.substr(dot + 1), 16);
    if (!function || *function > 7) return std::nullopt;
    out.function = *function;
    text = text.substr(0, dot);
  }
  const auto fields = split(text, ':');
  if (fields.size() < 2 || fields.size() > 3 || (fields.size() == 2 && dot == std::string_view::npos))
    return std::nullopt;
  if (fields.size() == 3) {
    const auto domain = parse_int<std::uint32_t>(fields[0], 16);
    if (!domain || fields[0].size() < 4 || fields[0].size() > 8) return std::nullopt;
    out.domain = *domain;
  }
  const auto bus_text = fields[fields.size() - 2];
  const auto device_text = fields.back();
  const auto bus = parse_int<std::uint8_t>(bus_text, 16);
  const auto device = parse_int<std::uint8_t>(device_text, 16);
  if (!bus || !device || bus_text.size() > 2 || device_text.size() > 2 || *device > 31) return std::nullopt;
  out.bus = *bus;
  out.device = *device;
  return out;
}

std::string canonical_bdf(std::string_view text) {
  const auto bdf = parse_bdf(trim(text));
  return bdf ? bdf->to_string() : to_lower(trim(text));
}

}  // namespace topotune
