#include "measure/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "measure/statistics.h"

namespace topotune::measure {

namespace {

using model::Judgement;
using model::Measurement;
using model::Severity;

std::string subject_of(const Measurement& m) {
  std::string src, dst;
  for (const auto& p : m.params) {
    if (p.name == "src") src = model::text_of(p.value);
    if (p.name == "dst") dst = model::text_of(p.value);
    if (p.name == "gpu") return model::text_of(p.value);
  }
  if (!src.empty()) return src + "->" + dst;
  return m.name;
}

// Cells of one group have equal keys but for the ends.
std::string group_of(const Measurement& m) {
  std::string key = m.name;
  for (const auto& p : m.params) {
    if (p.name != "src" && p.name != "dst" && p.name != "gpu")
      key += fmt::format(" {}={}", p.name, model::text_of(p.value));
  }
  return m.expected ? key + fmt::format(" {:.3f}", m.expected->value()) : key;
}

bool is_link_cell(const Measurement& m) {
  const bool kind = m.name.starts_with("p2p.write") || m.name.starts_with("p2p.read") ||
                    m.name.starts_with("p2p.both") || m.name == "host.h2d" || m.name == "host.d2h";
  return kind && m.median && m.ci95 && m.expected;
}

// Below which a cell of the group is slow.
double limit_of(std::span<const Measurement* const> cells) {
  std::vector<double> medians, deviations;
  for (const auto* cell : cells) medians.push_back(*cell->median);
  if (cells.size() < 4) return *std::ranges::max_element(medians) * (1 - 0.012);
  const double middle = *median_of(medians);
  for (const double m : medians) deviations.push_back(std::abs(m - middle));
  const double scale = std::max(1.4826 * *median_of(deviations), 0.002 * middle);
  return middle - std::max(0.01 * middle, 5 * scale);
}

}  // namespace

std::vector<Judgement> judge_equal_links(std::span<const Measurement> results) {
  std::map<std::string, std::vector<const Measurement*>> groups;
  for (const auto& m : results) {
    if (is_link_cell(m)) groups[group_of(m)].push_back(&m);
  }
  std::vector<Judgement> out;
  for (const auto& [key, cells] : groups) {
    if (cells.size() < 2) continue;
    const double limit = limit_of(cells);
    std::vector<double> medians;
    for (const auto* cell : cells) medians.push_back(*cell->median);
    const double normal = cells.size() < 4 ? *std::ranges::max_element(medians) : *median_of(medians);
    for (const auto* cell : cells) {
      if (*cell->median >= limit || cell->ci95->high >= normal) continue;
      out.push_back({Severity::warn, subject_of(*cell),
                     fmt::format("{} gives {:.1f} GB/s, {:.1f} % less than the {:.1f} GB/s of {} equal links",
                                 cell->name, *cell->median, (1 - *cell->median / normal) * 100, normal,
                                 cells.size() - 1)});
    }
  }
  return out;
}

std::vector<Judgement> judge_expected(std::span<const Measurement> results) {
  std::vector<Judgement> out;
  for (const auto& m : results) {
    const auto assessment = assessment_of(m);
    if (assessment != model::Assessment::below && assessment != model::Assessment::above) continue;
    const bool below = assessment == model::Assessment::below;
    const double bound = below ? m.expected->low : m.expected->high;
    const double off = std::abs(*m.median / bound - 1) * 100;
    // Within half a percent of the range: the efficiency file is not more exact than that.
    if (off < 0.5) continue;
    out.push_back(
        {below ? Severity::warn : Severity::info, subject_of(m),
         fmt::format("{} gives {:.1f} GB/s, {:.1f} % {} the expected {:.1f}-{:.1f} ({})", m.name, *m.median,
                     off, below ? "under" : "over", m.expected->low, m.expected->high, m.expected->why)});
  }
  return out;
}

std::vector<Judgement> judge_moments(std::span<const model::GpuMoment> before,
                                     std::span<const model::GpuMoment> after) {
  std::vector<Judgement> out;
  for (const auto& m : before) {
    if (m.other_processes && !m.other_processes->empty())
      out.push_back(
          {Severity::warn, m.gpu,
           fmt::format("{} other process{} used it at the start (pid {}): the numbers are shared with them",
                       m.other_processes->size(), m.other_processes->size() == 1 ? "" : "es",
                       m.other_processes->front())});
  }
  constexpr std::uint64_t kHardware = 0x8 | 0x40 | 0x80, kSoftware = 0x4 | 0x20;
  for (const auto& m : after) {
    const auto reasons = m.throttle_reasons.value_or(0);
    if ((reasons & kHardware) != 0)
      out.push_back({Severity::warn, m.gpu,
                     "the hardware slowed it down at the end of the run (heat, power or a fault)"});
    else if ((reasons & kSoftware) != 0)
      out.push_back({Severity::info, m.gpu,
                     "its clocks were held down at the end of the run (power cap or temperature)"});
  }
  return out;
}

namespace {

// 95 % interval of median(after) / median(before), by bootstrap of both; the bare ratio where samples are
// few.
model::Interval ratio_interval(const Measurement& before, const Measurement& after) {
  const double ratio = *after.median / *before.median;
  const auto a = median_ci95(before.samples), b = median_ci95(after.samples);
  // The ends of independent intervals combine by the root of their squares.
  const auto half = [](const std::optional<model::Interval>& ci, double median) {
    return ci ? relative_half_width(*ci, median) : 0.0;
  };
  // (hypot would need a newer C library.)
  const double x = half(a, *before.median), y = half(b, *after.median);
  const double width = std::sqrt(x * x + y * y);
  return {ratio * (1 - width), ratio * (1 + width)};
}

model::Trend change_of(const model::Comparison& c, bool higher_is_better, double tolerance) {
  const bool up = c.ratio > 1 + tolerance && c.ci95.low > 1;
  const bool down = c.ratio < 1 - tolerance && c.ci95.high < 1;
  if (up) return higher_is_better ? model::Trend::better : model::Trend::worse;
  if (down) return higher_is_better ? model::Trend::worse : model::Trend::better;
  const bool narrow = c.ci95.low >= 1 - 2 * tolerance && c.ci95.high <= 1 + 2 * tolerance;
  return narrow ? model::Trend::same : model::Trend::unclear;
}

}  // namespace

model::ComparedRuns compare_runs(const model::MeasurementRun& before, const model::MeasurementRun& after,
                                 double tolerance) {
  model::ComparedRuns out;
  std::map<std::string, const Measurement*> old;
  for (const auto& m : before.results) {
    if (m.median && *m.median > 0) old.emplace(key_of(m), &m);
  }
  for (const auto& m : after.results) {
    if (!m.median || *m.median <= 0) continue;
    const auto key = key_of(m);
    const auto found = old.find(key);
    if (found == old.end()) {
      out.only_after.push_back(key);
      continue;
    }
    model::Comparison c{key, m.unit, *found->second->median, *m.median, 1, {}, model::Trend::unclear};
    c.ratio = c.after / c.before;
    c.ci95 = ratio_interval(*found->second, m);
    c.change = change_of(c, m.higher_is_better(), tolerance);
    out.rows.push_back(c);
    old.erase(found);
  }
  for (const auto& [key, m] : old) out.only_before.push_back(key);
  return out;
}

model::MeasurementRun fleet_median(std::span<const model::MeasurementRun> runs) {
  if (runs.size() == 1) return runs[0];
  model::MeasurementRun out;
  out.suite = "baseline";
  std::map<std::string, std::vector<double>> medians;
  std::map<std::string, const Measurement*> first;
  for (const auto& run : runs) {
    for (const auto& m : run.results) {
      if (!m.median) continue;
      medians[key_of(m)].push_back(*m.median);
      first.emplace(key_of(m), &m);
    }
  }
  for (const auto& [key, values] : medians) {
    Measurement m;
    m.name = first[key]->name;
    m.params = first[key]->params;
    m.unit = first[key]->unit;
    m.samples = values;
    m.median = median_of(values);
    out.results.push_back(std::move(m));
  }
  return out;
}

}  // namespace topotune::measure
