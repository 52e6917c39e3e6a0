#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::parse {

struct RocmGpu {
  int index = 0;
  int line = 0;
  std::optional<int> numa;  // "Numa Node"; -1 is unknown
  std::optional<std::string> bdf, name, gfx;
};

struct RocmPair {
  int from = 0, to = 0;
  int line = 0;
  std::optional<std::string> link;  // "XGMI", "PCIE"
  std::optional<int> hops, weight;
  std::optional<bool> accessible;
};

struct RocmSmi {
  std::vector<RocmGpu> gpus;
  std::vector<RocmPair> pairs;  // both directions as printed
  std::optional<std::string> driver;
  int driver_line = 0;
};

// `rocm-smi --showtopo`, --showtoponuma, --showtopotype, --showtopohops, --showtopoweight, --showtopoaccess,
// --showbus,
// --showproductname, --showdriverversion; any of them in one text.
bool looks_like_rocm_smi(std::string_view text);
Result<RocmSmi> parse_rocm_smi(std::string_view text);

}  // namespace topotune::parse
