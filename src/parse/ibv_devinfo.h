#pragma once

#include "parse/rdma_ports.h"

namespace topotune::parse {

// `ibv_devinfo`, with or without -v; the list of `ibv_devices` too. With -v a port carries its whole GID
// table
// (`gids_known`), empty slots left out as the command does.
bool looks_like_ibv_devinfo(std::string_view text);
Result<RdmaPorts> parse_ibv_devinfo(std::string_view text);

}  // namespace topotune::parse
