#pragma once

#include "parse/rdma_ports.h"

namespace topotune::parse {

// `ibdev2netdev` and `ibdev2netdev -v`. "(Up)" and "(Down)" are the network interface's, not the port's: an
// IPoIB interface may be down over a port that is up. With -v also address, card type, firmware and port
// state.
bool looks_like_ibdev2netdev(std::string_view text);
Result<RdmaPorts> parse_ibdev2netdev(std::string_view text);

}  // namespace topotune::parse
