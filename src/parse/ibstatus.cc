#include "parse/ibstatus.h"

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

constexpr std::string_view kHeading = "Infiniband device '";

// "Infiniband device 'mlx5_0' port 1 status:"
std::optional<PortRecord> heading_of(std::string_view line) {
  if (!line.starts_with(kHeading)) return std::nullopt;
  const auto rest = line.substr(kHeading.size());
  const auto quote = rest.find('\'');
  if (quote == std::string_view::npos || quote == 0) return std::nullopt;
  const auto tail = words(rest.substr(quote + 1));
  if (tail.size() < 2 || tail[0] != "port") return std::nullopt;
  const auto number = parse_int<int>(tail[1]);
  if (!number || *number < 1 || *number > 255) return std::nullopt;
  PortRecord out;
  out.port.device = std::string(rest.substr(0, quote));
  out.port.port = *number;
  return out;
}

void take(PortRecord& record, const KeyValue& field, int line) {
  auto& port = record.port;
  if (field.key == "state") {
    port.state = rdma::port_state(field.value);
    record.lines["state"] = line;
  } else if (field.key == "phys state") {
    port.phys_state = rdma::phys_state(field.value);
    record.lines["phys_state"] = line;
  } else if (field.key == "rate") {
    port.gbits_per_s = rdma::rate(field.value);
    record.lines["rate"] = line;
  } else if (field.key == "base lid") {
    port.lid = rdma::lid(field.value);
  } else if (field.key == "sm lid") {
    port.sm_lid = rdma::lid(field.value);
  } else if (field.key == "link_layer") {
    port.link_layer = rdma::link_layer(field.value);
    record.lines["link_layer"] = line;
  }
}

}  // namespace

bool looks_like_ibstatus(std::string_view text) { return text.find(kHeading) != std::string_view::npos; }

Result<RdmaPorts> parse_ibstatus(std::string_view text) {
  RdmaPorts out;
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    if (auto record = heading_of(line)) {
      if (out.ports.size() >= kMaxRecords) return too_many("ports", reader.number());
      record->line = reader.number();
      out.devices.push_back(record->port.device);
      out.ports.push_back(std::move(*record));
    } else if (const auto field = key_value(line); field && !out.ports.empty()) {
      take(out.ports.back(), *field, reader.number());
    }
  }
  if (out.ports.empty()) return not_a("ibstatus");
  auto& last = out.ports.back();
  last.cut = !last.port.state || !last.port.phys_state || !last.port.gbits_per_s;
  return out;
}

}  // namespace topotune::parse
