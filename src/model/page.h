#pragma once

#include <string>
#include <vector>

namespace topotune::model {

// What `explain` tells about one name.
struct Section {
  std::string heading;
  std::string text;
};

struct Page {
  std::string name;
  std::string kind;  // "rule", "path", "nccl-variable", "ucx-variable", "xid", "counter"
  std::string title;
  std::vector<Section> sections;
  std::vector<std::string> see;  // other names that `explain` knows
};

}  // namespace topotune::model
