#pragma once

#include "plugins/nccl_types.h"

// NCCL's environment plugin, data symbols ncclEnvPlugin_vN: 2.28.7 v1, 2.30 v2. It stands in for getenv()
// wherever NCCL reads a variable; what it returns must stay valid until finalize.
namespace topotune::plugins {

struct EnvV1 {
  const char* name;
  Rc (*init)(std::uint8_t major, std::uint8_t minor, std::uint8_t patch, const char* suffix);
  Rc (*finalize)();
  const char* (*get_env)(const char* name);
};

struct EnvV2 {
  const char* name;
  Rc (*init)(std::uint8_t major, std::uint8_t minor, std::uint8_t patch, const char* suffix, Logger log);
  Rc (*finalize)();
  const char* (*get_env)(const char* name);
};

static_assert(sizeof(EnvV1) == 32 && sizeof(EnvV2) == 32);

}  // namespace topotune::plugins
