#pragma once

#include <string_view>

namespace topotune::data {

// Files of data/ that are part of the program.
std::string_view rules_tsv();
std::string_view nccl_env_tsv();
std::string_view ucx_env_tsv();
std::string_view gpus_tsv();
std::string_view xids_tsv();
std::string_view path_types_tsv();
std::string_view counters_tsv();
std::string_view efficiency_tsv();

}  // namespace topotune::data
