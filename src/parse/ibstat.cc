#include "parse/ibstat.h"

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

// "CA 'mlx5_0'"
std::optional<std::string_view> device_of(std::string_view line) {
  if (!line.starts_with("CA '") || !line.ends_with('\'') || line.size() < 6) return std::nullopt;
  return line.substr(4, line.size() - 5);
}

std::optional<std::string> text_of(std::string_view value) {
  if (value.empty() || value == "..." || value == "0x") return std::nullopt;
  return std::string(value);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : lines_(text) {}

  Result<RdmaPorts> read() {
    while (lines_.next()) {
      if (out_.ports.size() > kMaxRecords) return too_many("ports", lines_.number());
      take(trim(lines_.line()));
    }
    // A whole record ends with the link layer; old versions of ibstat do not print it for any port.
    if (open_ && !record().port.link_layer) record().cut = true;
    return std::move(out_);
  }

 private:
  PortRecord& record() { return out_.ports.back(); }

  void take(std::string_view line) {
    if (const auto device = device_of(line)) {
      out_.devices.emplace_back(*device);
      card_ = {};
      card_.device = std::string(*device);
      open_ = false;
    } else if (line.starts_with("ibpanic:") || line.starts_with("ibwarn:")) {
      out_.errors.emplace_back(line);
    } else if (const auto field = key_value(line); field && !card_.device.empty()) {
      if (field->key.starts_with("Port ") && field->value.empty()) return start_port(field->key.substr(5));
      open_ ? port_field(*field) : card_field(*field);
    }
  }

  void start_port(std::string_view number) {
    const auto port = parse_int<int>(trim(number));
    if (!port || *port < 1 || *port > 255) return;
    PortRecord added;
    added.port = card_;
    added.port.port = *port;
    added.line = lines_.number();
    out_.ports.push_back(std::move(added));
    open_ = true;
  }

  void card_field(const KeyValue& field) {
    if (field.key == "CA type") card_.hca_type = text_of(field.value);
    if (field.key == "Firmware version") card_.firmware = text_of(field.value);
    if (field.key == "Node GUID") card_.node_guid = rdma::guid(field.value);
    if (field.key == "System image GUID") card_.system_image_guid = rdma::guid(field.value);
  }

  void port_field(const KeyValue& field) {
    auto& port = record().port;
    const auto note = [&](const char* name) { record().lines[name] = lines_.number(); };
    if (field.key == "State") {
      port.state = rdma::port_state(field.value);
      note("state");
    } else if (field.key == "Physical state") {
      port.phys_state = rdma::phys_state(field.value);
      note("phys_state");
    } else if (field.key == "Rate") {
      port.gbits_per_s = rdma::rate(field.value);
      note("rate");
    } else if (field.key == "Base lid") {
      port.lid = rdma::lid(field.value);
    } else if (field.key == "SM lid") {
      port.sm_lid = rdma::lid(field.value);
    } else if (field.key == "Link layer") {
      port.link_layer = rdma::link_layer(field.value);
      note("link_layer");
    }
  }

  LineReader lines_;
  RdmaPorts out_;
  model::RdmaPort card_;
  bool open_ = false;  // inside of a port
};

}  // namespace

bool looks_like_ibstat(std::string_view text) {
  if (text.find("CA '") == std::string_view::npos) return false;
  for (LineReader reader(text); reader.next();) {
    if (device_of(trim(reader.line()))) return true;
  }
  return false;
}

Result<RdmaPorts> parse_ibstat(std::string_view text) {
  auto out = Reader(text).read();
  if (out && out->devices.empty()) return not_a("ibstat");
  return out;
}

}  // namespace topotune::parse
