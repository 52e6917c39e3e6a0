#pragma once

#include "parse/rdma_ports.h"

namespace topotune::parse {

// `show_gids` of OFED: DEV PORT INDEX GID [IPv4] VER [DEV]. `gids_known` is set for every port, unless the
// text ends inside of a row: then the last port's table is not whole.
bool looks_like_show_gids(std::string_view text);
Result<RdmaPorts> parse_show_gids(std::string_view text);

}  // namespace topotune::parse
