#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bdf.h"
#include "base/result.h"

namespace topotune::parse {

struct LspciTreeNode {
  int line = 0;
  Bdf bdf;
  std::optional<std::size_t> parent;  // index of the bridge above; nothing: on a root bus
  std::string root;                   // "0000:20": domain and root bus
  std::string name;                   // with -v; "" for bridges, of which the tree prints no name
  bool bridge = false;
  std::optional<int> secondary, subordinate;
};

// `lspci -t`, -tv, -tvnn: the tree of line drawings, devices in the order of the text. Lines that are cut,
// and the devices of bridges that a cut text does not show, are left out.
bool looks_like_lspci_tree(std::string_view text);
Result<std::vector<LspciTreeNode>> parse_lspci_tree(std::string_view text);

}  // namespace topotune::parse
