#include <cstddef>
#include <cstdint>

#include "parse/ibdev2netdev.h"

// Any bytes: no crash, no hang, and a text that is not recognised may still be given.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace topotune::parse;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)looks_like_ibdev2netdev(text);
  (void)parse_ibdev2netdev(text);
  return 0;
}
