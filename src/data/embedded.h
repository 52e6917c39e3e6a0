#pragma once

#include <string_view>
#include <vector>

namespace topotune::data {

// Files of data/ that are part of the program.
std::string_view rules_tsv();
std::string_view rules_zh_tsv();     // Chinese titles, impact, remedy by rule
std::string_view messages_zh_tsv();  // Chinese forms of texts that are built in code
std::string_view nccl_env_tsv();
std::string_view ucx_env_tsv();
std::string_view topotune_env_tsv();
std::vector<std::string_view> machine_files();  // data/machines/*.json
std::string_view xids_tsv();
std::string_view path_types_tsv();
std::string_view counters_tsv();
std::string_view versions_tsv();
std::string_view efficiency_tsv();

}  // namespace topotune::data
