#include "host/identifiers.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/text.h"

namespace topotune::host {

namespace {

bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool word_at(std::string_view text, std::size_t i) { return i < text.size() && is_word(text[i]); }
bool all_hex(std::string_view text) { return std::ranges::all_of(text, is_hex_digit); }
bool has_upper(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return c >= 'A' && c <= 'F'; });
}
std::string as_case_of(std::string_view original, std::string text) {
  if (!has_upper(original)) return text;
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'f' ? static_cast<char>(c - 32) : c; });
  return text;
}

std::uint64_t number_of(std::string_view hex) { return parse_int<std::uint64_t>(hex, 16).value_or(0); }

// ---- UUIDs
// --------------------------------------------------------------------------------------------------------

constexpr std::size_t kUuidSize = 36;

bool is_uuid(std::string_view text) {
  constexpr std::array<std::size_t, 4> kDashes{8, 13, 18, 23};
  if (text.size() != kUuidSize || (text[8] != '-' && text[8] != '_')) return false;
  for (std::size_t i = 0; i < kUuidSize; ++i) {
    const bool dash = std::ranges::find(kDashes, i) != kDashes.end();
    if (dash ? text[i] != text[8] : !is_hex_digit(text[i])) return false;
  }
  return true;
}

// "UUID=" and "PARTUUID=" in other forms: the token behind it ("2A4C-11F0", "5c3d8e0b-02").
std::size_t volume_id_size(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() && size < 64 && (is_hex_digit(text[size]) || text[size] == '-')) ++size;
  return word_at(text, size) ? 0 : size;
}

// ---- groups
// -------------------------------------------------------------------------------------------------------

std::string join_bytes(const std::vector<std::uint8_t>& bytes, char separator) {
  std::string out;
  for (const auto byte : bytes) {
    if (!out.empty()) out += separator;
    out += fmt::format("{:02x}", byte);
  }
  return out;
}

void put_guid(std::vector<std::uint8_t>& bytes, std::size_t first, const Pseudonyms& names) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) value = value << 8 | bytes[first + i];
  value = names.guid(value);
  for (std::size_t i = 0; i < 8; ++i) bytes[first + i] = static_cast<std::uint8_t>(value >> (56 - 8 * i));
}

// 6 bytes: MAC; 8: EUI-64; 20: IPoIB (RFC 4391: flags and QPN, then a GID; its prefix stays, multicast
// stays).
std::optional<std::string> byte_groups(const std::vector<std::string_view>& groups, char separator,
                                       const Pseudonyms& names) {
  const bool fits = groups.size() == 6 || groups.size() == 8 || groups.size() == 20;
  if (!fits || !std::ranges::all_of(groups, [](auto g) { return g.size() == 2 && all_hex(g); }))
    return std::nullopt;
  std::vector<std::uint8_t> bytes;
  for (const auto group : groups) bytes.push_back(static_cast<std::uint8_t>(number_of(group)));
  if (bytes.size() == 6) {
    Mac address{};
    std::ranges::copy(bytes, address.begin());
    const auto made = names.mac(address);
    bytes.assign(made.begin(), made.end());
  } else if (bytes.size() == 8) {
    put_guid(bytes, 0, names);
  } else if (bytes[4] != 0xff) {
    put_guid(bytes, 12, names);
  }
  return join_bytes(bytes, separator);
}

bool may_be_pci_ids(const std::vector<std::string_view>& groups) {
  constexpr std::array<std::string_view, 13> kVendors{"10de", "15b3", "1002", "1022", "8086", "14e4", "1d0f",
                                                      "1ae0", "1af4", "1077", "144d", "1b36", "1000"};
  return std::ranges::find(kVendors, to_lower(groups[0])) != kVendors.end();
}

std::optional<std::string> guid_groups(const std::vector<std::string_view>& groups, const Pseudonyms& names,
                                       const std::set<std::uint64_t>& guids) {
  if (groups.size() != 4 || !std::ranges::all_of(groups, [](auto g) { return g.size() == 4 && all_hex(g); }))
    return std::nullopt;
  std::uint64_t value = 0;
  for (const auto group : groups) value = value << 16 | number_of(group);
  if (may_be_pci_ids(groups) && !guids.contains(value)) return std::nullopt;
  value = names.guid(value);
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", value >> 48, value >> 32 & 0xffff, value >> 16 & 0xffff,
                     value & 0xffff);
}

std::string ipv6_text(const Ipv6& address, bool full) {
  std::string out;
  if (full) {
    for (std::size_t i = 0; i < 16; i += 2)
      out += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", address[i], address[i + 1]);
    return out;
  }
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  return inet_ntop(AF_INET6, address.data(), buffer.data(), buffer.size()) == nullptr ? "" : buffer.data();
}

// Prefixes other than those of addresses in use (2000::/3, fc00::/7, fe80::/9, ff00::/12, IPv4-mapped) need
// all eight groups: "add::be" is more often a name in a program than an address.
bool likely_ipv6(const Ipv6& address, std::size_t groups) {
  const bool used = address[0] >> 5 == 1 || (address[0] & 0xfe) == 0xfc ||
                    (address[0] == 0xfe && address[1] >= 0x80) || (address[0] == 0xff && address[1] < 0x10);
  const bool mapped = std::all_of(address.begin(), address.begin() + 10, [](auto b) { return b == 0; }) &&
                      address[10] == 0xff && address[11] == 0xff;
  return used || mapped || groups == 8;
}

std::optional<std::string> ipv6_token(std::string_view token, std::size_t groups, const Pseudonyms& names) {
  if (token.size() > 45) return std::nullopt;
  Ipv6 address{};
  if (inet_pton(AF_INET6, std::string(token).c_str(), address.data()) != 1) return std::nullopt;
  if (!likely_ipv6(address, groups)) return std::nullopt;
  return ipv6_text(names.ipv6(address), token.size() == 39);
}

using Guids = std::set<std::uint64_t>;

std::optional<std::string> colon_token(std::string_view token, const Pseudonyms& names, const Guids& guids) {
  const auto groups = split(token, ':');
  if (groups.size() < 3) return std::nullopt;
  if (auto out = byte_groups(groups, ':', names)) return as_case_of(token, *out);
  if (auto out = guid_groups(groups, names, guids)) return as_case_of(token, *out);
  if (auto out = ipv6_token(token, groups.size(), names)) return as_case_of(token, *out);
  return std::nullopt;
}

// A run of digits, colons and dots, with the character before it. A label that is glued to the value
// ("mac:aa:bb:...") and punctuation behind it are not part of the value.
std::string colon_run(std::string_view run, bool glued, const Pseudonyms& names, const Guids& guids) {
  std::string_view core = run;
  while (core.size() > 1 && (core.back() == '.' || (core.back() == ':' && !core.ends_with("::"))))
    core.remove_suffix(1);
  const std::string_view tail = run.substr(core.size());
  for (int dropped = 0; dropped < 2; ++dropped) {
    const std::string head(run.substr(0, run.size() - tail.size() - core.size()));
    const bool bounded = dropped > 0 || !glued;
    if (const auto out = bounded ? colon_token(core, names, guids) : std::nullopt)
      return head + *out + std::string(tail);
    const auto colon = core.find(':');
    if (colon == std::string_view::npos) break;
    core.remove_prefix(colon + 1);
  }
  return std::string(run);
}

bool in_colon_run(char c) { return is_hex_digit(c) || c == ':' || c == '.'; }
bool in_dash_run(char c) { return is_hex_digit(c) || c == '-'; }

std::size_t run_end(std::string_view text, std::size_t i, bool (*inside)(char)) {
  while (i < text.size() && inside(text[i])) ++i;
  return i;
}

// "a0-88-c2-03-00-ab-12-34" (lspci's Device Serial Number), "02-42-ac-11-00-02".
std::string replace_dashed(std::string_view text, const Pseudonyms& names) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto end = std::max(run_end(text, i, in_dash_run), i + 1);
    const auto run = text.substr(i, end - i);
    const bool bounded = (i == 0 || !is_word(text[i - 1])) && !word_at(text, end);
    std::optional<std::string> made;
    if (bounded && (run.size() == 17 || run.size() == 23)) made = byte_groups(split(run, '-'), '-', names);
    out += made ? as_case_of(run, *made) : std::string(run);
    i = end;
  }
  return out;
}

// ---- IPv4
// ---------------------------------------------------------------------------------------------------------

// Size of the dotted address that begins at text[i], 0: none. Numbers have no leading zeros.
std::size_t ipv4_size(std::string_view text, std::size_t i, std::uint32_t& address) {
  const std::size_t begin = i;
  address = 0;
  for (int part = 0; part < 4; ++part) {
    if (part > 0 && (i >= text.size() || text[i++] != '.')) return 0;
    std::size_t end = i;
    while (end < text.size() && end < i + 4 && is_digit(text[end])) ++end;
    const auto value = parse_int<unsigned>(text.substr(i, end - i));
    if (!value || *value > 255 || (end - i > 1 && text[i] == '0')) return 0;
    address = address << 8 | *value;
    i = end;
  }
  const bool more = word_at(text, i) || (i + 1 < text.size() && text[i] == '.' && is_digit(text[i + 1]));
  return more ? 0 : i - begin;
}

// A word before the number, in the same line, that makes it a version.
bool after_version_word(std::string_view before) {
  constexpr std::array<std::string_view, 12> kWords{"version", "firmware", "fw",      "vbios",
                                                    "ofed",    "driver",   "release", "nccl",
                                                    "cuda",    "ucx",      "inforom", "rev"};
  before = before.substr(before.size() - std::min<std::size_t>(before.size(), 32));
  const auto line = before.find_last_of("\n,;{");
  if (line != std::string_view::npos) before.remove_prefix(line + 1);
  return std::ranges::any_of(kWords, [&](std::string_view word) { return icontains(before, word); });
}

bool is_version(std::string_view text, std::size_t begin, std::size_t end, std::size_t last_address_end) {
  std::uint32_t next = 0;
  if (begin > 0 && text[begin - 1] == '-' && last_address_end != begin - 1) return true;
  if (end + 1 < text.size() && text[end] == '-' && is_digit(text[end + 1]) &&
      ipv4_size(text, end + 1, next) == 0)
    return true;
  return after_version_word(text.substr(0, begin));
}

std::string dotted(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
}

// ---- runs
// ---------------------------------------------------------------------------------------------------------

std::string plain_mac(std::string_view digits, const Pseudonyms& names) {
  Mac address{};
  for (std::size_t i = 0; i < 6; ++i)
    address[i] = static_cast<std::uint8_t>(number_of(digits.substr(2 * i, 2)));
  std::string out;
  for (const auto byte : names.mac(address)) out += fmt::format("{:02x}", byte);
  return out;
}

// 32 digits that are an address: /proc/net/if_inet6.
std::string plain_ipv6(std::string_view digits, const Pseudonyms& names) {
  Ipv6 address{};
  for (std::size_t i = 0; i < 16; ++i)
    address[i] = static_cast<std::uint8_t>(number_of(digits.substr(2 * i, 2)));
  std::string out;
  for (const auto byte : names.ipv6(address)) out += fmt::format("{:02x}", byte);
  return out;
}

std::string hex_word(std::string_view word, const Pseudonyms& names, const Guids& guids) {
  std::string_view digits = word;
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  const std::string head(word.substr(0, word.size() - digits.size()));
  if (digits.size() == 15 && digits.starts_with("enx") && all_hex(digits.substr(3))) {
    return "enx" + plain_mac(digits.substr(3), names);
  }
  if (!all_hex(digits)) return std::string(word);
  if (digits.size() == 32 &&
      (digits.starts_with("fe80000000000000") || digits.starts_with("fec0000000000000"))) {
    return head + plain_ipv6(digits, names);
  }
  if (digits.size() == 32) return head + names.hex(digits);
  if (digits.size() != 16 || !guids.contains(number_of(digits))) return std::string(word);
  return head + as_case_of(digits, fmt::format("{:016x}", names.guid(number_of(digits))));
}

}  // namespace

std::string replace_uuids(std::string_view text, const Pseudonyms& names) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    std::size_t size = 0;
    const bool hex = is_hex_digit(text[i]);
    if (hex && is_uuid(text.substr(i, kUuidSize)) &&
        !(i + kUuidSize < text.size() && is_hex_digit(text[i + kUuidSize]))) {
      size = kUuidSize;
    } else if (hex && out.ends_with("UUID=")) {
      size = volume_id_size(text.substr(i));
    }
    out += size > 0 ? names.hex(text.substr(i, size)) : std::string(1, text[i]);
    i += std::max<std::size_t>(size, 1);
  }
  return out;
}

std::string replace_groups(std::string_view text, const Pseudonyms& names,
                           const std::set<std::uint64_t>& guids) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    auto end = std::max(run_end(text, i, in_colon_run), i + 1);
    const auto colon = text.substr(i, end - i).find_last_of(':');
    const bool glued = i > 0 && is_word(text[i - 1]);
    if (colon != std::string_view::npos && word_at(text, end))
      end = i + colon + 1;  // the last letters are a word's
    const auto run = text.substr(i, end - i);
    out += colon == std::string_view::npos ? std::string(run) : colon_run(run, glued, names, guids);
    i = end;
  }
  return replace_dashed(out, names);
}

std::string replace_ipv4(std::string_view text, const Pseudonyms& names) {
  std::string out;
  out.reserve(text.size());
  std::size_t last_end = std::string_view::npos;
  for (std::size_t i = 0; i < text.size();) {
    std::uint32_t address = 0;
    const bool start = is_digit(text[i]) && (i == 0 || (!is_word(text[i - 1]) && text[i - 1] != '.'));
    const auto size = start ? ipv4_size(text, i, address) : 0;
    if (size > 0 && !is_version(text, i, i + size, last_end)) {
      out += dotted(names.ipv4(address));
      last_end = i + size;
    } else {
      out += text.substr(i, std::max<std::size_t>(size, 1));
    }
    i += std::max<std::size_t>(size, 1);
  }
  return out;
}

std::string replace_hex_runs(std::string_view text, const Pseudonyms& names,
                             const std::set<std::uint64_t>& guids) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto end = std::max(run_end(text, i, is_word), i + 1);
    const auto word = text.substr(i, end - i);
    out += word.size() < 15 ? std::string(word) : hex_word(word, names, guids);
    i = end;
  }
  return out;
}

}  // namespace topotune::host
