#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "parse/sections.h"

// Sections lie in the text, in order, without overlap.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace topotune::parse;
  const auto text = plain_text(std::string_view(reinterpret_cast<const char*>(data), size));
  const char* end = text.data();
  for (const auto& section : split_sections(text)) {
    if (section.text.data() < end || section.text.data() + section.text.size() > text.data() + text.size())
      std::abort();
    end = section.text.data() + section.text.size();
  }
  return 0;
}
