#include "parse/measurement.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

using Json = nlohmann::json;  // sorted keys: the order of parameters does not matter

constexpr std::string_view kSchema = "topotune.measurement/";

std::string text_of(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? printable(at->get_ref<const std::string&>()) : std::string();
}

std::vector<double> samples_of(const Json& json) {
  std::vector<double> out;
  const auto at = json.find("samples");
  if (at == json.end() || !at->is_array()) return out;
  for (const auto& one : *at)
    if (one.is_number() && std::isfinite(one.get<double>())) out.push_back(one.get<double>());
  return out;
}

std::optional<double> median_of(const Json& json, std::vector<double> samples) {
  const auto at = json.find("median");
  if (at != json.end() && at->is_number() && std::isfinite(at->get<double>())) return at->get<double>();
  if (samples.empty()) return std::nullopt;
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::ranges::nth_element(samples, middle);
  return *middle;
}

std::optional<MeasuredResult> result_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  MeasuredResult out;
  out.unit = text_of(json, "unit");
  out.status = text_of(json, "status");
  const auto samples = samples_of(json);
  const auto median = median_of(json, samples);
  const std::string name = text_of(json, "name");
  if (!median || name.empty()) return std::nullopt;
  out.median = *median;
  out.samples = std::max<std::size_t>(samples.size(), 1);
  out.key = name;
  if (const auto params = json.find("params"); params != json.end() && params->is_object())
    for (const auto& [key, value] : params->items())
      out.key += fmt::format(" {}={}", printable(key),
                             value.is_string() ? text_of(*params, key.c_str()) : value.dump());
  out.key = out.key.substr(0, 300) + " (" + out.unit + ")";
  return out;
}

}  // namespace

bool looks_like_measurement(std::string_view text) {
  text = text.substr(0, 4096);
  const auto brace = text.find_first_not_of(" \t\r\n");
  return brace != std::string_view::npos && text[brace] == '{' &&
         text.find(kSchema) != std::string_view::npos;
}

Result<std::vector<MeasuredResult>> parse_measurement(std::string_view text) {
  const auto json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !text_of(json, "schema").starts_with(kSchema))
    return not_a("topotune.measurement");
  const auto results = json.find("results");
  if (results == json.end() || !results->is_array()) return fail(Errc::malformed, "no list of results");
  if (results->size() > kMaxRecords) return too_many("results", 1);
  std::vector<MeasuredResult> out;
  for (const auto& one : *results)
    if (auto result = result_of(one)) out.push_back(std::move(*result));
  return out;
}

bool larger_is_better(std::string_view unit) {
  return unit != "seconds" && unit != "s" && unit != "us" && unit != "ms" && unit != "ns" &&
         unit != "microseconds";
}

}  // namespace topotune::parse
