#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace topotune::parse {

// What NCCL's own XML reader (src/graph/xml.cc), which is stricter than XML, says about a topology file.
struct StrictProblem {
  int line = 1, column = 1;  // of the first byte that is wrong
  std::string text;          // what is wrong, and what NCCL says
  bool fatal = true;         // NCCL gives up here; false: it goes on and loses something
};

// In the order of the text. NCCL stops at the first fatal problem, and so does this; at most kMaxStrictProblems.
// Linear in the text.
inline constexpr std::size_t kMaxStrictProblems = 64;
std::vector<StrictProblem> nccl_problems(std::string_view text);

}  // namespace topotune::parse
