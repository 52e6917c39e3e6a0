#include "data/embedded.h"

// The assembler copies the files in; TOPOTUNE_DATA_DIR is an absolute path given by CMake.
#define EMBED(symbol, file)                                                                            \
  __asm__(".section .rodata\n.global topotune_" #symbol "\n.global topotune_" #symbol                  \
          "_end\ntopotune_" #symbol ":\n.incbin \"" TOPOTUNE_DATA_DIR "/" file "\"\ntopotune_" #symbol \
          "_end:\n.byte 0\n.previous\n");                                                              \
  extern "C" const char topotune_##symbol[];                                                           \
  extern "C" const char topotune_##symbol##_end[];                                                     \
  namespace topotune::data {                                                                           \
  std::string_view symbol() {                                                                          \
    return {topotune_##symbol, static_cast<std::size_t>(topotune_##symbol##_end - topotune_##symbol)}; \
  }                                                                                                    \
  }

EMBED(rules_tsv, "rules.tsv")
EMBED(rules_zh_tsv, "rules.zh.tsv")
EMBED(messages_zh_tsv, "messages.zh.tsv")
EMBED(nccl_env_tsv, "nccl-env.tsv")
EMBED(ucx_env_tsv, "ucx-env.tsv")
EMBED(topotune_env_tsv, "topotune-env.tsv")
EMBED(machines_pascal_volta, "machines/nvidia-pascal-volta.json")
EMBED(machines_turing, "machines/nvidia-turing.json")
EMBED(machines_ampere, "machines/nvidia-ampere.json")
EMBED(machines_ada, "machines/nvidia-ada.json")
EMBED(machines_hopper, "machines/nvidia-hopper.json")
EMBED(machines_blackwell, "machines/nvidia-blackwell.json")
EMBED(xids_tsv, "xids.tsv")
EMBED(path_types_tsv, "path-types.tsv")
EMBED(counters_tsv, "counters.tsv")
EMBED(versions_tsv, "versions.tsv")
EMBED(efficiency_tsv, "efficiency.tsv")

namespace topotune::data {

std::vector<std::string_view> machine_files() {
  return {machines_pascal_volta(), machines_turing(), machines_ampere(),
          machines_ada(),          machines_hopper(), machines_blackwell()};
}

}  // namespace topotune::data
