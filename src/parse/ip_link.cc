#include "parse/ip_link.h"

#include <fmt/format.h>

#include <cstdint>

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

// "10.0.3.7/24" -> "10.0.3.0/24"
std::optional<std::string> network_of(std::string_view address) {
  const auto slash = address.find('/');
  const auto prefix =
      slash == std::string_view::npos ? std::nullopt : parse_int<int>(address.substr(slash + 1));
  const auto parts = split(address.substr(0, slash), '.');
  if (!prefix || *prefix < 0 || *prefix > 32 || parts.size() != 4) return std::nullopt;
  std::uint32_t bits = 0;
  for (const auto part : parts) {
    const auto byte = parse_int<unsigned>(part);
    if (!byte || *byte > 255) return std::nullopt;
    bits = bits << 8 | *byte;
  }
  bits &= *prefix == 0 ? 0 : ~std::uint32_t{0} << (32 - *prefix);
  return fmt::format("{}.{}.{}.{}/{}", bits >> 24, bits >> 16 & 255, bits >> 8 & 255, bits & 255, *prefix);
}

void take(std::string_view text, NetInterface& to) {
  const auto line = words(text.substr(0, 2048));
  if (line.empty()) return;
  if (line[0].starts_with("link/")) to.kind = std::string(line[0].substr(5));
  constexpr std::size_t kMaxNetworks = 16;
  if (line[0] == "inet" && line.size() > 1 && to.networks.size() < kMaxNetworks) {
    if (auto network = network_of(line[1])) to.networks.push_back(std::move(*network));
  }
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
