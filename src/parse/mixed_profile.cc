#include "parse/mixed_profile.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "parse/size.h"

namespace topotune::parse {

namespace {

constexpr std::string_view kHead = "topotune mixed profile 1";
constexpr std::size_t kMostText = 1 << 20, kMostStreams = 8, kMostSizes = 16;
constexpr int kMostBurst = 1000;
constexpr std::array<std::string_view, 6> kOps{"all_reduce", "all_gather", "reduce_scatter",
                                               "broadcast",  "alltoall",   "checkpoint"};

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 32 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
  });
}

std::string shown(std::string_view text) { return printable(text.substr(0, 60)); }

Result<std::vector<std::size_t>> sizes_of(std::string_view value, int line) {
  std::vector<std::size_t> out;
  for (const auto word : split(value, ',')) {
    const auto size = size_from(word);
    if (!size || *size < 16)
      return fail_at(line, "'{}' is no size from 16 bytes to 64G, such as 64K or 1G", shown(word));
    if (out.size() == kMostSizes) return fail_at(line, "a stream has at most {} sizes", kMostSizes);
    out.push_back(*size);
  }
  return out;
}

Result<void> set(MixedStream& stream, std::string_view key, std::string_view value, int line) {
  if (key == "op") {
    if (std::ranges::find(kOps, value) == kOps.end())
      return fail_at(line, "'{}' is no operation; known are {}", shown(value), fmt::join(kOps, " "));
    stream.op = value;
  } else if (key == "bytes") {
    auto sizes = sizes_of(value, line);
    if (!sizes) return tl::unexpected(sizes.error());
    stream.bytes = std::move(*sizes);
  } else if (key == "every") {
    const auto seconds = duration_from(value);
    if (!seconds || (*seconds > 0 && *seconds < 1e-6))
      return fail_at(line, "'{}' is no time from 1us to 3600s, such as 250ms, and not 0", shown(value));
    stream.every_seconds = *seconds;
  } else if (key == "burst") {
    const auto count = parse_int<int>(value);
    if (!count || *count < 1 || *count > kMostBurst)
      return fail_at(line, "'{}' is no number from 1 to {}", shown(value), kMostBurst);
    stream.burst = *count;
  } else {
    return fail_at(line, "a stream has no '{}'; known are op bytes every burst", shown(key));
  }
  return {};
}

Result<MixedStream> stream_from(const std::vector<std::string_view>& words, int line) {
  MixedStream stream;
  if (words.size() < 2 || !is_name(words[1]))
    return fail_at(line, "a stream has a name of small letters, digits, - and _");
  stream.name = words[1];
  std::vector<std::string_view> seen;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    if (equals == std::string_view::npos) return fail_at(line, "'{}' is not KEY=VALUE", shown(words[i]));
    const auto key = words[i].substr(0, equals);
    if (std::ranges::find(seen, key) != seen.end()) return fail_at(line, "'{}' stands twice", shown(key));
    if (auto ok = set(stream, key, words[i].substr(equals + 1), line); !ok) return tl::unexpected(ok.error());
    seen.push_back(key);
  }
  for (const std::string_view key : {"op", "bytes", "every"})
    if (std::ranges::find(seen, key) == seen.end())
      return fail_at(line, "stream {} has no {}=", stream.name, key);
  return stream;
}

// Words of a line without what follows a #.
std::vector<std::string_view> words_of(std::string_view line) {
  return words(line.substr(0, line.find('#')));
}

Result<void> read_line(MixedProfile& profile, const std::vector<std::string_view>& parts, int line) {
  if (parts[0] == "name") {
    if (!profile.name.empty()) return fail_at(line, "the profile has a name already");
    if (parts.size() != 2 || !is_name(parts[1]))
      return fail_at(line, "a name is one word of small letters, digits, - and _");
    profile.name = parts[1];
    return {};
  }
  if (parts[0] != "stream")
    return fail_at(line, "a line begins with 'name' or 'stream', not with '{}'", shown(parts[0]));
  auto stream = stream_from(parts, line);
  if (!stream) return tl::unexpected(stream.error());
  if (std::ranges::find(profile.streams, stream->name, &MixedStream::name) != profile.streams.end())
    return fail_at(line, "there are two streams '{}'", stream->name);
  if (profile.streams.size() == kMostStreams) return fail_at(line, "more than {} streams", kMostStreams);
  profile.streams.push_back(std::move(*stream));
  return {};
}

}  // namespace

Result<MixedProfile> parse_mixed_profile(std::string_view text) {
  if (text.size() > kMostText) return fail(Errc::too_large, "a profile is at most 1 MiB");
  MixedProfile profile;
  int line = 0;
  bool headed = false;
  for (const auto whole : lines(text)) {
    ++line;
    const auto parts = words_of(whole);
    if (parts.empty()) continue;
    if (!headed) {
      if (fmt::format("{}", fmt::join(parts, " ")) != kHead)
        return fail_at(line, "the first line is not '{}'", kHead);
      headed = true;
    } else if (auto ok = read_line(profile, parts, line); !ok) {
      return tl::unexpected(ok.error());
    }
  }
  if (!headed) return fail_at(1, "the first line is not '{}'", kHead);
  if (profile.name.empty()) return fail_at(line, "the profile has no name");
  if (profile.streams.empty()) return fail_at(line, "the profile has no stream");
  return profile;
}

}  // namespace topotune::parse
