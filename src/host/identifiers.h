#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "host/pseudonym.h"

namespace topotune::host {

// Replaces identifiers that are recognised by their form, wherever they stand in a text. Each function is
// linear.

// 8-4-4-4-12 hexadecimal digits (also with '_'), and what follows "UUID=".
std::string replace_uuids(std::string_view text, const Pseudonyms& names);

// MACs, EUI-64s and IPoIB addresses in groups of two digits, GUIDs in groups of four, IPv6 addresses and
// GIDs. Four groups that could be PCI ids ("10de:2330:10de:16c1") count as a GUID only when `guids` has it.
std::string replace_groups(std::string_view text, const Pseudonyms& names,
                           const std::set<std::uint64_t>& guids);

// Public dotted addresses; four numbers that stand where a version stands are none.
std::string replace_ipv4(std::string_view text, const Pseudonyms& names);

// 32 digits in one (machine-id), 16 digits that `guids` has, "enx" and a MAC.
std::string replace_hex_runs(std::string_view text, const Pseudonyms& names,
                             const std::set<std::uint64_t>& guids);

}  // namespace topotune::host
