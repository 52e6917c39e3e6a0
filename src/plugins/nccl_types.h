#pragma once

#include <cstddef>
#include <cstdint>

// What NCCL hands to its plugins, in its own layouts: names, orders and numbers follow the plugin interface
// of NCCL 2.21 to 2.30 (src/include/plugin). No toolkit and no NCCL header is needed to build.
namespace topotune::plugins {

using Rc = int;  // ncclResult_t
inline constexpr Rc kSuccess = 0;

// ncclDebugLogger_t: level (1 version, 2 warn, 3 info), subsystems (bits), file or function, line, format.
using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);
inline constexpr int kLogWarn = 2, kLogInfo = 3;
inline constexpr unsigned long kLogInit = 1, kLogTuning = 64, kLogProfile = 1024;

}  // namespace topotune::plugins
