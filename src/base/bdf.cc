#include "base/bdf.h"

#include "base/text.h"

namespace topotune {

std::string Bdf::to_string() const {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  const auto put = [&](std::uint32_t value, int digits) {
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHex[value >> shift & 15U];
  };
  int digits = 4;  // of the domain; VMD and Hyper-V have longer ones
  while (digits < 8 && domain >> (4 * digits) != 0) ++digits;
  put(domain, digits);
  out += ':';
  put(bus, 2);
  out += ':';
  put(device, 2);
  out += '.';
  put(function, 1);
  return out;
}

std::optional<Bdf> parse_bdf(std::string_view text) {
  Bdf out;
  const auto dot = text.rfind('.');
  const bool has_function = dot != std::string_view::npos;
  if (has_function) {
    const auto function = parse_int<std::uint8_t>(text.substr(dot + 1), 16);
    if (!function || *function > 7) return std::nullopt;
    out.function = *function;
    text = text.substr(0, dot);
  }
  const auto last = text.rfind(':');
  if (last == std::string_view::npos) return std::nullopt;
  const auto first = text.find(':');  // of three fields; the same as `last` of two
  if (first == last && !has_function) return std::nullopt;
  if (first != last) {
    const auto field = text.substr(0, first);
    const auto domain = parse_int<std::uint32_t>(field, 16);
    if (!domain || field.size() < 4 || field.size() > 8) return std::nullopt;
    out.domain = *domain;
  }
  const auto bus_text = first == last ? text.substr(0, last) : text.substr(first + 1, last - first - 1);
  const auto device_text = text.substr(last + 1);
  const auto bus = parse_int<std::uint8_t>(bus_text, 16);  // a fourth field would leave a colon in it
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
