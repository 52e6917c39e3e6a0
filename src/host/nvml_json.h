#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/result.h"

namespace topotune::host {

// Address of a function of the library by its exported name; null where this version has none.
using SymbolLookup = std::function<void*(const char* name)>;

// Asks everything in docs/formats/probe-nvml.md. A failed init is `unsupported` with the library's text.
// GPUs in `excluded` (canonical PCI addresses) are told by their address only and not asked anything else.
Result<std::string> nvml_json(const SymbolLookup& lookup, const std::set<std::string>& excluded);

}  // namespace topotune::host
