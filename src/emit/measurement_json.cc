#include "emit/measurement_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace topotune::emit {
namespace {

using Json = nlohmann::ordered_json;

// Seven digits: more than any clock gives, and the file stays small.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.7g}", value).c_str(), nullptr);
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json number_or_null(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }
Json text(const std::string& value) { return value.empty() ? Json(nullptr) : Json(printable(value)); }

Json value_of(const model::ParamValue& value) {
  if (const auto* s = std::get_if<std::string>(&value)) return printable(*s);
  if (const auto* i = std::get_if<std::int64_t>(&value)) return *i;
  return number(std::get<double>(value));
}

Json object_of(const std::vector<model::Param>& params) {
  Json out = Json::object();
  for (const auto& p : params) out[p.name] = value_of(p.value);
  return out;
}

Json expected_of(const std::optional<model::Expected>& e) {
  if (!e) return nullptr;
  return {{"value", number(e->value())},
          {"low", number(e->low)},
          {"high", number(e->high)},
          {"why", e->why},
          {"source", text(e->source)}};
}

Json of(const model::Measurement& m) {
  Json out;
  out["name"] = m.name;
  out["params"] = object_of(m.params);
  out["unit"] = m.unit;
  out["samples"] = Json::array();
  for (const double s : m.samples) out["samples"].push_back(number(s));
  out["median"] = number_or_null(m.median);
  out["p50"] = number_or_null(m.median);
  out["p1"] = number_or_null(m.p1);
  out["p99"] = number_or_null(m.p99);
  if (m.p999) out["p99_9"] = number(*m.p999);
  out["ci95"] = m.ci95 ? Json{number(m.ci95->low), number(m.ci95->high)} : Json(nullptr);
  out["outliers"] = m.outliers;
  out["expected"] = expected_of(m.expected);
  out["ratio"] = number_or_null(ratio_of(m));
  const auto assessment = assessment_of(m);
  out["assessment"] = assessment == model::Assessment::unknown ? Json(nullptr) : Json(name_of(assessment));
  out["status"] = name_of(m.status);
  out["why"] = text(m.why);
  out["verified"] = m.verified;
  out["verified_how"] = text(m.verified_how);
  if (!m.extra.empty()) out["extra"] = object_of(m.extra);
  return out;
}

Json of(const model::SizeModel& m) {
  Json out{{"name", m.name},
           {"params", object_of(m.params)},
           {"mean_error", number(m.mean_error)},
           {"segments", Json::array()}};
  for (const auto& s : m.segments)
    out["segments"].push_back(
        {{"from_bytes", s.from_bytes},
         {"to_bytes", s.to_bytes},
         {"alpha_seconds", number(s.alpha_seconds)},
         {"gbytes_per_s", s.gbytes_per_s > 0 ? number(s.gbytes_per_s) : Json(nullptr)}});
  return out;
}

Json of(const model::RunTimes& t, double seconds) {
  return {{"driver_start_seconds", number(t.driver_start)},
          {"allocation_seconds", number(t.allocation)},
          {"measuring_seconds", number(t.measuring)},
          {"verification_seconds", number(t.verification)},
          {"other_seconds", number(std::max(seconds - t.sum(), 0.0))}};
}

Json of(const std::vector<model::GpuMoment>& moments) {
  Json out = Json::array();
  for (const auto& m : moments)
    out.push_back({{"gpu", m.gpu},
                   {"sm_mhz", or_null(m.sm_mhz)},
                   {"memory_mhz", or_null(m.memory_mhz)},
                   {"temperature_c", or_null(m.temperature_c)},
                   {"throttle_reasons", or_null(m.throttle_reasons)},
                   {"other_processes", or_null(m.other_processes)}});
  return out;
}

}  // namespace

std::string measurement_json(const model::MeasurementRun& run) {
  Json out;
  out["schema"] = "topotune.measurement/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["suite"] = run.suite;
  out["date"] = text(run.date);
  out["command"] = text(run.command);
  out["machine"] = Json::object();
  for (const auto& [name, value] : run.machine) out["machine"][name] = text(value);
  out["seconds"] = number(run.seconds);
  if (run.times) out["times"] = of(*run.times, run.seconds);
  out["interrupted"] = run.interrupted;
  out["verdict"] = name_of(model::verdict_of(run));
  out["judgements"] = Json::array();
  for (const auto& j : run.judgements)
    out["judgements"].push_back(
        {{"severity", name_of(j.severity)}, {"subject", printable(j.subject)}, {"text", printable(j.text)}});
  out["before"] = of(run.before);
  out["after"] = of(run.after);
  out["models"] = Json::array();
  for (const auto& m : run.models) out["models"].push_back(of(m));
  out["results"] = Json::array();
  for (const auto& m : run.results) out["results"].push_back(of(m));
  if (!run.capture.empty()) out["capture"] = run.capture;
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace topotune::emit
