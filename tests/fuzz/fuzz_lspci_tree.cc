#include <cstddef>
#include <cstdint>

#include "parse/lspci_tree.h"

// Any bytes: no crash, no hang, and a text that is not recognised may still be given.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace topotune::parse;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)looks_like_lspci_tree(text);
  (void)parse_lspci_tree(text);
  return 0;
}
