#include "parse/measurement_run.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace topotune::parse {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kMaxItems = 1'000'000;

const Json* field(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(name);
  return it == object.end() ? nullptr : &*it;
}

std::string string_of(const Json& object, const char* name) {
  const auto* value = field(object, name);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

std::optional<double> number_of(const Json& object, const char* name) {
  const auto* value = field(object, name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::vector<model::Param> params_of(const Json& object, const char* name) {
  std::vector<model::Param> out;
  const auto* params = field(object, name);
  if (params == nullptr || !params->is_object()) return out;
  for (const auto& [key, value] : params->items()) {
    if (value.is_number_integer())
      out.push_back({key, value.get<std::int64_t>()});
    else if (value.is_number())
      out.push_back({key, value.get<double>()});
    else if (value.is_string())
      out.push_back({key, value.get<std::string>()});
  }
  return out;
}

std::vector<double> samples_of(const Json& object, std::size_t& budget) {
  std::vector<double> out;
  const auto* samples = field(object, "samples");
  if (samples == nullptr || !samples->is_array()) return out;
  for (const auto& s : *samples) {
    if (budget == 0) break;
    if (s.is_number()) out.push_back(s.get<double>()), --budget;
  }
  return out;
}

std::optional<model::Interval> interval_of(const Json& object) {
  const auto* ci = field(object, "ci95");
  if (ci == nullptr || !ci->is_array() || ci->size() != 2 || !(*ci)[0].is_number() || !(*ci)[1].is_number())
    return std::nullopt;
  return model::Interval{(*ci)[0].get<double>(), (*ci)[1].get<double>()};
}

std::optional<model::Expected> expected_of(const Json& object) {
  const auto* e = field(object, "expected");
  if (e == nullptr || !e->is_object()) return std::nullopt;
  const auto value = number_of(*e, "value");
  const auto low = number_of(*e, "low"), high = number_of(*e, "high");
  if (!value && !(low && high)) return std::nullopt;
  return model::Expected{low ? *low : *value, high ? *high : *value, string_of(*e, "why"),
                         string_of(*e, "source")};
}

model::Measurement measurement_of(const Json& json, std::size_t& budget) {
  model::Measurement m;
  m.name = string_of(json, "name");
  m.params = params_of(json, "params");
  m.unit = string_of(json, "unit");
  m.samples = samples_of(json, budget);
  m.median = number_of(json, "median");
  m.p1 = number_of(json, "p1");
  m.p99 = number_of(json, "p99");
  m.p999 = number_of(json, "p99_9");
  m.ci95 = interval_of(json);
  m.expected = expected_of(json);
  m.status = model::measure_status_from(string_of(json, "status")).value_or(model::MeasureStatus::failed);
  m.why = string_of(json, "why");
  const auto* verified = field(json, "verified");
  m.verified = verified != nullptr && verified->is_boolean() && verified->get<bool>();
  m.verified_how = string_of(json, "verified_how");
  m.extra = params_of(json, "extra");
  return m;
}

}  // namespace

Result<model::MeasurementRun> parse_measurement_run(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return fail(Errc::malformed, "not a JSON document");
  const auto schema = string_of(json, "schema");
  if (schema != "topotune.measurement/1")
    return fail(Errc::unrecognised, "its schema is {}, not topotune.measurement/1",
                schema.empty() ? "not given" : "'" + printable(schema.substr(0, 60)) + "'");
  const auto* results = field(json, "results");
  if (results == nullptr || !results->is_array()) return fail(Errc::malformed, "it has no list of results");
  if (results->size() > kMaxItems) return fail(Errc::too_large, "more than {} results", kMaxItems);
  model::MeasurementRun run;
  run.suite = string_of(json, "suite");
  run.date = string_of(json, "date");
  run.command = string_of(json, "command");
  run.seconds = number_of(json, "seconds").value_or(0);
  std::size_t budget = kMaxItems;
  for (const auto& one : *results) {
    if (one.is_object()) run.results.push_back(measurement_of(one, budget));
  }
  if (const auto* machine = field(json, "machine"); machine != nullptr && machine->is_object()) {
    for (const auto& [key, value] : machine->items())
      run.machine.emplace_back(key, value.is_string() ? value.get<std::string>() : "");
  }
  return run;
}

}  // namespace topotune::parse
