#include "mixed/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace topotune::mixed {

bool is_loss_counter(const std::string& name) {
  // Of ports: InfiniBand Architecture Specification, PortCounters; of RDMA devices: Linux
  // Documentation/ABI/stable/sysfs-class-infiniband and mlx5's hw_counters.
  static constexpr std::array<std::string_view, 12> kLoss{"symbol_error",
                                                          "link_downed",
                                                          "port_rcv_errors",
                                                          "packet_seq_err",
                                                          "out_of_sequence",
                                                          "local_ack_timeout_err",
                                                          "rnr_nak_retry_err",
                                                          "port_xmit_discards",
                                                          "rx_icrc_encapsulated",
                                                          "roce_slow_restart",
                                                          "excessive_buffer_overrun_errors",
                                                          "link_error_recovery"};
  const auto dot = name.rfind('.');
  const auto last = std::string_view(name).substr(dot == std::string::npos ? 0 : dot + 1);
  return std::ranges::find(kLoss, last) != kLoss.end();
}

std::vector<std::string> signs_of_loss(const std::map<std::string, double>& added) {
  constexpr double kRetransmits = 1e-3, kEnough = 1000;
  std::vector<std::string> out;
  const auto again = added.find("tcp.RetransSegs"), sent = added.find("tcp.OutSegs");
  if (again != added.end() && sent != added.end() && sent->second > kEnough &&
      again->second > kRetransmits * sent->second)
    out.push_back(fmt::format("{:.0f} of {:.0f} TCP segments were sent again", again->second, sent->second));
  for (const auto& [name, count] : added)
    if (count > 0 && is_loss_counter(name)) out.push_back(fmt::format("{} rose by {:.0f}", name, count));
  return out;
}

}  // namespace topotune::mixed
