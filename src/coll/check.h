#pragma once

#include <cstddef>
#include <vector>

#include "coll/backend.h"
#include "coll/values.h"

namespace topotune::coll {

// What rank `rank` hands over: the whole send buffer.
Slice sent_by(const Question& question, int ranks, int rank, std::uint32_t seed);

// A part of a rank's receive buffer and what must be in it.
struct Arrival {
  std::size_t offset = 0;  // elements
  Slice slice;
};
// All that must have arrived at `rank`; nothing for ranks that receive nothing. Parts do not overlap and
// cover the receive buffer.
std::vector<Arrival> arrivals_at(const Question& question, int ranks, int rank, std::uint32_t seed);

// On host memory: elements s.first.. written to, or compared with, memory at `data`.
void fill_on_host(std::byte* data, const Slice& s);
struct HostCheck {
  std::uint64_t wrong = 0, first = 0;  // `first`: index from the slice's start
  std::uint64_t have = 0;              // bits of it
};
HostCheck check_on_host(const std::byte* data, const Slice& s);

// "rank 1: element 17 of 1024 is 0x3f800000, not 0x40000000".
std::string wrong_text(int rank, const Arrival& arrival, std::size_t elements, std::uint64_t first,
                       std::uint64_t have);

}  // namespace topotune::coll
