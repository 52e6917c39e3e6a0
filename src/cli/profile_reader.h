#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "parse/nccl_profile.h"

namespace topotune::cli {

// Whether a file begins as the profiler plugin's do. False for what cannot be opened: the reader of logs says
// why.
bool is_profile_file(const std::string& name);

// A profile as it stands, while its job runs or afterwards. Errors name the file.
Result<parse::NcclProfile> read_profile(const std::string& name);

// All of them, by communicator and rank.
Result<std::vector<parse::NcclProfile>> read_profiles(const std::vector<std::string>& names);

}  // namespace topotune::cli
