#include "model/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace topotune::model {

namespace {
constexpr std::array<const char*, 4> kStatuses{"ok", "noisy", "waived", "failed"};
}

const char* name_of(MeasureStatus status) { return kStatuses[static_cast<std::size_t>(status)]; }

std::optional<MeasureStatus> measure_status_from(const std::string& name) {
  for (std::size_t i = 0; i < kStatuses.size(); ++i) {
    if (name == kStatuses[i]) return static_cast<MeasureStatus>(i);
  }
  return std::nullopt;
}

bool larger_is_better(std::string_view unit) {
  constexpr std::array<std::string_view, 7> kTimes{"seconds", "s",  "ms",          "us",
                                                   "ns",      "µs", "microseconds"};
  return std::ranges::find(kTimes, unit) == kTimes.end();
}

const char* name_of(Assessment assessment) {
  constexpr std::array<const char*, 4> names{"unknown", "as expected", "below", "above"};
  return names[static_cast<std::size_t>(assessment)];
}

const char* name_of(Trend trend) {
  constexpr std::array<const char*, 4> names{"same", "better", "worse", "unclear"};
  return names[static_cast<std::size_t>(trend)];
}

std::string text_of(const ParamValue& value) {
  return std::visit([](const auto& v) { return fmt::format("{}", v); }, value);
}

std::optional<double> ratio_of(const Measurement& m) {
  if (!m.median || !m.expected || m.expected->value() <= 0) return std::nullopt;
  return *m.median / m.expected->value();
}

Assessment assessment_of(const Measurement& m) {
  if (!m.median || !m.expected) return Assessment::unknown;
  if (*m.median < m.expected->low) return Assessment::below;
  return *m.median > m.expected->high ? Assessment::above : Assessment::as_expected;
}

std::string key_of(const Measurement& m) {
  std::string key = m.name;
  for (const auto& [name, value] : m.params) key += fmt::format(" {}={}", name, text_of(value));
  return key;
}

Verdict verdict_of(const MeasurementRun& run) {
  const auto has = [&](MeasureStatus status) {
    return std::ranges::any_of(run.results, [&](const auto& m) { return m.status == status; });
  };
  const auto said = [&](Severity severity) {
    return std::ranges::any_of(run.judgements, [&](const auto& j) { return j.severity == severity; });
  };
  if (has(MeasureStatus::failed) || said(Severity::error)) return Verdict::error;
  if (said(Severity::warn)) return Verdict::warn;
  const auto is_host_number = [](const auto& m) {
    return m.name.starts_with("host.") && m.status == MeasureStatus::ok;
  };
  if (run.suite == "all" && std::ranges::none_of(run.results, is_host_number)) return Verdict::unknown;
  // Noise is about the measurement, not about the machine: no reason to take a node out, and no proof of
  // health alone.
  if (!has(MeasureStatus::ok)) return Verdict::unknown;
  return has(MeasureStatus::noisy) ? Verdict::info : Verdict::ok;
}

}  // namespace topotune::model
