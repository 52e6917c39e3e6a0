#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace topotune::parse {

// One NVLink of one GPU, from whichever of the `nvidia-smi nvlink` outputs tell something of it.
struct NvLinkLine {
  int line = 0;
  std::optional<bool> active;                       // -s
  std::optional<GBytesPerSec> speed;                // -s: one direction, as printed
  std::optional<std::string> remote_bdf;            // -R; not the placeholder ffffffff:ff:ff.0
  std::optional<int> remote_link;                   // -R: link number at the other end
  bool remote_hidden = false;                       // -R printed the placeholder
  std::map<std::string, std::string> capabilities;  // -c: "P2P is supported" -> "true"
  std::map<std::string, std::uint64_t> errors;      // -e: "Replay Errors" -> count
};

struct NvLinkGpu {
  int line = 0;
  int index = 0;
  std::string name;
  std::optional<std::string> uuid;
  bool unsupported = false;                     // "Device does not have or support Nvlink"
  bool all_inactive = false;                    // "all links are inActive" (drivers since 535)
  bool mig = false;                             // a MIG device is listed below it (nvidia-smi -L)
  bool cut = false;                             // the text ends before this GPU's links do
  bool has_status = false, has_remote = false;  // lines of -s, of -R were read
  std::map<int, NvLinkLine> links;              // by link number
};

struct NvidiaSmiNvlink {
  std::vector<NvLinkGpu> gpus;  // in order of first appearance; several outputs of one GPU are joined
};

// `nvidia-smi nvlink -s`, `--status`, -R, -c, -e, also several of them in one text, and the list of
// `nvidia-smi -L`.
bool looks_like_nvidia_smi_nvlink(std::string_view text);
Result<NvidiaSmiNvlink> parse_nvidia_smi_nvlink(std::string_view text);

}  // namespace topotune::parse
