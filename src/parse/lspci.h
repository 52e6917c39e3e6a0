#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bdf.h"
#include "base/result.h"
#include "model/topology.h"

namespace topotune::parse {

// Bits of the ACS Capability and Control registers (PCI Express base specification, extended capability
// 0x000d).
namespace acs {
inline constexpr std::uint16_t kSourceValidation = 0x01, kTranslationBlocking = 0x02, kRequestRedirect = 0x04,
                               kCompletionRedirect = 0x08, kUpstreamForwarding = 0x10, kEgressControl = 0x20,
                               kDirectTranslated = 0x40;
}
// "SrcValid+ TransBlk- ReqRedir+ …" -> bits; nothing when no known name is in it.
std::optional<std::uint16_t> parse_acs_flags(std::string_view text);

struct LspciDevice {
  int line = 0;
  Bdf bdf;
  std::string class_name;  // "3D controller"; "" with -n
  std::string name;  // "NVIDIA Corporation GA100 [A100 SXM4 80GB]", without numbers in brackets and revision
  std::optional<std::uint32_t> class_code;  // 0x030200: printed with -n and -nn, else from the class name
  std::optional<std::uint16_t> vendor, device, subsystem_vendor, subsystem_device;
  std::optional<int> secondary, subordinate;  // buses behind a bridge
  std::string port_type;  // "Root Port", "Upstream Port", "Downstream Port", "Endpoint", ...; "" not printed
  model::PcieLink current, capable;
  std::optional<std::uint16_t> acs_capability, acs_control;
  int acs_line = 0, link_line = 0, request_line = 0;
  std::optional<int> max_read_request, max_payload;
  std::optional<bool> ats_enabled;
  std::optional<std::string> driver, slot;
  std::optional<int> numa, iommu_group;
  bool all_ones = false;  // "(rev ff)" or an unknown header type 7f: the device does not answer
  bool denied = false;    // "Capabilities: <access denied>"
};

struct LspciAcsLine {
  int line = 0;
  std::uint16_t control = 0;
  std::string text;
};

struct Lspci {
  std::vector<LspciDevice> devices;     // in the text's order
  std::vector<LspciAcsLine> loose_acs;  // ACSCtl lines before the first device: "lspci -vvv | grep ACSCtl"
  bool verbose = false;                 // any line of details was read
};

// `lspci` with any of -v, -vv, -vvv, -n, -nn, -D, -k, -s; also lines picked from it by grep.
bool looks_like_lspci(std::string_view text);
Result<Lspci> parse_lspci(std::string_view text);

// PCI class of a class name as lspci prints it: "3D controller" -> 0x030200.
std::optional<std::uint32_t> class_of_name(std::string_view name);
// Vendor id of the name at the beginning of a device's text: "NVIDIA Corporation …" -> 0x10de. Only vendors
// that matter here.
std::optional<std::uint16_t> vendor_of_name(std::string_view name);
// Device id: "Device 2330" at the end, and the names of Mellanox/NVIDIA adapters: "… [ConnectX-7]" -> 0x1021.
std::optional<std::uint16_t> device_of_name(std::string_view name);

}  // namespace topotune::parse
