#pragma once

#include <string>
#include <string_view>

namespace topotune::parse {

// The text with NCCL's and RCCL's own lines left empty: what else stands in it is at the same line numbers. A
// long log is then no work for those who look for the output of other commands.
std::string without_nccl_lines(std::string_view text);

}  // namespace topotune::parse
