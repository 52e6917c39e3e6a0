#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace topotune::parse {

struct Lsmod {
  std::map<std::string, int> modules;  // name -> line
  bool header = false;                 // "Module  Size  Used by" was there: the list is whole, unless `cut`
  bool cut = false;
};

// `lsmod`, whole or picked by grep.
bool looks_like_lsmod(std::string_view text);
Result<Lsmod> parse_lsmod(std::string_view text);

}  // namespace topotune::parse
