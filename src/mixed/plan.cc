#include "mixed/plan.h"

#include <algorithm>
#include <numeric>

#include "coll/lane.h"

namespace topotune::mixed {

namespace {

constexpr std::size_t kMost = 20000;

// What each stands for is in docs/mixed.md.
constexpr const char* kProfiles[] = {
    "topotune mixed profile 1\n"
    "name dense-ddp\n"
    "stream small op=all_reduce bytes=64K,256K,1M every=50ms burst=8\n"
    "stream large op=broadcast bytes=100M,1G every=1s\n"
    "stream checkpoint op=checkpoint bytes=5G every=10s\n",
    "topotune mixed profile 1\n"
    "name fsdp\n"
    "stream small op=all_reduce bytes=64K,128K every=100ms burst=2\n"
    "stream large op=broadcast bytes=100M,200M,400M every=100ms\n"
    "stream checkpoint op=checkpoint bytes=5G every=5s\n",
    "topotune mixed profile 1\n"
    "name moe\n"
    "stream small op=all_reduce bytes=64K,128K,256K,512K,1M every=10ms burst=4\n"
    "stream large op=broadcast bytes=100M,500M every=2s\n"
    "stream checkpoint op=checkpoint bytes=5G every=20s\n"};

std::size_t largest_of(const parse::MixedStream& stream) { return *std::ranges::max_element(stream.bytes); }

bool is_large(const parse::MixedStream& stream) { return largest_of(stream) >= kLarge; }

std::size_t memory_of(const parse::MixedStream& stream) {
  const auto largest = largest_of(stream);
  if (stream.op == "checkpoint") return std::min(largest, std::size_t{1} << 30) + coll::ByteSource::kPiece;
  return largest * (stream.op == "broadcast" ? 1 : 2);
}

}  // namespace

std::vector<std::string> known_profiles() { return {"dense-ddp", "fsdp", "moe"}; }

Result<parse::MixedProfile> known_profile(const std::string& name) {
  const auto names = known_profiles();
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) return fail(Errc::not_found, "there is no profile '{}'", name);
  return parse::parse_mixed_profile(kProfiles[at - names.begin()]);
}

std::size_t memory_of(const parse::MixedProfile& profile) {
  return std::accumulate(profile.streams.begin(), profile.streams.end(), std::size_t{0},
                         [](std::size_t sum, const auto& stream) { return sum + memory_of(stream); });
}

double fitting_scale(const parse::MixedProfile& profile, std::size_t budget) {
  double scale = 1;
  // Checkpoints keep a gigabyte of memory however large they are: not proportional, so by halves.
  for (int i = 0; i < 40; ++i) {
    auto scaled = profile;
    scale_large(scaled, scale);
    if (memory_of(scaled) <= budget) break;
    scale *= 0.8;
  }
  return scale;
}

void scale_large(parse::MixedProfile& profile, double scale) {
  for (auto& stream : profile.streams) {
    if (!is_large(stream)) continue;
    for (auto& bytes : stream.bytes) {
      const auto scaled = static_cast<std::size_t>(static_cast<double>(bytes) * scale) / 4096 * 4096;
      bytes = std::max(scaled, std::min(bytes, std::size_t{1} << 20));
    }
  }
}

double StreamPlan::due_of(std::size_t index) const {
  const auto bursts = index / static_cast<std::size_t>(stream.burst);
  return static_cast<double>(bursts) * every_seconds;
}

double StreamPlan::mean_bytes() const {
  double sum = 0;
  for (const auto bytes : stream.bytes) sum += static_cast<double>(bytes);
  return sum / static_cast<double>(stream.bytes.size());
}

double StreamPlan::offered_gbytes_per_s() const {
  return every_seconds > 0 ? mean_bytes() * stream.burst / every_seconds * 1e-9 : 0;
}

StreamPlan plan_stream(const parse::MixedStream& stream, double seconds, double op_seconds) {
  constexpr double kBursts = 3;
  StreamPlan plan;
  plan.stream = stream;
  plan.every_seconds = std::min(stream.every_seconds, seconds / kBursts);
  const double able = std::clamp(seconds / std::max(op_seconds, 1e-6), kBursts, static_cast<double>(kMost));
  double wanted = able;
  if (plan.every_seconds > 0) wanted = std::max(seconds / plan.every_seconds, kBursts) * stream.burst;
  plan.count = static_cast<std::size_t>(std::min(wanted, able) + 1e-6);
  return plan;
}

}  // namespace topotune::mixed
