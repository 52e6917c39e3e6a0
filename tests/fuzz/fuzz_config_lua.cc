// Configuration text of the kind lua: read it, judge it, correct it.
#include "config_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return topotune::fuzz_config(data, size, topotune::parse::ConfigKind::lua);
}
