#include "host/pattern.h"

#include <vector>

namespace topotune::host {

// Dynamic programming over the name: reach[i] is true when the pattern so far fits the first i characters.
bool matches(std::string_view pattern, std::string_view name) {
  std::vector<bool> reach(name.size() + 1, false);
  reach[0] = true;
  for (std::size_t p = 0; p < pattern.size(); ++p) {
    if (pattern[p] == '*') {
      const bool deep = p + 1 < pattern.size() && pattern[p + 1] == '*';
      for (std::size_t i = 0; i < name.size(); ++i) {
        if (reach[i] && (deep || name[i] != '/')) reach[i + 1] = true;
      }
      p += deep ? 1 : 0;
    } else {
      for (std::size_t i = name.size(); i > 0; --i) reach[i] = reach[i - 1] && name[i - 1] == pattern[p];
      reach[0] = false;
    }
  }
  return reach[name.size()];
}

}  // namespace topotune::host
