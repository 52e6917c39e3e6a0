#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::parse {

// One result of a `topotune.measurement/1` document, as far as nodes are compared by it.
struct MeasuredResult {
  std::string key;  // name, parameters and unit: equal keys may be compared
  std::string unit;
  double median = 0;
  std::size_t samples = 0;
  std::string status;  // "ok", "noisy", "waived", "failed"
};

// Whether the text says of itself that it is such a document, within its first 4 KiB.
bool looks_like_measurement(std::string_view text);
// Results without a finite median are left out. Errors: malformed.
Result<std::vector<MeasuredResult>> parse_measurement(std::string_view text);

}  // namespace topotune::parse
