#pragma once

#include <functional>
#include <optional>
#include <string>

#include "launch/rank.h"

namespace topotune::cli {

// What NCCL will find for a variable when it starts in this environment.
struct NcclSetting {
  std::string value;
  std::string file;                                 // the nccl.conf that says so; "" the environment
  std::string text(const std::string& name) const;  // "NCCL_ALGO=Ring (/etc/nccl.conf)"
};
// The environment comes first, then NCCL_CONF_FILE or else ~/.nccl.conf, then /etc/nccl.conf (NCCL's
// src/misc/param.cc: every line is put into the environment where nothing is set). An empty value is none.
// The files are read once, here.
std::function<std::optional<NcclSetting>(const std::string& name)> nccl_settings(
    launch::Environment environment);

}  // namespace topotune::cli
