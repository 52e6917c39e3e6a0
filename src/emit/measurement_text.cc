#include "emit/measurement_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace topotune::emit {

namespace {

using model::Measurement;
using model::MeasureStatus;

const char* colored(bool color, MeasureStatus status) {
  if (!color) return "";
  switch (status) {
    case MeasureStatus::ok:
      return "\033[32m";
    case MeasureStatus::failed:
      return "\033[31m";
    default:
      return "\033[33m";
  }
}

std::string where_of(const Measurement& m) {
  std::string src, dst, rest;
  for (const auto& p : m.params) {
    if (p.name == "src" || p.name == "gpu")
      src = model::text_of(p.value);
    else if (p.name == "dst")
      dst = model::text_of(p.value);
    else if (p.name == "bytes")
      rest += " " + size_text(static_cast<double>(std::get<std::int64_t>(p.value)));
    else
      rest += fmt::format(" {} {}", p.name, model::text_of(p.value));
  }
  const std::string ends = dst.empty() ? src : src + " -> " + dst;
  return printable(ends + (ends.empty() && !rest.empty() ? rest.substr(1) : rest));
}

std::string spread_of(const Measurement& m) {
  if (!m.median || !m.ci95) return "";
  const double half = (m.ci95->high - m.ci95->low) / 2 / *m.median * 100;
  if (m.unit == "seconds" && m.samples.size() >= 1000)
    return fmt::format("p99 {}, p99.9 {}", value_text(*m.p99, m.unit),
                       m.p999 ? value_text(*m.p999, m.unit) : "?");
  return fmt::format("+- {:.2f} %", half);
}

std::string expected_of(const Measurement& m) {
  if (!m.expected) return "";
  return fmt::format(", expected {:.1f}-{:.1f} ({})", m.expected->low, m.expected->high, m.expected->why);
}

std::string extra_of(const Measurement& m) {
  std::string text;
  for (const auto& p : m.extra) {
    if (p.name == "ratio_to_local") text += fmt::format(", {:.2f} x local", std::get<double>(p.value));
    // Small pages make latencies longer; all huge is what is expected.
    if (p.name == "pages" && model::text_of(p.value).ends_with("%)") &&
        !model::text_of(p.value).ends_with("(100 %)") && !model::text_of(p.value).ends_with("(99 %)"))
      text += ", " + model::text_of(p.value);
    if (p.name == "share_of_link")
      text += fmt::format(", {:.0f} % of the link", std::get<double>(p.value) * 100);
    if (p.name == "fastest_place_p50")
      text += ", p50 by place " + value_text(std::get<double>(p.value), m.unit);
    if (p.name == "slowest_place_p50") text += " to " + value_text(std::get<double>(p.value), m.unit);
    if (p.name == "p99_over_p50_of_one_place")
      text += fmt::format(", p99 of one place +{:.1f} %", (std::get<double>(p.value) - 1) * 100);
    if (p.name == "slowest") text += ", slowest " + model::text_of(p.value);
    if (p.name == "slowest_gbytes_per_s") text += fmt::format(" {:.1f} GB/s", std::get<double>(p.value));
  }
  return text;
}

std::string line_of(const Measurement& m, bool color) {
  const char* const end = color ? "\033[0m" : "";
  std::string line = fmt::format("  {:<22} {:<34} ", m.name, where_of(m));
  if (m.median) line += fmt::format("{:>12} {}", value_text(*m.median, m.unit), spread_of(m));
  line += expected_of(m) + extra_of(m);
  line += fmt::format("{}{}{}{}", m.median ? ", " : "", colored(color, m.status), name_of(m.status), end);
  if (m.median) line += m.verified ? ", verified" : ", not verified";
  if (!m.why.empty()) line += ": " + printable(m.why);
  if (!m.outliers.empty() && m.samples.size() < 1000)
    line += fmt::format(" [{} of {} samples are outliers]", m.outliers.size(), m.samples.size());
  return line + "\n";
}

std::string times_text(const model::MeasurementRun& run) {
  if (!run.times) return "";
  const auto& t = *run.times;
  std::string out;
  for (const auto& [name, seconds] : {std::pair{"driver start", t.driver_start},
                                      {"allocation", t.allocation},
                                      {"measuring", t.measuring},
                                      {"verification", t.verification},
                                      {"the rest", std::max(run.seconds - t.sum(), 0.0)}})
    if (seconds >= 0.0005) out += fmt::format("{}{} {:.3f}", out.empty() ? "" : ", ", name, seconds);
  return out.empty() ? "" : " (" + out + ")";
}

std::string models_text(const model::MeasurementRun& run) {
  std::string out;
  for (const auto& m : run.models) {
    out += fmt::format("  {:<22} mean error {:.1f} %:", m.name, m.mean_error * 100);
    for (const auto& s : m.segments) {
      out += fmt::format("  {}..{}: {}", size_text(s.from_bytes), size_text(s.to_bytes),
                         value_text(s.alpha_seconds, "seconds"));
      if (s.gbytes_per_s > 0) out += fmt::format(" + bytes / {:.1f} GB/s", s.gbytes_per_s);
      out += ";";
    }
    out += "\n";
  }
  return out.empty() ? out : "Time by size\n" + out;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string cell(const std::optional<double>& value) { return value ? fmt::format("{:.7g}", *value) : ""; }

}  // namespace

std::string size_text(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit < 4) bytes /= 1024, ++unit;
  return bytes == std::floor(bytes) ? fmt::format("{:.0f} {}", bytes, units[unit])
                                    : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string value_text(double value, const std::string& unit) {
  if (unit == "gbytes_per_s")
    return value < 10 ? fmt::format("{:.3g} GB/s", value) : fmt::format("{:.1f} GB/s", value);
  if (unit != "seconds") return fmt::format("{:.4g}", value);
  if (value < 1e-6) return fmt::format("{:.1f} ns", value * 1e9);
  if (value < 1e-3) return fmt::format("{:.3f} us", value * 1e6);
  return value < 1 ? fmt::format("{:.3f} ms", value * 1e3) : fmt::format("{:.3f} s", value);
}

std::string measurement_text(const model::MeasurementRun& run, bool color) {
  std::string out;
  for (const auto& m : run.results) out += line_of(m, color);
  out += models_text(run);
  for (const auto& j : run.judgements)
    out += fmt::format("{}: {}: {}\n", name_of(j.severity), printable(j.subject), printable(j.text));
  if (run.interrupted) out += kInterruptedText;
  out += fmt::format("{}: {} results in {:.1f} s{}\n", name_of(model::verdict_of(run)), run.results.size(),
                     run.seconds, times_text(run));
  return out;
}

std::string measurement_csv(const model::MeasurementRun& run) {
  std::string out =
      "name,params,unit,median,p1,p99,ci95_low,ci95_high,samples,expected_low,expected_high,ratio,status,"
      "verified,why\n";
  for (const auto& m : run.results) {
    std::string params;
    for (const auto& p : m.params)
      params += fmt::format("{}{}={}", params.empty() ? "" : " ", p.name, model::text_of(p.value));
    const auto low = m.expected ? std::optional(m.expected->low) : std::nullopt;
    const auto high = m.expected ? std::optional(m.expected->high) : std::nullopt;
    const auto ci_low = m.ci95 ? std::optional(m.ci95->low) : std::nullopt;
    const auto ci_high = m.ci95 ? std::optional(m.ci95->high) : std::nullopt;
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", m.name, quoted(printable(params)),
                       m.unit, cell(m.median), cell(m.p1), cell(m.p99), cell(ci_low), cell(ci_high),
                       m.samples.size(), cell(low), cell(high), cell(ratio_of(m)), name_of(m.status),
                       m.verified ? "true" : "false", quoted(printable(m.why)));
  }
  return out;
}

}  // namespace topotune::emit
