#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace topotune::launch {

// Changes of the environment, in order.
struct EnvironmentChange {
  std::string name;
  std::optional<std::string> value;  // nothing: taken out
};
void apply_to_environment(const std::vector<EnvironmentChange>& changes);

// Replaces this process by `command`, found on PATH, without a shell. Returns only with an error.
Error replace_by(const std::vector<std::string>& command);

// One child for each entry; `start` runs in the child and ends with replace_by. SIGINT, SIGTERM and SIGHUP go
// on to all children. When one ends with a status other than 0 the others are told to end (SIGTERM, after 10
// s SIGKILL). The result is the first bad status (128 + signal for one that was killed), else 0.
int run_children(std::size_t count, const std::function<int(std::size_t)>& start);

}  // namespace topotune::launch
