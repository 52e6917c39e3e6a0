#include <cstddef>
#include <cstdint>

#include "parse/nvidia_smi_p2p.h"

// Any bytes: no crash, no hang, and a text that is not recognised may still be given.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace topotune::parse;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)looks_like_nvidia_smi_p2p(text);
  (void)parse_nvidia_smi_p2p(text);
  return 0;
}
