#include "parse/ibv_devinfo.h"

#include <algorithm>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

constexpr std::string_view kNone = "No IB devices found";

// "4X (2)" -> 4
std::optional<int> lanes_of(std::string_view text) {
  const auto lanes = parse_int<int>(leading_digits(trim(text)));
  return lanes && *lanes >= 1 && *lanes <= 12 ? lanes : std::nullopt;
}

// "GID[  3]:   ::ffff:10.0.0.2, RoCE v2"
std::optional<model::Gid> gid_of(std::string_view line) {
  if (!line.starts_with("GID[")) return std::nullopt;
  const auto bracket = line.find(']');
  if (bracket == std::string_view::npos) return std::nullopt;
  const auto index = parse_int<int>(trim(line.substr(4, bracket - 4)));
  auto rest = trim(line.substr(bracket + 1));
  if (!index || *index < 0 || !rest.starts_with(":")) return std::nullopt;
  rest = trim(rest.substr(1));
  const auto comma = rest.find(',');
  const auto address = rdma::gid(rest.substr(0, comma));
  if (!address) return std::nullopt;
  const auto type = comma == std::string_view::npos ? std::string_view{} : trim(rest.substr(comma + 1));
  return model::Gid{*index, *address, type == "RoCE v1" ? "IB/RoCE v1" : std::string(type), {}};
}

class Reader {
 public:
  explicit Reader(std::string_view text) : lines_(text) {}

  Result<RdmaPorts> read() {
    while (lines_.next()) {
      if (out_.ports.size() > kMaxRecords || gids_ > 16 * kMaxRecords)
        return too_many("ports or GIDs", lines_.number());
      take(trim(lines_.line()));
    }
    finish();
    return std::move(out_);
  }

 private:
  PortRecord& record() { return out_.ports.back(); }

  void take(std::string_view line) {
    if (line.find(kNone) != std::string_view::npos) out_.none_found = true;
    if (auto gid = gid_of(line); gid && open_) {
      record().port.gids.push_back(std::move(*gid));
      record().port.gids_known = true;
      ++gids_;
      return;
    }
    const auto field = key_value(line);
    if (!field) return;
    if (field->key == "hca_id") {
      card_ = {};
      card_.device = std::string(field->value);
      out_.devices.emplace_back(field->value);
      open_ = false;
    } else if (card_.device.empty()) {
      return;
    } else if (field->key == "port") {
      start_port(field->value);
    } else {
      open_ ? port_field(*field) : card_field(*field);
    }
  }

  void start_port(std::string_view number) {
    const auto port = parse_int<int>(number);
    if (!port || *port < 1 || *port > 255) return;
    PortRecord added;
    added.port = card_;
    added.port.port = *port;
    added.line = lines_.number();
    out_.ports.push_back(std::move(added));
    open_ = true;
    lanes_.reset();
    lane_rate_.reset();
  }

  void card_field(const KeyValue& field) {
    if (field.key == "fw_ver" && !field.value.empty()) card_.firmware = std::string(field.value);
    if (field.key == "node_guid") card_.node_guid = rdma::guid(field.value);
    if (field.key == "sys_image_guid") card_.system_image_guid = rdma::guid(field.value);
    if (field.key == "board_id" && !field.value.empty()) card_.board_id = std::string(field.value);
    if (field.key == "vendor_id") vendor_ = parse_hex(field.value).value_or(0);
    if (field.key == "vendor_part_id") {
      const auto part = parse_int<int>(field.value);
      if (part && *part > 0 && vendor_ == 0x02c9) card_.hca_type = fmt::format("MT{}", *part);
    }
  }

  void port_field(const KeyValue& field) {
    auto& port = record().port;
    const auto note = [&](const char* name) { record().lines[name] = lines_.number(); };
    if (field.key == "state") {
      port.state = rdma::port_state(field.value);
      note("state");
    } else if (field.key == "phys_state") {
      port.phys_state = rdma::phys_state(field.value);
      note("phys_state");
    } else if (field.key == "max_mtu") {
      port.max_mtu = rdma::mtu(field.value);
    } else if (field.key == "active_mtu") {
      port.active_mtu = rdma::mtu(field.value);
      note("active_mtu");
    } else if (field.key == "sm_lid") {
      port.sm_lid = rdma::lid(field.value);
    } else if (field.key == "port_lid") {
      port.lid = rdma::lid(field.value);
    } else if (field.key == "link_layer") {
      port.link_layer = rdma::link_layer(field.value);
      note("link_layer");
    } else if (field.key == "active_width") {
      lanes_ = lanes_of(field.value);
    } else if (field.key == "active_speed") {
      lane_rate_ = rdma::rate(field.value);
      note("rate");
    }
    if (lanes_ && lane_rate_) port.gbits_per_s = *lanes_ * *lane_rate_;
  }

  void finish() {
    if (!open_) return;
    auto& last = record();
    last.cut = !last.port.state || !last.port.link_layer || !lines_.ended();
    if (last.cut) last.port.gids_known.reset();
  }

  LineReader lines_;
  RdmaPorts out_;
  model::RdmaPort card_;
  unsigned long long vendor_ = 0;
  std::size_t gids_ = 0;
  std::optional<int> lanes_;
  std::optional<double> lane_rate_;
  bool open_ = false;
};

// `ibv_devices`: a table "device  node GUID".
RdmaPorts read_list(std::string_view text) {
  RdmaPorts out;
  bool in_table = false;
  for (LineReader reader(text); reader.next() && out.devices.size() < kMaxRecords;) {
    const auto line = words(reader.line());
    if (line.size() == 3 && line[0] == "device" && line[1] == "node") in_table = true;
    if (in_table && line.size() == 2 && rdma::guid(line[1])) out.devices.emplace_back(line[0]);
  }
  return out;
}

}  // namespace

bool looks_like_ibv_devinfo(std::string_view text) {
  return text.find("hca_id:") != std::string_view::npos || text.find(kNone) != std::string_view::npos ||
         (text.find("node GUID") != std::string_view::npos && !read_list(text).devices.empty());
}

Result<RdmaPorts> parse_ibv_devinfo(std::string_view text) {
  auto out = Reader(text).read();
  if (!out) return out;
  if (out->devices.empty()) out->devices = read_list(text).devices;
  if (out->devices.empty() && !out->none_found) return not_a("ibv_devinfo");
  return out;
}

}  // namespace topotune::parse
