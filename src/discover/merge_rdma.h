#pragma once

#include "discover/merger.h"

namespace topotune::discover {

tl::expected<void, Error> merge_ibv_devinfo(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_ibstat(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_ibstatus(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_rdma_link(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_ibdev2netdev(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_show_gids(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_ip_link(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_port_qos(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_port_counters(Merger& merger, const Piece& piece);

// The address in a predictable interface name: "enp27s0f1np1", "ibP2p26s0" (systemd: decimal bus and slot).
std::optional<std::string> bdf_of_interface(std::string_view name);

}  // namespace topotune::discover
