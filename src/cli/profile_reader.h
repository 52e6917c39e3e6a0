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

// All of them, in the order of their names. The communicator and rank of one may still be unknown.
Result<std::vector<parse::NcclProfile>> read_profiles(const std::vector<std::string>& names);

// Of several readings of one file, or of its copies, the latest stays, in the place of the first. The places
// of the others, for say_doubles.
std::vector<std::size_t> join_doubles(std::vector<parse::NcclProfile>& profiles);
void say_doubles(const std::vector<std::size_t>& doubles, const std::vector<std::string>& names);

// By communicator and rank.
void by_rank(std::vector<parse::NcclProfile>& profiles);

// What is read as a log but is a profile: from standard input, compressed, or among logs.
Error not_so(const std::string& name);

}  // namespace topotune::cli
