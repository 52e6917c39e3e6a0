#pragma once

#include <map>
#include <string>

#include "host/host.h"

namespace topotune::net {

// Counters of this host's network that tell of loss: "tcp.RetransSegs", "tcp.OutSegs", "e0.rx_dropped",
// "mlx5_0/1.packet_seq_err". Those that cannot be read are left out.
std::map<std::string, double> read_counters(const host::Host& host);

// What was added; counters that are in one of them only are left out.
std::map<std::string, double> added(const std::map<std::string, double>& before,
                                    const std::map<std::string, double>& after);

}  // namespace topotune::net
