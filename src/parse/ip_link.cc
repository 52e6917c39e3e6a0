#include "parse/ip_link.h"

#include "base/bdf.h"
#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

std::optional<std::string_view> value_after(const std::vector<std::string_view>& line, std::string_view key) {
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    if (line[i] == key) return line[i + 1];
  }
  return std::nullopt;
}

std::optional<int> mtu_of(const std::vector<std::string_view>& line) {
  const auto text = value_after(line, "mtu");
  const auto value = text ? parse_int<int>(*text) : std::nullopt;
  return value && *value > 0 && *value <= 1 << 20 ? value : std::nullopt;
}

// "2: eth0@if3: <BROADCAST,…> mtu 1500 … state UP …" or ifconfig's "eth0: flags=4163<UP,…>  mtu 1500"
std::optional<NetInterface> heading_of(std::string_view text) {
  const auto line = words(text.substr(0, 512));
  if (line.size() < 4) return std::nullopt;
  NetInterface out;
  std::string_view name;
  if (line[0].ends_with(":") && parse_int<int>(line[0].substr(0, line[0].size() - 1)) &&
      line[1].ends_with(":") && line[2].starts_with("<")) {
    name = line[1].substr(0, line[1].size() - 1);
  } else if (line[0].ends_with(":") && line[1].starts_with("flags=")) {
    name = line[0].substr(0, line[0].size() - 1);
    out.state = line[1].find("RUNNING") != std::string_view::npos ? "UP" : "DOWN";
  } else {
    return std::nullopt;
  }
  out.name = std::string(name.substr(0, name.find('@')));
  out.mtu = mtu_of(line);
  if (const auto state = value_after(line, "state")) out.state = std::string(*state);
  if (out.name.empty() || !out.mtu) return std::nullopt;
  return out;
}

void take(std::string_view text, NetInterface& to) {
  const auto line = words(text.substr(0, 2048));
  if (line.empty()) return;
  if (line[0].starts_with("link/")) to.kind = std::string(line[0].substr(5));
  if (const auto device = value_after(line, "parentdev")) {
    if (const auto bdf = parse_bdf(*device)) to.bdf = bdf->to_string();
  }
}

}  // namespace

bool looks_like_ip_link(std::string_view text) {
  if (text.find(" mtu ") == std::string_view::npos) return false;
  for (LineReader reader(text); reader.next();) {
    if (heading_of(trim(reader.line()))) return true;
  }
  return false;
}

Result<std::vector<NetInterface>> parse_ip_link(std::string_view text) {
  std::vector<NetInterface> out;
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    if (auto found = heading_of(line)) {
      if (out.size() >= kMaxRecords) return too_many("interfaces", reader.number());
      found->line = reader.number();
      out.push_back(std::move(*found));
      take(line, out.back());
    } else if (!out.empty()) {
      take(line, out.back());
    }
  }
  if (out.empty()) return not_a("ip link");
  return out;
}

}  // namespace topotune::parse
