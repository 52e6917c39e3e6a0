#include "parse/lspci.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

struct Flag {
  std::string_view name;
  std::uint16_t bit;
};
constexpr std::array kAcsFlags = {
    Flag{"SrcValid", acs::kSourceValidation},      Flag{"TransBlk", acs::kTranslationBlocking},
    Flag{"ReqRedir", acs::kRequestRedirect},       Flag{"CmpltRedir", acs::kCompletionRedirect},
    Flag{"UpstreamFwd", acs::kUpstreamForwarding}, Flag{"EgressCtrl", acs::kEgressControl},
    Flag{"DirectTrans", acs::kDirectTranslated},
};

// "[10de:20b2]" -> vendor and device.
struct Ids {
  std::uint16_t vendor, device;
};
std::optional<Ids> ids_of(std::string_view text) {
  if (text.size() != 9 || text[4] != ':') return std::nullopt;
  const auto vendor = parse_int<std::uint16_t>(text.substr(0, 4), 16);
  const auto device = parse_int<std::uint16_t>(text.substr(5), 16);
  if (!vendor || !device) return std::nullopt;
  return Ids{*vendor, *device};
}

// The last "[vvvv:dddd]" of a text and where it begins.
std::optional<std::pair<Ids, std::size_t>> last_ids(std::string_view text) {
  for (auto at = text.rfind('['); at != std::string_view::npos && at > 0; at = text.rfind('[', at - 1)) {
    const auto end = text.find(']', at);
    if (end == std::string_view::npos) continue;
    if (const auto ids = ids_of(text.substr(at + 1, end - at - 1))) return std::pair{*ids, at};
    if (text.size() - at > 200) break;
  }
  return std::nullopt;
}

// "3D controller [0302]" or "0302" -> class name and code.
void read_class(std::string_view text, LspciDevice& device) {
  const auto bracket = text.rfind('[');
  if (bracket != std::string_view::npos && text.ends_with("]") && text.size() - bracket == 6) {
    if (const auto code = parse_int<std::uint32_t>(text.substr(bracket + 1, 4), 16))
      device.class_code = *code << 8;
    text = trim(text.substr(0, bracket));
  } else if (const auto code = parse_int<std::uint32_t>(text, 16); code && text.size() == 4) {
    device.class_code = *code << 8;
    return;
  }
  device.class_name = std::string(text);
  if (!device.class_code) device.class_code = class_of_name(text);
}

// "NVIDIA Corporation GA100 [A100 SXM4 80GB] [10de:20b2] (rev a1) (prog-if …)" or "10de:20b2 (rev a1)"
void read_name(std::string_view text, LspciDevice& device) {
  device.all_ones = text.find("(rev ff)") != std::string_view::npos;
  for (const std::string_view tail : {" (rev ", " (prog-if "}) {
    if (const auto at = text.find(tail); at != std::string_view::npos) text = text.substr(0, at);
  }
  text = trim(text);
  if (const auto ids = ids_of(text.substr(0, 9)); ids && text.size() <= 10) {
    device.vendor = ids->vendor;
    device.device = ids->device;
    return;
  }
  if (const auto ids = last_ids(text)) {
    device.vendor = ids->first.vendor;
    device.device = ids->first.device;
    text = trim(text.substr(0, ids->second));
  }
  device.name = std::string(text);
  if (!device.vendor) device.vendor = vendor_of_name(text);
  if (!device.device) device.device = device_of_name(text);
}

// A class that is in no table ends the device before it all the same: its details are not that one's.
constexpr std::uint32_t kUnknownClass = 0xff0000;

bool may_be_class(std::string_view name) {
  return !name.empty() && name.front() >= 'A' && name.front() <= 'Z' && name.size() <= 48 &&
         std::ranges::none_of(name, is_digit);
}

// "0000:41:00.0 VGA compatible controller: NVIDIA …"; the line of a device begins with its address.
std::optional<LspciDevice> heading_of(std::string_view line) {
  if (line.size() > 1024) return std::nullopt;
  const auto blank = line.find(' ');
  if (blank == std::string_view::npos || blank < 7 || blank > 16 || line[blank - 2] != '.')
    return std::nullopt;
  const auto bdf = parse_bdf(line.substr(0, blank));
  const auto rest = trim(line.substr(blank));
  const auto colon = rest.find(": ");
  if (!bdf || colon == std::string_view::npos || colon == 0 || colon > 60) return std::nullopt;
  LspciDevice out;
  out.bdf = *bdf;
  read_class(trim(rest.substr(0, colon)), out);
  if (!out.class_code && may_be_class(out.class_name)) out.class_code = kUnknownClass;
  if (!out.class_code) return std::nullopt;
  read_name(rest.substr(colon + 2), out);
  return out;
}

// "Speed 16GT/s (downgraded), Width x8 (ok)"; "unknown" and x0 stay unknown.
model::PcieLink link_of(std::string_view text) {
  model::PcieLink out;
  if (const auto speed = after(text, "Speed ")) {
    const auto gts = leading_number(*speed);
    if (gts && *gts >= 2.5 && *gts <= 128) out.gts = gts;
  }
  if (const auto width = after(text, "Width x")) {
    const auto lanes = parse_int<int>(leading_digits(*width));
    if (lanes && *lanes >= 1 && *lanes <= 32) out.width = lanes;
  }
  return out;
}

std::optional<int> bytes_after(std::string_view text, std::string_view name) {
  const auto rest = after(text, name);
  if (!rest) return std::nullopt;
  const auto value = parse_int<int>(leading_digits(*rest));
  return value && *value >= 128 && *value <= 4096 ? value : std::nullopt;
}

std::optional<int> bus_after(std::string_view text, std::string_view name) {
  const auto rest = after(text, name);
  if (!rest) return std::nullopt;
  const auto bus = parse_int<int>(rest->substr(0, 2), 16);
  return bus && *bus > 0 ? bus : std::nullopt;
}

// "Express (v2) Root Port (Slot+), MSI 00" -> "Root Port"
std::string port_type_of(std::string_view text) {
  constexpr std::array kTypes = {"Root Port",
                                 "Upstream Port",
                                 "Downstream Port",
                                 "Legacy Endpoint",
                                 "Root Complex Integrated Endpoint",
                                 "Endpoint",
                                 "PCI-Express to PCI/PCI-X Bridge",
                                 "PCI/PCI-X to PCI-Express Bridge"};
  for (const std::string_view type : kTypes) {
    if (text.find(type) != std::string_view::npos) return std::string(type);
  }
  return {};
}

void read_capability(std::string_view text, LspciDevice& device) {
  if (text.find("<access denied>") != std::string_view::npos) device.denied = true;
  const auto express = after(text, "] Express ");
  if (express && device.port_type.empty()) device.port_type = port_type_of(*express);
}

void read_subsystem(std::string_view text, LspciDevice& device) {
  if (const auto ids = last_ids(text)) {
    device.subsystem_vendor = ids->first.vendor;
    device.subsystem_device = ids->first.device;
  }
}

void read_bus(std::string_view text, LspciDevice& device) {
  device.secondary = bus_after(text, "secondary=");
  device.subordinate = bus_after(text, "subordinate=");
}

struct Detail {
  std::string_view key;
  void (*read)(std::string_view, int, LspciDevice&);
};
constexpr Detail kDetails[] = {
    {"Subsystem", [](std::string_view v, int, LspciDevice& d) { read_subsystem(v, d); }},
    {"Bus", [](std::string_view v, int, LspciDevice& d) { read_bus(v, d); }},
    {"Capabilities", [](std::string_view v, int, LspciDevice& d) { read_capability(v, d); }},
    {"LnkCap", [](std::string_view v, int, LspciDevice& d) { d.capable = link_of(v); }},
    {"LnkSta",
     [](std::string_view v, int line, LspciDevice& d) {
       d.current = link_of(v);
       d.link_line = line;
     }},
    {"ACSCap", [](std::string_view v, int, LspciDevice& d) { d.acs_capability = parse_acs_flags(v); }},
    {"ACSCtl",
     [](std::string_view v, int line, LspciDevice& d) {
       d.acs_control = parse_acs_flags(v);
       d.acs_line = line;
     }},
    {"ATSCtl",
     [](std::string_view v, int, LspciDevice& d) {
       if (v.find("Enable+") != std::string_view::npos) d.ats_enabled = true;
       if (v.find("Enable-") != std::string_view::npos) d.ats_enabled = false;
     }},
    {"NUMA node", [](std::string_view v, int, LspciDevice& d) { d.numa = parse_int<int>(v); }},
    {"IOMMU group", [](std::string_view v, int, LspciDevice& d) { d.iommu_group = parse_int<int>(v); }},
    {"Physical Slot", [](std::string_view v, int, LspciDevice& d) { d.slot = std::string(v); }},
    {"Kernel driver in use", [](std::string_view v, int, LspciDevice& d) { d.driver = std::string(v); }},
};

// One line of details; true when it was one.
bool read_detail(std::string_view line, int number, LspciDevice& device) {
  if (line.find("MaxReadReq ") != std::string_view::npos) {
    device.max_read_request = bytes_after(line, "MaxReadReq ");
    device.max_payload = bytes_after(line, "MaxPayload ");
    device.request_line = number;
    return true;
  }
  if (line.find("!!! Unknown header type 7f") != std::string_view::npos) device.all_ones = true;
  const auto field = key_value(line.substr(0, 512));
  if (!field || field->key.size() > 24) return false;
  const auto* known = std::ranges::find(kDetails, field->key, &Detail::key);
  if (known == std::end(kDetails)) return false;
  known->read(field->value, number, device);
  return true;
}

}  // namespace

std::optional<std::uint16_t> parse_acs_flags(std::string_view text) {
  std::uint16_t bits = 0;
  bool any = false;
  for (const auto word : words(text.substr(0, 512))) {
    const char sign = word.back();
    if (sign != '+' && sign != '-') continue;
    const auto* flag = std::ranges::find(kAcsFlags, word.substr(0, word.size() - 1), &Flag::name);
    if (flag == kAcsFlags.end()) continue;
    any = true;
    if (sign == '+') bits = static_cast<std::uint16_t>(bits | flag->bit);
  }
  return any ? std::optional(bits) : std::nullopt;
}

// lspci -mm -v: "Slot:\t00:00.0", then a field a line.
static bool machine_form(std::string_view text) {
  return trim(text).starts_with("Slot:\t") && text.find("\nClass:\t") != std::string_view::npos;
}

bool looks_like_lspci(std::string_view text) {
  if (text.find("ACSCtl:") != std::string_view::npos || machine_form(text)) return true;
  for (LineReader reader(text); reader.next();) {
    const auto device = heading_of(trim(reader.line()));
    if (device && device->class_code != kUnknownClass) return true;
  }
  return false;
}

Result<Lspci> parse_lspci(std::string_view text) {
  if (machine_form(text)) {
    auto error = fail(Errc::unsupported, "the machine-readable form of lspci (-mm)");
    error.value().hint = "lspci -vvv";
    return error;
  }
  Lspci out;
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    if (line.empty()) continue;
    if (auto device = heading_of(line)) {
      if (out.devices.size() >= kMaxRecords) return too_many("PCI devices", reader.number());
      device->line = reader.number();
      out.devices.push_back(std::move(*device));
    } else if (!out.devices.empty()) {
      out.verbose |= read_detail(line, reader.number(), out.devices.back());
    } else if (const auto acs_text = after(line, "ACSCtl:")) {
      if (out.loose_acs.size() >= kMaxRecords) return too_many("ACSCtl lines", reader.number());
      if (const auto bits = parse_acs_flags(*acs_text))
        out.loose_acs.push_back({reader.number(), *bits, std::string(line.substr(0, 200))});
    }
  }
  if (out.devices.empty() && out.loose_acs.empty()) return not_a("lspci");
  return out;
}

}  // namespace topotune::parse
