#include "host/pseudonym.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/text.h"

namespace topotune::host {

namespace {

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
    v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
  }

  void absorb(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

std::uint64_t load_little(std::string_view bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    out |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return out;
}

// Endless bytes that depend on a first hash only.
class Stream {
 public:
  explicit Stream(std::uint64_t seed) : state_(seed) {}
  unsigned next() {
    if (left_ == 0) {
      state_ += 0x9e3779b97f4a7c15;  // splitmix64
      std::uint64_t z = state_;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      block_ = z ^ (z >> 31);
      left_ = 8;
    }
    --left_;
    const auto byte = static_cast<unsigned>(block_ & 0xff);
    block_ >>= 8;
    return byte;
  }

 private:
  std::uint64_t state_, block_ = 0;
  int left_ = 0;
};

char hex_digit(unsigned value, bool upper) {
  return (upper ? "0123456789ABCDEF" : "0123456789abcdef")[value & 15];
}

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

std::string hex_digits(std::string_view text) {
  std::string out;
  std::ranges::copy_if(text, std::back_inserter(out), is_hex_digit);
  return to_lower(out);
}

bool only_zeros(std::string_view digits) { return digits.find_first_not_of('0') == std::string_view::npos; }

// RFC 1918, RFC 6598 (carrier), loopback, link-local, "this" network; multicast and beyond (masks are there).
bool is_public(std::uint32_t address) {
  const auto in = [&](std::uint32_t network, int bits) { return (address ^ network) >> (32 - bits) == 0; };
  return !in(0x00000000, 8) && !in(0x0a000000, 8) && !in(0x64400000, 10) && !in(0x7f000000, 8) &&
         !in(0xa9fe0000, 16) && !in(0xac100000, 12) && !in(0xc0a80000, 16) && !in(0xe0000000, 3);
}

std::uint64_t half_of(const Ipv6& address, std::size_t first) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < 8; ++i) out = out << 8 | address[first + i];
  return out;
}

void set_half(Ipv6& address, std::size_t first, std::uint64_t value) {
  for (std::size_t i = 0; i < 8; ++i) address[first + i] = static_cast<std::uint8_t>(value >> (56 - 8 * i));
}

}  // namespace

std::uint64_t siphash(const Salt& salt, std::string_view text) {
  SipState s{salt[0] ^ 0x736f6d6570736575, salt[1] ^ 0x646f72616e646f6d, salt[0] ^ 0x6c7967656e657261,
             salt[1] ^ 0x7465646279746573};
  const std::size_t whole = text.size() / 8 * 8;
  for (std::size_t i = 0; i < whole; i += 8) s.absorb(load_little(text.substr(i, 8)));
  s.absorb(load_little(text.substr(whole)) | std::uint64_t{text.size()} << 56);
  s.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) s.round();
  return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

std::uint64_t Pseudonyms::hash(std::string_view kind, std::string_view text) const {
  return siphash(salt_, fmt::format("{}:{}", kind, text));
}

std::uint64_t Pseudonyms::hash(std::string_view kind, std::uint64_t value) const {
  return hash(kind, std::string_view(fmt::format("{:x}", value)));
}

std::string Pseudonyms::hex(std::string_view text) const {
  const auto digits = hex_digits(text);
  if (only_zeros(digits)) return std::string(text);
  Stream stream(hash("hex", std::string_view(digits)));
  std::string out(text);
  std::size_t number = 0;
  const bool upper = std::ranges::any_of(text, [](char c) { return is_upper(c); });
  for (char& c : out) {
    if (!is_hex_digit(c)) continue;
    const bool kept = digits.size() == 32 && (number == 12 || number == 16);
    const unsigned value = stream.next();
    if (!kept) c = hex_digit(value, upper);
    ++number;
  }
  return out;
}

std::string Pseudonyms::serial(std::string_view text) const {
  Stream stream(hash("serial", std::string_view(to_lower(text))));
  std::string out(text);
  bool first = true;  // a number in JSON must not begin with 0
  for (char& c : out) {
    const unsigned value = stream.next();
    if (is_digit(c)) c = static_cast<char>(first ? '1' + value % 9 : '0' + value % 10);
    if (is_upper(c)) c = static_cast<char>('A' + value % 26);
    if (is_lower(c)) c = static_cast<char>('a' + value % 26);
    first = false;
  }
  return out;
}

std::string Pseudonyms::named(std::string_view kind, std::string_view name) const {
  return fmt::format("{}-{:08x}", kind, hash(kind, std::string_view(to_lower(name))) & 0xffffffff);
}

std::string Pseudonyms::host_name(std::string_view name) const { return named("host", name); }
std::string Pseudonyms::domain_name(std::string_view name) const { return named("net", name) + ".example"; }
std::string Pseudonyms::user_name(std::string_view name) const { return named("user", name); }

Mac Pseudonyms::mac(const Mac& address) const {
  std::uint64_t value = 0;
  for (const auto byte : address) value = value << 8 | byte;
  if (value == 0 || value == 0xffffffffffff) return address;
  const std::uint64_t hashed = hash("mac", value);
  Mac out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(hashed >> (8 * i));
  out[0] = static_cast<std::uint8_t>((out[0] & 0xfc) | (address[0] & 3));
  return out;
}

std::uint64_t Pseudonyms::guid(std::uint64_t value) const {
  if (value == 0 || value == ~std::uint64_t{0}) return value;
  const auto byte = [&](int i) { return static_cast<std::uint8_t>(value >> (56 - 8 * i)); };
  const std::uint64_t middle = value >> 24 & 0xffff;
  if (middle != 0xfffe && middle != 0x0300) {
    constexpr std::uint64_t kKept = std::uint64_t{3} << 56;
    return (hash("guid", value) & ~kKept) | (value & kKept);
  }
  const std::uint8_t flip = middle == 0xfffe ? 2 : 0;  // RFC 4291, modified EUI-64
  auto made = mac({static_cast<std::uint8_t>(byte(0) ^ flip), byte(1), byte(2), byte(5), byte(6), byte(7)});
  made[0] ^= flip;
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < 3; ++i) out = out << 8 | made[i];
  out = out << 16 | middle;
  for (std::size_t i = 3; i < 6; ++i) out = out << 8 | made[i];
  return out;
}

std::uint32_t Pseudonyms::ipv4(std::uint32_t address) const {
  if (!is_public(address)) return address;
  const std::uint64_t network = hash("net4", address >> 8);
  const auto first = static_cast<std::uint32_t>(240 + network % 15);
  const auto middle = static_cast<std::uint32_t>(network >> 16 & 0xffff);
  const auto host = static_cast<std::uint32_t>((address ^ network >> 40) & 0xff);
  return first << 24 | middle << 8 | host;
}

Ipv6 Pseudonyms::ipv6(const Ipv6& address) const {
  const std::uint64_t prefix = half_of(address, 0), interface = half_of(address, 8);
  Ipv6 out = address;
  if (prefix == 0) {
    if (interface >> 32 == 0xffff)
      set_half(out, 8, 0xffff00000000 | ipv4(static_cast<std::uint32_t>(interface)));
    return out;
  }
  if (address[0] == 0xff) {
    const bool solicited = interface >> 24 == 0x1ff && prefix == 0xff02000000000000;
    if (solicited)
      set_half(out, 8, (interface & ~std::uint64_t{0xffffff}) | (hash("snm", interface) & 0xffffff));
    return out;
  }
  const bool unique_local = (address[0] & 0xfe) == 0xfc;
  if (!unique_local || interface > 0xffff) set_half(out, 8, guid(interface));
  if (address[0] >> 5 == 1) set_half(out, 0, 0x20010db800000000 | (hash("net6", prefix) & 0xffffffff));
  return out;
}

}  // namespace topotune::host
