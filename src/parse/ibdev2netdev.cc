#include "parse/ibdev2netdev.h"

#include <algorithm>

#include "base/bdf.h"
#include "base/text.h"

namespace topotune::parse {
namespace {

bool is_bracketed(std::string_view word) { return word.starts_with("(") && word.ends_with(")"); }

// What -v prints before "port N": "0000:3b:00.0 mlx5_0 (MT4123 - …) ConnectX-6 … fw 20.31.1014"
void read_card(const std::vector<std::string_view>& before, model::RdmaPort& port) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].starts_with("(MT")) {
      auto type = before[i].substr(1);
      if (type.ends_with(")")) type.remove_suffix(1);
      port.hca_type = std::string(type);
    }
    if (before[i] == "fw" && i + 1 < before.size()) port.firmware = std::string(before[i + 1]);
  }
}

// "[BDF] mlx5_0 [card] port 1 [(STATE)] ==> ib0 (Up)"
std::optional<PortRecord> record_of(std::string_view line) {
  const auto all = words(line);
  const auto arrow = std::ranges::find(all, "==>");
  if (all.end() - arrow < 2 || arrow - all.begin() < 3) return std::nullopt;
  const std::vector<std::string_view> before(all.begin(), arrow);
  const auto at = std::ranges::find(before, "port");
  if (before.end() - at < 2) return std::nullopt;
  PortRecord out;
  const auto number = parse_int<int>(*(at + 1));
  const auto bdf = parse_bdf(before[0]);
  const std::size_t name = bdf ? 1 : 0;
  if (!number || *number < 1 || *number > 255 || static_cast<std::ptrdiff_t>(name) >= at - before.begin())
    return std::nullopt;
  out.port.device = std::string(before[name]);
  out.port.port = *number;
  if (bdf) out.port.bdf = bdf->to_string();
  read_card(before, out.port);
  if (before.end() - at > 2 && is_bracketed(*(at + 2))) {
    const auto state = *(at + 2);
    out.port.state = rdma::port_state(state.substr(1, state.size() - 2));
  }
  out.port.netdev = std::string(*(arrow + 1));
  if (all.end() - arrow > 2) {
    if (iequals(*(arrow + 2), "(Up)")) out.netdev_up = true;
    if (iequals(*(arrow + 2), "(Down)")) out.netdev_up = false;
  }
  return out;
}

}  // namespace

bool looks_like_ibdev2netdev(std::string_view text) {
  if (text.find("==>") == std::string_view::npos) return false;
  return has_port_line(text, record_of);
}

Result<RdmaPorts> parse_ibdev2netdev(std::string_view text) {
  return read_port_lines(text, "ibdev2netdev", record_of);
}

}  // namespace topotune::parse
