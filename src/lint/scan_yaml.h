#pragma once

#include <string_view>

#include "parse/config.h"

namespace topotune::lint {

// Kubernetes objects, Compose files, Prometheus rules, and any other YAML or JSON that holds environments and
// commands. What breaks off is read line by line from there on.
parse::ConfigText scan_yaml(std::string_view text);

}  // namespace topotune::lint
