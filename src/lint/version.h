#pragma once

#include <climits>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"

namespace topotune::lint {

// "2.27", "2.27.3", "2.27.3-1", "v2.19.4", "515.65.01", and NCCL_VERSION_CODE: 22705 (from 2.9 on), 2708. A
// part that is not given is the newest: 2.24 stands for every 2.24.x, so that it is not older than 2.24.3.
struct Version {
  int major = 0, minor = INT_MAX, patch = INT_MAX;
  auto operator<=>(const Version&) const = default;
};

inline std::optional<Version> parse_version(std::string_view text) {
  text = trim(text);
  if (text.starts_with('v')) text.remove_prefix(1);
  Version out;
  int* const parts[] = {&out.major, &out.minor, &out.patch};
  for (int n = 0; n < 3; ++n) {
    std::size_t digits = 0;
    while (digits < text.size() && is_digit(text[digits])) ++digits;
    const auto value = parse_int<int>(text.substr(0, digits));
    if (!value) return n == 0 ? std::nullopt : std::optional(out);
    if (n == 0 && *value >= 1000 && digits == text.size())
      return Version{*value / (*value >= 10000 ? 10000 : 1000),
                     *value % (*value >= 10000 ? 10000 : 1000) / 100, *value % 100};
    *parts[n] = *value;
    text.remove_prefix(digits);
    if (!text.starts_with('.')) break;
    text.remove_prefix(1);
  }
  return out;
}

// The first release of a line, for comparisons: since(2, 24) is 2.24.0.
constexpr Version since(int major, int minor, int patch = 0) { return {major, minor, patch}; }

}  // namespace topotune::lint
