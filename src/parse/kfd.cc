#include "parse/kfd.h"

#include <cstdint>

#include "base/bdf.h"
#include "base/text.h"

namespace topotune::parse {

static std::optional<std::uint64_t> property(std::string_view text, std::string_view name) {
  for (const auto line : lines(text.substr(0, 1 << 16))) {
    const auto fields = words(line);
    if (fields.size() == 2 && fields[0] == name) return parse_int<std::uint64_t>(fields[1]);
  }
  return std::nullopt;
}

// 90402 is gfx942, 90010 gfx90a, which RCCL counts as 910: major, minor, step.
static std::optional<int> gfx_of(std::optional<std::uint64_t> version) {
  if (!version || *version == 0 || *version > 999999) return std::nullopt;
  const auto number = static_cast<int>(*version);
  return number / 10000 * 100 + number / 100 % 100 * 10 + number % 100;
}

std::optional<KfdGpu> parse_kfd_node(std::string_view properties) {
  const auto simds = property(properties, "simd_count");
  const auto location = property(properties, "location_id");
  if (!simds || *simds == 0 || !location || *location > 0xffff) return std::nullopt;
  const auto domain = property(properties, "domain").value_or(0);
  if (domain > 0xffffffff) return std::nullopt;
  const Bdf bdf{static_cast<std::uint32_t>(domain), static_cast<std::uint8_t>(*location >> 8),
                static_cast<std::uint8_t>(*location >> 3 & 0x1f), static_cast<std::uint8_t>(*location & 7)};
  return KfdGpu{bdf.to_string(), gfx_of(property(properties, "gfx_target_version"))};
}

std::optional<KfdLink> parse_kfd_link(std::string_view properties) {
  constexpr std::uint64_t kXgmi = 11, kMaxNodes = 4096, kMaxLinks = 16, kMaxMbytes = 10'000'000;
  const auto type = property(properties, "type");
  const auto to = property(properties, "node_to");
  if (!type || !to || *to > kMaxNodes) return std::nullopt;
  KfdLink out;
  out.xgmi = *type == kXgmi;
  out.to = static_cast<int>(*to);
  const auto one = property(properties, "min_bandwidth").value_or(0);
  const auto all = property(properties, "max_bandwidth").value_or(0);
  if (one == 0 || one > kMaxMbytes) return out;
  out.gbytes_per_s = static_cast<double>(one) / 1000;
  const auto count = all / one;
  if (count >= 1 && count <= kMaxLinks) out.count = static_cast<int>(count);
  return out;
}

}  // namespace topotune::parse
