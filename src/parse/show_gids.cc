#include "parse/show_gids.h"

#include <unordered_map>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

struct Row {
  std::string_view device;
  int port;
  model::Gid gid;
};

bool is_header(const std::vector<std::string_view>& line) {
  return line.size() >= 4 && line[0] == "DEV" && line[1] == "PORT" && line[2] == "INDEX" && line[3] == "GID";
}

// "mlx5_0 1 3 0000:…:c0a8:0016 192.168.0.22 v2 eth0"; the IPv4 column is blank for other addresses.
std::optional<Row> row_of(const std::vector<std::string_view>& line) {
  if (line.size() < 5 || line.size() > 8) return std::nullopt;
  const auto port = parse_int<int>(line[1]);
  const auto index = parse_int<int>(line[2]);
  const auto address = rdma::gid(line[3]);
  if (!port || *port < 1 || *port > 255 || !index || *index < 0 || !address) return std::nullopt;
  Row out{line[0], *port, {*index, *address, {}, {}}};
  for (std::size_t i = 4; i < line.size(); ++i) {
    if (line[i] != "v1" && line[i] != "v2") continue;
    out.gid.type = line[i] == "v2" ? "RoCE v2" : "IB/RoCE v1";
    if (i + 1 < line.size()) out.gid.netdev = std::string(line[i + 1]);
    return out;
  }
  return std::nullopt;
}

// A row that ends before its version column.
bool is_cut_row(const std::vector<std::string_view>& line) {
  return line.size() >= 2 && line.size() <= 5 && parse_int<int>(line[1]) && !row_of(line) && line[0] != "DEV";
}

}  // namespace

bool looks_like_show_gids(std::string_view text) {
  if (text.find("INDEX") == std::string_view::npos && text.find(" v2") == std::string_view::npos &&
      text.find("\tv2") == std::string_view::npos)
    return false;
  for (LineReader reader(text); reader.next();) {
    if (reader.line().size() > 1024) continue;
    const auto line = words(reader.line());
    if (is_header(line) || row_of(line)) return true;
  }
  return false;
}

Result<RdmaPorts> parse_show_gids(std::string_view text) {
  RdmaPorts out;
  std::unordered_map<std::string, std::size_t> index;
  std::size_t rows = 0;
  bool header = false, cut = false;
  for (LineReader reader(text); reader.next();) {
    if (reader.line().size() > 1024) continue;
    const auto line = words(reader.line());
    header |= is_header(line);
    if (!line.empty()) cut = is_cut_row(line);
    auto row = row_of(line);
    if (!row) continue;
    if (++rows > 16 * kMaxRecords) return too_many("GIDs", reader.number());
    const auto key = fmt::format("{}/{}", row->device, row->port);
    const auto [at, fresh] = index.try_emplace(key, out.ports.size());
    if (fresh) {
      PortRecord added;
      added.port.device = std::string(row->device);
      added.port.port = row->port;
      added.port.gids_known = true;
      added.line = reader.number();
      if (!row->gid.netdev.empty()) added.port.netdev = row->gid.netdev;
      out.devices.push_back(added.port.device);
      out.ports.push_back(std::move(added));
    }
    out.ports[at->second].port.gids.push_back(std::move(row->gid));
  }
  if (!header && out.ports.empty()) return not_a("show_gids");
  if (cut && !out.ports.empty()) {
    out.ports.back().cut = true;
    out.ports.back().port.gids_known.reset();
  }
  return out;
}

}  // namespace topotune::parse
