// Misuse of benchmarks, seen in their results. nccl-tests doc/PERFORMANCE.md, perftest README, NVML nvml.h.
#include "checks/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "checks/mutation.h"

namespace topotune::checks {
namespace {

using model::Evidence;
using model::Measurement;
using model::MeasureStatus;
using Findings = std::vector<model::Finding>;

constexpr std::size_t kShown = 8;  // results named in one finding
constexpr std::int64_t kMiB = 1 << 20;

struct View {
  const model::MeasurementRun& run;
  const std::string& name;
  const LimitOf& limit_of;

  std::optional<LinkLimit> limit(const Measurement& m) const { return limit_of ? limit_of(m) : std::nullopt; }
};

const model::ParamValue* value_of(const std::vector<model::Param>& params, std::string_view name) {
  const auto at = std::ranges::find(params, name, &model::Param::name);
  return at == params.end() ? nullptr : &at->value;
}

std::optional<double> number_of(const Measurement& m, std::string_view name) {
  const auto* value = value_of(m.params, name);
  if (value == nullptr) value = value_of(m.extra, name);
  if (value == nullptr) return std::nullopt;
  if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(value)) return *real;
  return std::nullopt;
}

bool was_measured(const Measurement& m) {
  return m.median && m.status != MeasureStatus::waived && m.status != MeasureStatus::failed;
}

bool is_rate(const Measurement& m) { return m.unit == "gbytes_per_s" || m.unit == "gbits_per_s"; }
double gbytes(const Measurement& m) { return m.unit == "gbits_per_s" ? *m.median / 8 : *m.median; }

// One finding for all results that a rule names; the first gives the observed text.
class Found {
 public:
  explicit Found(const View& view) : view_(view) {}

  void add(const Measurement& m, std::string expected, std::string observed) {
    if (keys_.empty()) expected_ = std::move(expected), observed_ = observed;
    if (keys_.size() < kShown) evidence_.push_back({view_.name, model::key_of(m) + ": " + observed});
    keys_.push_back(model::key_of(m));
  }

  Outcome outcome(std::string_view rule) {
    if (keys_.empty()) return Clean{};
    auto one = finding(rule, keys_[0], std::move(expected_),
                       keys_.size() < 2 ? std::move(observed_)
                                        : fmt::format("{}; {} results in all", observed_, keys_.size()),
                       std::move(evidence_));
    one.file = view_.name;
    return Findings{std::move(one)};
  }

 private:
  const View& view_;
  std::vector<std::string> keys_;
  std::string expected_, observed_;
  std::vector<Evidence> evidence_;
};

// ---- BENCH01

Outcome one_rank(const View& v) {
  Found found(v);
  bool any = false;
  for (const auto& m : v.run.results) {
    const auto ranks = number_of(m, "ranks");
    if (!m.name.starts_with("coll.") || !ranks || !was_measured(m)) continue;
    any = true;
    if (*ranks == 1) found.add(m, "two ranks or more", "1 rank");
  }
  if (!any) return NotEvaluated{"no collective in this measurement"};
  return found.outcome("BENCH01");
}

// ---- BENCH02

bool is_average(std::string_view name) {
  return name.find("avg") != std::string_view::npos || name.find("average") != std::string_view::npos;
}

// A rate over all sizes beside results of several sizes.
Outcome mean_over_sizes(const View& v) {
  Found found(v);
  std::set<double> sizes;
  for (const auto& m : v.run.results)
    if (const auto bytes = number_of(m, "bytes")) sizes.insert(*bytes);
  for (const auto& m : v.run.results)
    if (is_rate(m) && was_measured(m) && is_average(m.name) && !number_of(m, "bytes") && sizes.size() != 1)
      found.add(m, "the largest size by itself",
                fmt::format("{:.1f} GB/s as a mean over all sizes", gbytes(m)));
  return found.outcome("BENCH02");
}

// ---- BENCH03

Outcome beyond_the_link(const View& v) {
  constexpr double kClock = 1.02;  // nominal rates and clocks agree to two percent
  Found found(v);
  bool any = false;
  for (const auto& m : v.run.results) {
    if (!is_rate(m) || !was_measured(m)) continue;
    const auto limit = v.limit(m);
    if (!limit || !limit->link_rate) continue;
    any = true;
    if (gbytes(m) > *limit->link_rate * kClock)
      found.add(m, fmt::format("at most {:.1f} GB/s: {}", *limit->link_rate, limit->why),
                fmt::format("{:.1f} GB/s", gbytes(m)));
  }
  if (!any) return NotEvaluated{"the links behind the results: not known"};
  return found.outcome("BENCH03");
}

// ---- BENCH04

Outcome foreign_threshold(const View& v) {
  constexpr double kApart = 0.2;
  Found found(v);
  bool any = false;
  for (const auto& m : v.run.results) {
    if (!m.expected || m.expected->value() <= 0) continue;
    const auto limit = v.limit(m);
    if (!limit || !limit->expected || limit->expected->value() <= 0) continue;
    any = true;
    const double ratio = m.expected->value() / limit->expected->value();
    if (std::abs(ratio - 1) > kApart)
      found.add(m, fmt::format("{:.1f} GB/s: {}", limit->expected->value(), limit->expected->why),
                fmt::format("{:.1f} GB/s is expected there, {:.0f} % of what the links give",
                            m.expected->value(), 100 * ratio));
  }
  if (!any) return NotEvaluated{"thresholds of results whose links are known: none in this measurement"};
  return found.outcome("BENCH04");
}

// ---- BENCH05

// Hardware slowdown, hardware thermal slowdown, power brake (nvmlClocksThrottleReasons).
constexpr std::uint64_t kHardwareSlowdown = 0x08 | 0x40 | 0x80;

// How far the bad side of the samples lies from the median, as a share of it.
std::optional<double> tail_of(const Measurement& m) {
  const auto& bad = m.higher_is_better() ? m.p1 : m.p99;
  if (!bad || !m.median || *m.median <= 0) return std::nullopt;
  return std::abs(*bad - *m.median) / *m.median;
}

// A distribution is wanted where a thousand single times were taken.
bool is_histogram(const Measurement& m) { return m.unit == "seconds" && m.samples.size() >= 1000; }

void disturbed(const View& v, Found& found) {
  for (const auto* moments : {&v.run.before, &v.run.after})
    for (const auto& one : *moments) {
      Measurement gpu;
      gpu.name = one.gpu;
      if (one.other_processes && !one.other_processes->empty())
        found.add(gpu, "no other process on the GPU",
                  fmt::format("{} other processes", one.other_processes->size()));
      if (one.throttle_reasons && (*one.throttle_reasons & kHardwareSlowdown) != 0)
        found.add(gpu, "no hardware slowdown", fmt::format("throttle reasons {:#x}", *one.throttle_reasons));
    }
}

Outcome not_repeatable(const View& v) {
  constexpr std::size_t kFewest = 3;
  constexpr double kTail = 0.10;
  Found found(v);
  for (const auto& m : v.run.results) {
    if (!was_measured(m) || is_histogram(m) || m.unit == "ratio") continue;
    if (!m.samples.empty() && m.samples.size() < kFewest)
      found.add(m, "three repeats or more", fmt::format("{} samples", m.samples.size()));
    else if (const auto tail = tail_of(m); tail && *tail > kTail)
      found.add(m, "the bad tail within 10 % of the median", fmt::format("{:.0f} % away", 100 * *tail));
  }
  disturbed(v, found);
  if (v.run.results.empty()) return NotEvaluated{"no result in this measurement"};
  return found.outcome("BENCH05");
}

// ---- BENCH06

// The port's rate in Gb/s: as the result says, else from its expected value.
std::optional<double> port_rate(const Measurement& m) {
  for (const char* name : {"port_gbits_per_s", "link_gbits_per_s"})
    if (const auto rate = number_of(m, name)) return rate;
  return std::nullopt;
}

Outcome one_queue_pair(const View& v) {
  constexpr double kFast = 400, kFull = 0.9;  // Gb/s
  Found found(v);
  bool any = false;
  for (const auto& m : v.run.results) {
    const auto pairs = number_of(m, "queue_pairs"), bytes = number_of(m, "bytes"), rate = port_rate(m);
    if (!is_rate(m) || !was_measured(m) || !pairs || !bytes || !rate) continue;
    any = true;
    const double gbits = gbytes(m) * 8;
    if (*pairs == 1 && *rate >= kFast && *bytes >= static_cast<double>(kMiB) && gbits < kFull * *rate)
      found.add(m, fmt::format("{:.0f} Gb/s with several queue pairs", *rate),
                fmt::format("{:.0f} Gb/s with one queue pair at {:.0f} bytes", gbits, *bytes));
  }
  if (!any) return NotEvaluated{"no network result that tells its queue pairs and its port's rate"};
  return found.outcome("BENCH06");
}

// ---- ACS05

// What the suites say of a pattern that its owner did not read back as it was written.
bool arrived_wrong(const Measurement& m) {
  return m.status == MeasureStatus::failed && (m.why.find("arrived wrong") != std::string::npos ||
                                               m.verified_how.find("arrived wrong") != std::string::npos);
}

Outcome wrong_peer_data(const View& v) {
  Found found(v);
  bool any = false;
  for (const auto& m : v.run.results) {
    if (!m.name.starts_with("p2p.") && !m.name.starts_with("gdr.")) continue;
    any = any || m.verified || arrived_wrong(m);
    if (arrived_wrong(m))
      found.add(m, "the pattern that was written", m.why.empty() ? m.verified_how : m.why);
  }
  if (!any) return NotEvaluated{"no verified transfer between GPUs in this measurement"};
  return found.outcome("ACS05");
}

struct BenchRule {
  std::string_view id;
  Outcome (*evaluate)(const View&);
};
constexpr BenchRule kRules[] = {{"ACS05", wrong_peer_data},     {"BENCH01", one_rank},
                                {"BENCH02", mean_over_sizes},   {"BENCH03", beyond_the_link},
                                {"BENCH04", foreign_threshold}, {"BENCH05", not_repeatable},
                                {"BENCH06", one_queue_pair}};

}  // namespace

model::Diagnosis judge_measurement(const model::MeasurementRun& run, const std::string& name,
                                   const LimitOf& limit_of) {
  const View view{run, name, limit_of};
  model::Diagnosis out;
  for (const auto& rule : kRules) {
    auto outcome = rule.evaluate(view);
    mutate(rule.id, outcome);
    if (const auto* why = std::get_if<NotEvaluated>(&outcome)) {
      out.not_checked.push_back({std::string(rule.id), why->why});
      continue;
    }
    out.checked.emplace_back(rule.id);
    if (auto* found = std::get_if<Findings>(&outcome))
      std::ranges::move(*found, std::back_inserter(out.findings));
  }
  sort_findings(out.findings);
  return out;
}

}  // namespace topotune::checks
