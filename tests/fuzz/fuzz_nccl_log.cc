#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "parse/nccl_log.h"

// Any bytes, whole and in pieces: no crash, and the same answer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto whole = topotune::parse::parse_nccl_log(text);
  topotune::parse::NcclLogParser parser;
  parser.begin_file("");
  const std::size_t piece = size == 0 ? 1 : data[0] % 61U + 1U;
  for (std::size_t at = 0; at < size; at += piece) parser.feed(text.substr(at, piece));
  const auto pieces = parser.finish();
  if (pieces.lines != whole.lines || pieces.edges.size() != whole.edges.size() ||
      pieces.problems.size() != whole.problems.size())
    std::abort();
  (void)topotune::parse::looks_like_nccl_log(text);
  return 0;
}
