#include "parse/sysfs_rdma.h"

#include <algorithm>

#include "base/text.h"

namespace topotune::parse {

std::optional<std::string> parse_numbered_word(std::string_view text) {
  text = trim(text);
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || !parse_int<unsigned>(text.substr(0, colon))) return std::nullopt;
  const auto word = trim(text.substr(colon + 1));
  if (word.empty() || word.size() > 64) return std::nullopt;
  return std::string(word);
}

std::optional<double> parse_rate(std::string_view text) {
  const auto fields = words(text);
  if (fields.size() < 2 || fields[1] != "Gb/sec") return std::nullopt;
  const auto rate = parse_double(fields[0]);
  if (!rate || *rate <= 0 || *rate > 10000) return std::nullopt;
  return rate;
}

std::optional<int> parse_lid(std::string_view text) {
  const auto lid = parse_hex(trim(text));
  if (!lid || *lid > 0xffff'ffff >> 1) return std::nullopt;
  return static_cast<int>(*lid);
}

std::optional<std::string> parse_gid(std::string_view text) {
  text = trim(text);
  if (text.size() != 39) return std::nullopt;
  bool zero = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool colon = i % 5 == 4;
    if (colon ? text[i] != ':' : !is_hex_digit(text[i])) return std::nullopt;
    if (!colon && text[i] != '0') zero = false;
  }
  if (zero) return std::nullopt;
  return to_lower(text);
}

std::optional<std::uint64_t> parse_counter(std::string_view text) {
  return parse_int<std::uint64_t>(trim(text));
}

std::optional<int> roce_mtu(int netdev_mtu) {
  constexpr int kHeaders = 96;
  for (const int mtu : {4096, 2048, 1024, 512, 256})
    if (netdev_mtu - kHeaders >= mtu) return mtu;
  return std::nullopt;
}

}  // namespace topotune::parse
