#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::parse {

// One cell of a `nvidia-smi topo -p2p X` matrix; the diagonal is left out.
struct P2pCell {
  int from = 0, to = 0;  // GPU indices: row, column
  std::string status;    // "OK", "CNS", "GNS", "TNS", "DR", "NS", "U"
  int line = 0;
};

struct P2pMatrix {
  int line = 0;            // of the header
  std::string capability;  // "read", "write", "nvlink", "atomics", "prop", "" where no command line tells it
  std::vector<int> gpus;   // columns
  std::vector<P2pCell> cells;
};

// Matrices of `nvidia-smi topo -p2p r|w|n|a|p`, several in one text. `command` is the command line of the
// section,
// "" unknown; command lines inside the text ("# nvidia-smi topo -p2p w") count too.
bool looks_like_nvidia_smi_p2p(std::string_view text);
Result<std::vector<P2pMatrix>> parse_nvidia_smi_p2p(std::string_view text, std::string_view command = {});

}  // namespace topotune::parse
