#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace topotune::host {

using Salt = std::array<std::uint64_t, 2>;
using Mac = std::array<std::uint8_t, 6>;
using Ipv6 = std::array<std::uint8_t, 16>;

// SipHash-2-4 (Aumasson, Bernstein 2012): without the salt nobody can tell which original belongs to a hash.
std::uint64_t siphash(const Salt& salt, std::string_view text);

// Stand-ins of the same kind as the original. Same salt and original, same stand-in; zero stays zero.
class Pseudonyms {
 public:
  explicit Pseudonyms(const Salt& salt) : salt_(salt) {}

  // Hexadecimal digits become others, everything else and the case stay. Of 32 digits the UUID's version and
  // variant (digits 12 and 16) stay too.
  std::string hex(std::string_view text) const;
  // Digits become digits, letters letters of the same case, the rest stays: serial numbers.
  std::string serial(std::string_view text) const;
  std::string host_name(std::string_view name) const;    // "host-3f2a9c01"
  std::string domain_name(std::string_view name) const;  // "net-3f2a9c01.example"
  std::string user_name(std::string_view name) const;    // "user-3f2a9c01"

  // The group and local bits of the first byte stay; zero and broadcast too.
  Mac mac(const Mac& address) const;
  // An EUI-64: one that is made from a MAC (ff:fe or, in Mellanox GUIDs, 03:00 in its middle) stays made from
  // the stand-in of that MAC.
  std::uint64_t guid(std::uint64_t value) const;
  // Public addresses become ones of 240.0.0.0/4, which nobody has; a /24 stays together. Others stay.
  std::uint32_t ipv4(std::uint32_t address) const;
  // Link-local, site-local and unique local prefixes stay, their interface id is treated as a GUID (a number
  // below 65536 stays in unique local ones). Public ones become ones of 2001:db8::/32, a /64 stays together.
  // IPv4-mapped ones follow ipv4. Loopback, unspecified and multicast stay; of solicited-node multicast the
  // last 24 bits change.
  Ipv6 ipv6(const Ipv6& address) const;

 private:
  std::uint64_t hash(std::string_view kind, std::string_view text) const;
  std::uint64_t hash(std::string_view kind, std::uint64_t value) const;
  std::string named(std::string_view kind, std::string_view name) const;

  Salt salt_;
};

}  // namespace topotune::host
