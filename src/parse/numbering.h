#pragma once

#include <optional>
#include <vector>

namespace topotune::parse {

// Device numbers of an input made whole: each keeps the number the input gives it; where that is missing,
// negative, absurd or already taken, the device gets the lowest number that no device asks for.
struct Numbering {
  std::vector<int> numbers;  // one a device, all different
  bool repeated = false;     // the input gave one number twice
};
Numbering number_devices(const std::vector<std::optional<int>>& wanted);

}  // namespace topotune::parse
