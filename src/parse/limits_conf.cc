#include "parse/limits_conf.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

constexpr std::array<std::string_view, 19> kItems = {
    "core",       "data",     "fsize", "memlock",   "nofile",       "rss",      "stack",
    "cpu",        "nproc",    "as",    "maxlogins", "maxsyslogins", "priority", "locks",
    "sigpending", "msgqueue", "nice",  "rtprio",    "chroot"};

bool is_value(std::string_view text) {
  if (text == "unlimited" || text == "infinity") return true;
  if (text.starts_with("-")) text.remove_prefix(1);
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

std::optional<LimitsConfEntry> entry_of(std::string_view line) {
  line = trim(line.substr(0, line.find('#')));
  if (line.size() > 300) return std::nullopt;
  const auto all = words(line);
  if (all.size() != 4 || (all[1] != "soft" && all[1] != "hard" && all[1] != "-")) return std::nullopt;
  if (std::ranges::find(kItems, all[2]) == kItems.end() || !is_value(all[3])) return std::nullopt;
  return LimitsConfEntry{0, std::string(all[0]), std::string(all[1]), std::string(all[2]),
                         std::string(all[3])};
}

// "unlimited", "infinity", "-1" or a number; nothing for what pam_limits refuses.
std::optional<std::optional<std::uint64_t>> amount_of(std::string_view text, std::uint64_t unit) {
  if (text == "unlimited" || text == "infinity" || text == "-1") return std::optional<std::uint64_t>{};
  const auto value = parse_int<std::uint64_t>(text);
  if (!value || *value > UINT64_MAX / unit) return std::nullopt;
  return std::optional(*value * unit);
}

std::string domain_of(const LimitsConf& conf, std::string_view item) {
  std::string first;
  for (const auto& entry : conf.entries) {
    if (entry.item != item) continue;
    if (entry.domain == "*") return "*";
    if (first.empty()) first = entry.domain;
  }
  return first;
}

std::optional<LimitLine> limit_of(const LimitsConf& conf, std::string_view item, std::uint64_t unit) {
  const auto domain = domain_of(conf, item);
  std::optional<std::optional<std::uint64_t>> soft, hard;
  LimitLine out;
  for (const auto& entry : conf.entries) {
    const auto amount =
        entry.item == item && entry.domain == domain ? amount_of(entry.value, unit) : std::nullopt;
    if (!amount) continue;
    if (entry.type != "hard") soft = amount;
    if (entry.type != "soft") hard = amount;
    if (entry.type == "hard" && soft) continue;  // the soft limit is the one that counts
    out.line = entry.line;
    out.text = fmt::format("{} {} {} {}", entry.domain, entry.type, entry.item, entry.value);
  }
  if (!soft && !hard) return std::nullopt;
  if (!soft && !hard->has_value()) return std::nullopt;  // the soft limit stays what it was before
  if (!soft) soft = hard;                                // it is lowered to the hard one
  out.value = {*soft, hard.value_or(*soft)};
  return out;
}

}  // namespace

bool looks_like_limits_conf(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (!has("soft") && !has("hard") && !has("memlock") && !has("nofile")) return false;
  for (LineReader reader(text); reader.next();) {
    if (entry_of(reader.line())) return true;
  }
  return false;
}

Result<LimitsConf> parse_limits_conf(std::string_view text) {
  LimitsConf out;
  for (LineReader reader(text); reader.next();) {
    auto entry = entry_of(reader.line());
    if (!entry) continue;
    if (out.entries.size() >= kMaxRecords) return too_many("limits", reader.number());
    entry->line = reader.number();
    out.entries.push_back(std::move(*entry));
  }
  if (out.entries.empty()) return not_a("limits.conf");
  return out;
}

Limits limits_of(const LimitsConf& conf) {
  return {limit_of(conf, "memlock", 1024), limit_of(conf, "nofile", 1)};
}

}  // namespace topotune::parse
