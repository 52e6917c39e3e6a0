#include "host/options.h"

#include <cstdlib>

#include "base/bdf.h"
#include "base/text.h"

namespace topotune::host {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

tl::unexpected<Error> bad(std::string_view variable, std::string_view value, std::string_view hint) {
  auto error = fail(Errc::usage, "{}: '{}' is not understood", variable, printable(value));
  error.value().hint = hint;
  return error;
}

Result<std::chrono::milliseconds> parse_limit(std::string_view text) {
  const auto seconds = parse_double(text);
  if (!seconds || *seconds < 0.1 || *seconds > 3600) {
    return bad("TOPOTUNE_PROBE_TIMEOUT", text, "seconds from 0.1 to 3600, such as 30");
  }
  return std::chrono::milliseconds(static_cast<long long>(*seconds * 1000));
}

}  // namespace

Result<std::set<std::string>> parse_excluded(std::string_view text) {
  std::set<std::string> out;
  for (const auto part : split(text, ',')) {
    const auto word = trim(part);
    if (word.empty()) continue;
    const auto bdf = parse_bdf(word);
    if (!bdf) return bad("TOPOTUNE_EXCLUDE", word, "PCI addresses between commas, such as 0000:1b:00.0");
    out.insert(bdf->to_string());
  }
  return out;
}

std::set<std::string> excluded_devices() {
  return parse_excluded(environment("TOPOTUNE_EXCLUDE")).value_or(std::set<std::string>{});
}

Result<LiveOptions> live_options_from_environment(std::string root) {
  LiveOptions out;
  out.root = std::move(root);
  auto excluded = parse_excluded(environment("TOPOTUNE_EXCLUDE"));
  if (!excluded) return tl::unexpected(excluded.error());
  out.excluded = std::move(*excluded);
  const auto limit = environment("TOPOTUNE_PROBE_TIMEOUT");
  if (limit.empty()) return out;
  const auto parsed = parse_limit(limit);
  if (!parsed) return tl::unexpected(parsed.error());
  out.probe_limit = *parsed;
  return out;
}

}  // namespace topotune::host
