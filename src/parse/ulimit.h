#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/machine.h"

namespace topotune::parse {

// A limit as printed. `hard` equals `soft` where only one of them is in the text.
struct LimitLine {
  model::MemoryLimit value;  // bytes for memory, a count for files; nullopt: unlimited
  int line = 0;
  std::string text;
};

struct Limits {
  std::optional<LimitLine> memlock, nofile;
};

// `ulimit -a` of bash, dash and zsh, /proc/PID/limits, `prlimit`, and `ulimit -l`/`-n` alone (`command` tells
// which).
bool looks_like_ulimit(std::string_view text, std::string_view command = {});
Result<Limits> parse_ulimit(std::string_view text, std::string_view command = {});

}  // namespace topotune::parse
