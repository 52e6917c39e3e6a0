#pragma once

#include "parse/nvidia_smi_q.h"

namespace topotune::parse {

// Plain `nvidia-smi`: the table of GPUs with its version header, or the one line that it prints when NVML
// does not start (`error`). Rows of MIG devices and processes are left out.
bool looks_like_nvidia_smi_table(std::string_view text);
Result<NvidiaSmi> parse_nvidia_smi_table(std::string_view text);

}  // namespace topotune::parse
