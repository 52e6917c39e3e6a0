#include "parse/rdma_link.h"

#include "base/text.h"

namespace topotune::parse {
namespace {

// Old versions print "0/1: mlx5_0/1: state ACTIVE …", newer ones "link mlx5_0/1 state ACTIVE …".
std::optional<PortRecord> record_of(std::string_view text) {
  const auto line = words(text);
  if (line.size() < 4) return std::nullopt;
  const bool older = line[0].ends_with(":") && line[1].ends_with(":");
  if (line[0] != "link" && !older) return std::nullopt;
  const auto name = older ? line[1].substr(0, line[1].size() - 1) : line[1];
  const auto slash = name.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return std::nullopt;
  const auto number = parse_int<int>(name.substr(slash + 1));
  if (!number || *number < 1 || *number > 255) return std::nullopt;
  PortRecord out;
  out.port.device = std::string(name.substr(0, slash));
  out.port.port = *number;
  bool state = false;
  for (std::size_t i = 2; i + 1 < line.size(); ++i) {
    if (line[i] == "state") {
      out.port.state = rdma::port_state(line[i + 1]);
      state = true;
    }
    if (line[i] == "physical_state") out.port.phys_state = rdma::phys_state(line[i + 1]);
    if (line[i] == "netdev") out.port.netdev = std::string(line[i + 1]);
    if (line[i] == "lid") out.port.lid = rdma::lid(line[i + 1]);
    if (line[i] == "sm_lid") out.port.sm_lid = rdma::lid(line[i + 1]);
  }
  return state ? std::optional(out) : std::nullopt;
}

}  // namespace

bool looks_like_rdma_link(std::string_view text) {
  if (text.find("physical_state") == std::string_view::npos) return false;
  return has_port_line(text, record_of);
}

Result<RdmaPorts> parse_rdma_link(std::string_view text) {
  auto out = read_port_lines(text, "rdma link", record_of);
  if (!out) return out;
  for (auto& record : out->ports) record.lines["state"] = record.lines["phys_state"] = record.line;
  return out;
}

}  // namespace topotune::parse
