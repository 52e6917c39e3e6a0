#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "parse/ulimit.h"

namespace topotune::parse {

struct LimitsConfEntry {
  int line = 0;
  std::string domain;  // "*", "root", "@group"
  std::string type;    // "soft", "hard", "-"
  std::string item;    // "memlock" (KB), "nofile", ...
  std::string value;   // "unlimited", "100"
};

struct LimitsConf {
  std::vector<LimitsConfEntry> entries;
};

// /etc/security/limits.conf and files of limits.d (pam_limits).
bool looks_like_limits_conf(std::string_view text);
Result<LimitsConf> parse_limits_conf(std::string_view text);

// What the file gives a user that only "*" speaks of (else the first domain named): a later line replaces an
// earlier one; memory in bytes.
Limits limits_of(const LimitsConf& conf);

}  // namespace topotune::parse
