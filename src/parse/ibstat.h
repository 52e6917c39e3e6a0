#pragma once

#include "parse/rdma_ports.h"

namespace topotune::parse {

// `ibstat` of infiniband-diags: one block "CA 'mlx5_0'" a device, "Port 1:" below it. What ibpanic says at
// the end is kept in `errors`; the blocks before it count.
bool looks_like_ibstat(std::string_view text);
Result<RdmaPorts> parse_ibstat(std::string_view text);

}  // namespace topotune::parse
