#include "parse/sysfs_pci.h"

#include <algorithm>
#include <set>

#include "base/bdf.h"
#include "base/text.h"

namespace topotune::parse {

std::optional<int> parse_numa_node(std::string_view text) {
  const auto node = parse_int<int>(trim(text));
  if (!node || *node < 0 || *node > 1 << 20) return std::nullopt;
  return node;
}

// "0000:23:00.0" and nothing shorter: folder names such as "23:00.0" are not the kernel's.
static std::optional<std::string> full_address(std::string_view name) {
  if (std::ranges::count(name, ':') != 2 || name.find('.') == std::string_view::npos) return std::nullopt;
  const auto bdf = parse_bdf(name);
  if (!bdf) return std::nullopt;
  return bdf->to_string();
}

// "pci0000:20", "pci10000:e0" -> "0000:20".
static std::optional<std::string> root_of(std::string_view name) {
  if (!name.starts_with("pci")) return std::nullopt;
  const auto fields = split(name.substr(3), ':');
  if (fields.size() != 2 || fields[0].size() < 4 || fields[0].size() > 8 || fields[1].size() != 2)
    return std::nullopt;
  if (!std::ranges::all_of(fields[0], is_hex_digit) || !std::ranges::all_of(fields[1], is_hex_digit))
    return std::nullopt;
  return to_lower(name.substr(3));
}

std::optional<PciPosition> parse_pci_link(std::string_view link) {
  constexpr std::size_t kMaxDepth = 64;
  PciPosition out;
  for (const auto name : split(trim(link), '/')) {
    if (auto root = root_of(name)) {
      out = {std::move(*root), {}, {}};
      continue;
    }
    auto address = full_address(name);
    if (!address && !out.id.empty()) return std::nullopt;
    if (!address) continue;
    if (!out.id.empty()) out.bridges.push_back(std::move(out.id));
    out.id = std::move(*address);
    if (out.bridges.size() > kMaxDepth) return std::nullopt;
  }
  if (out.root.empty() || out.id.empty()) return std::nullopt;
  return out;
}

std::optional<std::string> last_pci_address(std::string_view link) {
  const auto names = split(trim(link), '/');
  for (auto name = names.rbegin(); name != names.rend(); ++name)
    if (auto address = full_address(*name)) return address;
  return std::nullopt;
}

namespace {

// Little-endian reads that know where the text ends.
class Space {
 public:
  explicit Space(std::string_view bytes) : bytes_(bytes) {}

  std::optional<std::uint32_t> word(std::size_t at, std::size_t size) const {
    if (at + size > bytes_.size()) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes_[at + i]);
    return value;
  }
  std::optional<std::uint16_t> word16(std::size_t at) const {
    const auto value = word(at, 2);
    if (!value) return std::nullopt;
    return static_cast<std::uint16_t>(*value);
  }

  // Offset of a capability of the classic list (pointer at 0x34, bit 4 of Status says that there is one).
  std::optional<std::size_t> capability(std::uint32_t id) const {
    const auto status = word(0x06, 2);
    if (!status || (*status & 0x10) == 0) return std::nullopt;
    auto at = word(0x34, 1);
    for (int steps = 0; at && *at >= 0x40 && steps < 48; ++steps) {
      const auto header = word(*at & 0xfcu, 2);
      if (!header) return std::nullopt;
      if ((*header & 0xff) == id) return *at & 0xfcu;
      at = *header >> 8;
    }
    return std::nullopt;
  }

  // Offset of an extended capability (list at 0x100; next pointer in bits 20-31 of the header).
  std::optional<std::size_t> extended_capability(std::uint32_t id) const {
    std::set<std::uint32_t> seen;
    for (std::uint32_t at = 0x100; at >= 0x100 && seen.insert(at).second;) {
      const auto header = word(at, 4);
      if (!header || *header == 0 || *header == 0xffffffff) return std::nullopt;
      if ((*header & 0xffff) == id) return at;
      at = *header >> 20 & 0xffc;
    }
    return std::nullopt;
  }

 private:
  std::string_view bytes_;
};

PciConfig::Port port_of(std::uint16_t flags) {
  switch (flags >> 4 & 0xf) {  // PCI Express Capabilities register, Device/Port Type
    case 0x0:
    case 0x1:
      return PciConfig::Port::endpoint;
    case 0x4:
      return PciConfig::Port::root_port;
    case 0x5:
      return PciConfig::Port::upstream;
    case 0x6:
      return PciConfig::Port::downstream;
    case 0x7:
    case 0x8:
      return PciConfig::Port::bridge;
    case 0x9:
    case 0xa:
      return PciConfig::Port::integrated;
    default:
      return PciConfig::Port::unknown;
  }
}

void read_express(const Space& space, PciConfig& out) {
  const auto express = space.capability(0x10);
  if (!express) return;
  if (const auto flags = space.word16(*express + 2)) out.port = port_of(*flags);
  if (const auto control = space.word16(*express + 8)) {
    const int payload = *control >> 5 & 7;
    const int request = *control >> 12 & 7;
    if (payload <= 5) out.max_payload = 128 << payload;  // 6 and 7 are reserved
    if (request <= 5) out.max_read_request = 128 << request;
  }
}

void read_extended(const Space& space, PciConfig& out) {
  if (const auto acs = space.extended_capability(0x000d)) {
    out.acs_capability = space.word16(*acs + 4);
    out.acs_control = space.word16(*acs + 6);
  }
  if (const auto ats = space.extended_capability(0x000f))
    if (const auto control = space.word16(*ats + 6)) out.ats_enabled = (*control & 0x8000) != 0;
}

}  // namespace

PciConfig parse_pci_config(std::string_view bytes) {
  PciConfig out;
  const auto head = bytes.substr(0, 64);
  if (head.size() < 64) {
    out.why = "only " + std::to_string(head.size()) + " bytes of configuration space";
    return out;
  }
  out.all_ones = std::ranges::all_of(head, [](char c) { return c == '\xff'; });
  if (out.all_ones) {
    out.why = "the device does not answer (all ones)";
    return out;
  }
  const Space space(bytes.substr(0, 4096));
  out.vendor = space.word16(0);
  out.device = space.word16(2);
  out.extended = bytes.size() > 256;
  if (bytes.size() == 64)
    out.why = "only 64 bytes of configuration space (needs root)";
  else if (!*out.extended)
    out.why = "no extended configuration space";
  read_express(space, out);
  if (*out.extended) read_extended(space, out);
  return out;
}

std::optional<std::uint64_t> parse_aer_total(std::string_view text) {
  for (const auto line : lines(text.substr(0, 4096))) {
    const auto parts = words(line);
    if (parts.size() == 2 && parts[0].starts_with("TOTAL_ERR_")) return parse_int<std::uint64_t>(parts[1]);
  }
  return std::nullopt;
}

}  // namespace topotune::parse
