#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "parse/mixed_profile.h"

namespace topotune::mixed {

// The profiles that the program knows: dense-ddp, fsdp, moe.
std::vector<std::string> known_profiles();
Result<parse::MixedProfile> known_profile(const std::string& name);

// Streams whose largest operation is at least this large are scaled to memory.
inline constexpr std::size_t kLarge = std::size_t{16} << 20;

// Bytes of memory that one rank needs for the buffers of all streams.
std::size_t memory_of(const parse::MixedProfile& profile);
// The part of the sizes of large streams that fits into `budget` bytes a rank: at most 1.
double fitting_scale(const parse::MixedProfile& profile, std::size_t budget);
// The same profile with the sizes of large streams times `scale`, at least a megabyte, in whole pages.
void scale_large(parse::MixedProfile& profile, double scale);

// A stream with the number of its operations.
struct StreamPlan {
  parse::MixedStream stream;
  double every_seconds = 0;  // from burst to burst, as planned here
  std::size_t count = 0;

  std::size_t bytes_of(std::size_t index) const { return stream.bytes[index % stream.bytes.size()]; }
  double due_of(std::size_t index) const;
  double mean_bytes() const;
  // Bytes a second that are asked for (1e9); 0: as fast as it goes.
  double offered_gbytes_per_s() const;
};

// How many operations make up a phase of `seconds`: by the stream's rate, at least three, at most as many as
// the stream can do alone in that time (`op_seconds`: of one operation, the mean of its sizes), at most 20
// 000. A stream whose bursts are rarer than three a phase gets three.
StreamPlan plan_stream(const parse::MixedStream& stream, double seconds, double op_seconds);

}  // namespace topotune::mixed
