#include <algorithm>

#include "mixed/result.h"

namespace topotune::mixed {

namespace {

std::string size_text(std::size_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit < 3) value /= 1024, ++unit;
  return fmt::format("{:.3g} {}", value, units[unit]);
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string rate_text(const std::optional<double>& rate) {
  return rate ? fmt::format("{:.3g}", *rate) : std::string("?");
}

std::string sizes_text(const StreamPlan& plan) {
  const auto [least, most] = std::ranges::minmax(plan.stream.bytes);
  return least == most ? size_text(least) : size_text(least) + "-" + size_text(most);
}

std::string times_text(const std::vector<Done>& all) {
  if (all.empty()) return fmt::format("{:>10} {:>10} {:>10}", "?", "?", "?");
  std::vector<double> seconds;
  double sum = 0;
  for (const auto& done : all) seconds.push_back(done.seconds), sum += done.seconds;
  return fmt::format("{:>10} {:>10} {:>10}", seconds_text(sum / static_cast<double>(seconds.size())),
                     seconds_text(*measure::percentile_of(seconds, 0.5)),
                     seconds_text(*measure::percentile_of(seconds, 0.99)));
}

std::string stream_text(const Report& report, const StreamResult& stream, double end) {
  const auto& s = stream.plan.stream;
  const auto slower = slowdown_of(stream.alone, within(stream.together, end));
  const auto expected = expected_of(stream);
  std::string out = fmt::format(
      "{:<11} {:<14} {:<17} {:>6} {} {} {:>7} {:>8}  {}\n", s.name, s.op, sizes_text(stream.plan),
      stream.together.size(), times_text(stream.alone), times_text(stream.together),
      rate_text(achieved_gbytes_per_s(stream.together)),
      expected ? fmt::format("{:.3g}", expected->value()) : "?",
      slower ? fmt::format("{:.2f} x ({:.2f}-{:.2f})", slower->ratio, slower->ci95.low, slower->ci95.high)
             : "unknown");
  std::string beside;
  for (const auto& other : report.streams) {
    if (&other == &stream) continue;
    const auto one = slowdown_of(stream.alone, overlapping(stream.together, other.together));
    if (one) beside += fmt::format("  beside {}: {:.2f} x", other.plan.stream.name, one->ratio);
  }
  if (!beside.empty()) out += fmt::format("{:<51}{}\n", "", beside);
  if (stream.checked && stream.checked->wrong > 0)
    out += fmt::format("            WRONG: {}\n", stream.checked->first);
  return out;
}

std::string interrupts_text(const std::vector<InterruptRate>& rates) {
  std::string out;
  std::size_t shown = 0;
  for (const auto& rate : rates) {
    if (shown == 6) break;
    if (rate.kind != "nic" && !rate.id.starts_with("NET_")) continue;
    ++shown;
    out += fmt::format("  {:<12} {:<10} {:<24} {:>9.0f} /s, CPU {} takes {:.0f} %\n", rate.host,
                       rate.kind == "nic" ? rate.nic : "softirq", rate.kind == "nic" ? rate.name : rate.id,
                       rate.per_second, rate.busiest_cpu, rate.busiest_share * 100);
  }
  return out.empty() ? out : "Interrupts while all streams ran\n" + out;
}

}  // namespace

std::string table_text(const Report& report) {
  std::string out = fmt::format("{:<51} {:^32} {:^32}\n", "", "alone", "together");
  out += fmt::format("{:<11} {:<14} {:<17} {:>6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>7} {:>8}  {}\n",
                     "stream", "operation", "sizes", "number", "mean", "p50", "p99", "mean", "p50", "p99",
                     "GB/s", "expected", "slower together");
  const double end = common_end(report.streams);
  for (const auto& stream : report.streams) out += stream_text(report, stream, end);
  return out + interrupts_text(report.interrupts);
}

}  // namespace topotune::mixed
