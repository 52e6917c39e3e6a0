#include "mixed/result.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace topotune::mixed {

namespace {

using Numbers = std::vector<double>;
using BySize = std::map<std::size_t, Numbers>;

constexpr std::size_t kResamples = 400, kMostOfSize = 500;

BySize by_size(const std::vector<Done>& all) {
  BySize out;
  for (const auto& done : all) out[done.bytes].push_back(done.seconds);
  for (auto& [bytes, seconds] : out) {
    if (seconds.size() <= kMostOfSize) continue;
    Numbers fewer;  // evenly over the time
    for (std::size_t i = 0; i < kMostOfSize; ++i) fewer.push_back(seconds[i * seconds.size() / kMostOfSize]);
    seconds = std::move(fewer);
  }
  return out;
}

Numbers resampled(const Numbers& values, measure::Random& random) {
  Numbers out(values.size());
  for (auto& one : out) one = values[random.below(values.size())];
  return out;
}

// In place: only the middle is put in order.
double median_in(Numbers& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::optional<double> ratio_between(const BySize& alone, const BySize& together, measure::Random* random) {
  Numbers ratios;
  for (const auto& [bytes, seconds] : together) {
    const auto other = alone.find(bytes);
    if (other == alone.end()) continue;
    auto before = random != nullptr ? resampled(other->second, *random) : other->second;
    const auto after = random != nullptr ? resampled(seconds, *random) : seconds;
    const double usual = median_in(before);
    if (usual <= 0) continue;
    for (const double one : after) ratios.push_back(one / usual);
  }
  if (ratios.empty()) return std::nullopt;
  return median_in(ratios);
}

Numbers seconds_of(const std::vector<Done>& all) {
  Numbers out;
  for (const auto& done : all) out.push_back(done.seconds);
  return out;
}

double mean_of(const Numbers& values) {
  return values.empty()
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double bytes_of(const std::vector<Done>& all) {
  double sum = 0;
  for (const auto& done : all) sum += static_cast<double>(done.bytes);
  return sum;
}

model::Measurement blank(const Report& report, const StreamResult& stream, const char* name,
                         const char* unit) {
  model::Measurement m;
  m.name = name;
  m.unit = unit;
  m.params = {
      {"profile", report.profile},
      {"stream", stream.plan.stream.name},
      {"op", stream.plan.stream.op},
      {"largest_bytes", static_cast<std::int64_t>(*std::ranges::max_element(stream.plan.stream.bytes))},
      {"ranks", static_cast<std::int64_t>(report.ranks)}};
  m.verified = stream.checked && stream.checked->wrong == 0;
  m.verified_how = stream.checked ? "every element compared before the streams began" : stream.not_checked;
  return m;
}

void fail_wrong(const StreamResult& stream, model::Measurement& m) {
  if (!stream.checked || stream.checked->wrong == 0) return;
  m.status = model::MeasureStatus::failed;
  m.why = fmt::format("{} of {} elements are wrong, the first: {}", stream.checked->wrong,
                      stream.checked->checked, stream.checked->first);
}

// Latencies; sizes take turns, so that they spread by design: only too few are noisy.
model::Measurement latency(const Report& report, const StreamResult& stream, const char* name,
                           const std::vector<Done>& all) {
  auto m = blank(report, stream, name, "seconds");
  m.samples = seconds_of(all);
  if (m.samples.empty()) {
    m.status = model::MeasureStatus::waived;
    m.why = "no operation ended";
    return m;
  }
  measure::summarise(m, {1e9, 1e9, 3});
  fail_wrong(stream, m);
  const auto put = [&](const char* key, double value) { m.extra.push_back({key, value}); };
  put("mean_seconds", mean_of(m.samples));
  put("mean_bytes", bytes_of(all) / static_cast<double>(all.size()));
  put("every_seconds", stream.plan.every_seconds);
  m.extra.push_back({"burst", static_cast<std::int64_t>(stream.plan.stream.burst)});
  if (const auto rate = achieved_gbytes_per_s(all)) put("achieved_gbytes_per_s", *rate);
  if (const auto rate = busy_gbytes_per_s(all)) put("busy_gbytes_per_s", *rate);
  Numbers late;
  for (const auto& done : all) late.push_back(std::max(0.0, done.start - done.due));
  put("late_p50_seconds", *measure::percentile_of(late, 0.5));
  put("late_p99_seconds", *measure::percentile_of(late, 0.99));
  return m;
}

model::Measurement bandwidth(const Report& report, const StreamResult& stream) {
  auto m = blank(report, stream, "mixed.bandwidth", "gbytes_per_s");
  const auto rate = achieved_gbytes_per_s(stream.together);
  if (!rate) {
    m.status = model::MeasureStatus::waived;
    m.why = "no operation ended";
    return m;
  }
  m.samples = {*rate};
  m.median = m.p1 = m.p99 = rate;
  m.expected = expected_of(stream);
  fail_wrong(stream, m);
  return m;
}

model::Measurement interference(const Report& report, const StreamResult& stream, double end) {
  auto m = blank(report, stream, "mixed.interference", "ratio");
  const auto slower = slowdown_of(stream.alone, within(stream.together, end));
  if (!slower) {
    m.status = model::MeasureStatus::waived;
    m.why = "fewer than three operations alone or beside the others";
    return m;
  }
  m.samples = {1 / slower->ratio};
  m.median = m.p1 = m.p99 = 1 / slower->ratio;
  m.ci95 = model::Interval{1 / slower->ci95.high, 1 / slower->ci95.low};
  if (m.ci95->high - m.ci95->low > 0.2 * *m.median) {
    m.status = model::MeasureStatus::noisy;
    m.why = fmt::format("the interval of {} operations is wide", slower->operations);
  }
  m.extra.push_back({"slower_by", slower->ratio});
  for (const auto& other : report.streams) {
    if (&other == &stream) continue;
    const auto beside = slowdown_of(stream.alone, overlapping(stream.together, other.together));
    if (!beside) continue;
    m.extra.push_back({"slower_beside_" + other.plan.stream.name, beside->ratio});
    m.extra.push_back(
        {"operations_beside_" + other.plan.stream.name, static_cast<std::int64_t>(beside->operations)});
  }
  return m;
}

model::Measurement interrupts(const InterruptRate& rate) {
  model::Measurement m;
  m.name = rate.kind == "nic" ? "mixed.interrupts" : "mixed.softirqs";
  m.unit = "per_second";
  m.params = {{"host", rate.host}};
  if (rate.kind == "nic") m.params.push_back({"nic", rate.nic});
  m.params.push_back({"id", rate.id});
  m.samples = {rate.per_second};
  m.median = m.p1 = m.p99 = rate.per_second;
  m.verified_how = "counted by the kernel while all streams ran";
  if (!rate.name.empty()) m.extra.push_back({"name", rate.name});
  m.extra.push_back({"busiest_cpu", static_cast<std::int64_t>(rate.busiest_cpu)});
  m.extra.push_back({"busiest_share", rate.busiest_share});
  return m;
}

}  // namespace

std::optional<Slowdown> slowdown_of(const std::vector<Done>& alone, const std::vector<Done>& together) {
  if (alone.size() < 3 || together.size() < 3) return std::nullopt;
  const auto before = by_size(alone), after = by_size(together);
  const auto ratio = ratio_between(before, after, nullptr);
  if (!ratio) return std::nullopt;
  measure::Random random(0x6d697865);
  Numbers ratios;
  for (std::size_t i = 0; i < kResamples; ++i)
    if (const auto one = ratio_between(before, after, &random)) ratios.push_back(*one);
  Slowdown out;
  out.ratio = *ratio;
  out.ci95 = {*measure::percentile_of(ratios, 0.025), *measure::percentile_of(ratios, 0.975)};
  out.operations = together.size();
  return out;
}

std::vector<Done> within(const std::vector<Done>& done, double end) {
  std::vector<Done> out;
  std::ranges::copy_if(done, std::back_inserter(out), [end](const Done& one) { return one.start <= end; });
  return out;
}

double common_end(const std::vector<StreamResult>& streams) {
  double end = 1e18;
  for (const auto& stream : streams)
    if (!stream.together.empty()) end = std::min(end, stream.together.back().end);
  return end;
}

std::vector<Done> overlapping(const std::vector<Done>& mine, const std::vector<Done>& other) {
  std::vector<Done> out;
  std::size_t at = 0;  // both are in order of their starts and do not overlap among themselves
  for (const auto& one : mine) {
    while (at < other.size() && other[at].end <= one.start) ++at;
    if (at < other.size() && other[at].start < one.end) out.push_back(one);
  }
  return out;
}

std::optional<double> achieved_gbytes_per_s(const std::vector<Done>& done) {
  if (done.empty() || done.back().end <= done.front().start) return std::nullopt;
  return bytes_of(done) / (done.back().end - done.front().start) * 1e-9;
}

std::optional<double> busy_gbytes_per_s(const std::vector<Done>& done) {
  const auto seconds = seconds_of(done);
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  if (sum <= 0) return std::nullopt;
  return bytes_of(done) / sum * 1e-9;
}

std::optional<model::Expected> expected_of(const StreamResult& stream) {
  const auto alone = busy_gbytes_per_s(stream.alone), reached = achieved_gbytes_per_s(stream.alone);
  if (!alone || !reached) return std::nullopt;
  const double offered = stream.plan.offered_gbytes_per_s();
  // The rate that the same schedule reached alone: what is asked for, or what the stream can.
  model::Expected out;
  out.low = 0.9 * *reached, out.high = 1.1 * *reached;
  out.why = offered > 0 ? fmt::format(
                              "{:.3g} GB/s with the same rate alone ({:.3g} asked for, {:.3g} while busy) "
                              "+- 10 %",
                              *reached, offered, *alone)
                        : fmt::format("{:.3g} GB/s alone +- 10 %", *reached);
  out.source = "measured in this run";
  return out;
}

std::vector<model::Measurement> measurements_of(const Report& report) {
  std::vector<model::Measurement> out;
  const double end = common_end(report.streams);
  for (const auto& stream : report.streams) {
    out.push_back(latency(report, stream, "mixed.alone", stream.alone));
    out.push_back(latency(report, stream, "mixed.together", stream.together));
    out.push_back(bandwidth(report, stream));
    out.push_back(interference(report, stream, end));
  }
  for (const auto& rate : report.interrupts) out.push_back(interrupts(rate));
  return out;
}

}  // namespace topotune::mixed
