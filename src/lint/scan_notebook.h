#pragma once

#include <string_view>

#include "parse/config.h"

namespace topotune::lint {

// The code cells of a Jupyter notebook, one after the other, as one Python program; lines for a shell
// ("!cmd",
// "%env N=V", cells that begin with "%%bash") as shell.
parse::ConfigText scan_notebook(std::string_view text);

}  // namespace topotune::lint
