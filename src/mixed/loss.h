#pragma once

#include <map>
#include <string>
#include <vector>

namespace topotune::mixed {

// What a host's network counters ("tcp.RetransSegs", "mlx5_0/1.packet_seq_err") tell of loss by how much they
// rose: "50 of 10000 TCP segments were sent again", "mlx5_0/1.packet_seq_err rose by 3". TCP's retransmits
// count from one in a thousand segments.
std::vector<std::string> signs_of_loss(const std::map<std::string, double>& added);

// Whether a counter tells of loss, by its name after the last dot.
bool is_loss_counter(const std::string& name);

}  // namespace topotune::mixed
