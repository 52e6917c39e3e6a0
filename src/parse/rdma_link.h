#pragma once

#include "parse/rdma_ports.h"

namespace topotune::parse {

// `rdma link` and `rdma link show` of iproute2: "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev
// ens1".
bool looks_like_rdma_link(std::string_view text);
Result<RdmaPorts> parse_rdma_link(std::string_view text);

}  // namespace topotune::parse
