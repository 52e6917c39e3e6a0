#pragma once

#include <string_view>

#include "base/result.h"
#include "model/claim.h"

namespace topotune::measure {

// Reads a claim such as "92 GB/s on 100G RoCE", "480 GB/s busbw on 8 x H100 NVLink", "55 GB/s PCIe 5.0 x16",
// "1 MiB in 20 us on 100 Gb/s IB". Errors (unrecognised) name what is missing: the figure, or the link.
Result<model::Claim> judge_claim(std::string_view text);

}  // namespace topotune::measure
