#include "cuda/kernel_image.h"

#ifdef TOPOTUNE_FATBIN
__asm__(
    ".section .rodata\n.balign 64\n.global topotune_fatbin\n.global topotune_fatbin_end\ntopotune_fatbin:\n"
    ".incbin \"" TOPOTUNE_FATBIN "\"\ntopotune_fatbin_end:\n.byte 0\n.previous\n");
extern "C" const char topotune_fatbin[];
extern "C" const char topotune_fatbin_end[];

namespace topotune::cuda {
std::string_view kernel_image() {
  return {topotune_fatbin, static_cast<std::size_t>(topotune_fatbin_end - topotune_fatbin)};
}
std::string_view kernel_toolkit() { return TOPOTUNE_FATBIN_TOOLKIT; }
}  // namespace topotune::cuda
#else
namespace topotune::cuda {
std::string_view kernel_image() { return {}; }
std::string_view kernel_toolkit() { return {}; }
}  // namespace topotune::cuda
#endif
