#pragma once

#include "parse/nvidia_smi_q.h"

namespace topotune::parse {

// `nvidia-smi -q -x`: XML of nvsmi_device_v4 to v13. A text that is cut off gives what is whole
// (`truncated`).
bool looks_like_nvidia_smi_x(std::string_view text);
Result<NvidiaSmi> parse_nvidia_smi_x(std::string_view text);

}  // namespace topotune::parse
