#pragma once

#include "parse/rdma_ports.h"

namespace topotune::parse {

// `ibstatus`: blocks "Infiniband device 'mlx5_0' port 1 status:".
bool looks_like_ibstatus(std::string_view text);
Result<RdmaPorts> parse_ibstatus(std::string_view text);

}  // namespace topotune::parse
