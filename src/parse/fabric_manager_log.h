#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::parse {

struct FabricManagerError {
  int line = 0;
  std::string text;
  bool sxid = false;  // names an NVSwitch error (SXid) code
  std::optional<int> code;
};

// What the fabric manager's own log, its version line or `systemctl status nvidia-fabricmanager` tell.
struct FabricManager {
  std::optional<std::string> version;
  std::optional<std::string> state;  // "active", "inactive", "failed", "not installed"; systemctl only
  int version_line = 0, state_line = 0;
  bool nothing_to_do = false;  // NV_WARN_NOTHING_TO_DO: no NVSwitch
  int nothing_to_do_line = 0;
  bool configured = false;  // "Successfully configured all the available … NVSwitches"
  std::vector<FabricManagerError> errors;
};

bool looks_like_fabric_manager(std::string_view text);
Result<FabricManager> parse_fabric_manager(std::string_view text);

}  // namespace topotune::parse
