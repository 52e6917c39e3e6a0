#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cli.h"

namespace topotune::cli {

// Whether a file begins as the profiler plugin's do. False for what cannot be opened: the reader of logs says
// why.
bool is_profile_file(const std::string& name);

// `log FILE…` on files of the profiler plugin: what each communicator did, and who sent to whom.
int explain_profiles(const std::vector<std::string>& files, bool matrix, const Globals& globals);

}  // namespace topotune::cli
