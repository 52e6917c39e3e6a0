#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/nccl_log.h"

namespace topotune::parse {

// One collective, or send or receive, of a profiler file.
struct ProfileEvent {
  std::uint64_t number = 0;  // of the file, from 1
  // Constants: "AllReduce", "float32", "Ring", "LL"; "" unknown.
  std::string_view op, datatype, algorithm, protocol;
  int channels = 0;
  std::uint64_t bytes = 0, count = 0;  // count x size of the type; elements
  std::optional<int> peer;             // of sends and receives; the root of others
  std::uint64_t start_ns = 0;          // CLOCK_MONOTONIC
  std::optional<double> host_seconds, gpu_seconds;
};

struct ProfileTotal {
  std::string_view op;
  int log2_bytes =
      0;  // floor of the logarithm of count x size of the type; 0: no byte, or one; 47: from 2^47 on
  std::uint64_t calls = 0, bytes = 0;
};

// What a rank's profiler plugin recorded of one communicator (docs/formats/profile.md).
struct NcclProfile {
  std::optional<int> rank, ranks, nodes;
  std::optional<std::uint64_t> communicator;
  std::uint64_t pid = 0, events = 0;
  std::uint64_t began_ns = 0, began_unix_ns = 0;  // CLOCK_MONOTONIC, CLOCK_REALTIME
  std::string host, name;
  bool closed = false;
  bool steps = false;              // network steps were recorded from the beginning to the end
  std::vector<ProfileEvent> kept;  // the newest, by number
  std::vector<ProfileTotal> totals;
  std::vector<std::uint64_t> sent;  // bytes to each rank over the network
  std::uint64_t foreign = 0;        // bytes sent for ranks of other processes (PXN): not in `sent`
  std::uint32_t records = 0;        // places of the ring

  std::uint64_t overwritten() const { return events - std::min<std::uint64_t>(events, kept.size()); }
};

bool is_nccl_profile(std::string_view bytes);

// Events that are being written while the bytes are read are left out.
Result<NcclProfile> parse_nccl_profile(std::string_view bytes);

// Where the events so far are counted: a reader looks there again after it has copied the file.
inline constexpr std::size_t kProfileNextOffset = 200;
// Events whose place in the ring may have been taken while the file was copied: `next` is what stands there
// now.
void drop_overwritten(NcclProfile& profile, std::uint64_t next);

// What happened between two readings of one file: events, totals and network bytes of that time alone.
NcclProfile since(const NcclProfile& before, NcclProfile after);

// Kept events, equal ones (operation, size, type, algorithm, protocol, channels) side by side.
std::vector<const ProfileEvent*> in_groups(const NcclProfile& profile);
bool same_group(const ProfileEvent& a, const ProfileEvent& b);

// The profiles of one job as a log: ranks, communicators, collectives (once a communicator; sends and
// receives of every rank), tuning, and a matrix of each communicator where network bytes were measured, or
// where two ranks leave no doubt who talks to whom. Calls are those of the totals; where events of a size
// class were overwritten, they share as those that are left, and where none is left they have the class's
// mean size.
model::NcclLog log_of(std::span<const NcclProfile> profiles);

}  // namespace topotune::parse
