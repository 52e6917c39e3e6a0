#include "parse/log_costs.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "parse/document.h"

namespace topotune::parse {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kSchema = "topotune.nccl-log/1";
constexpr std::size_t kMost = 4096;

const Json* field(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(name);
  return at == object.end() ? nullptr : &*at;
}

std::optional<double> number(const Json& object, const char* name) {
  const auto* value = field(object, name);
  return value != nullptr && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

std::optional<model::LogCost> cost_of(const Json& json) {
  const auto* settings = field(json, "settings");
  if (settings == nullptr || !settings->is_array()) return std::nullopt;
  model::LogCost out;
  for (const auto& one : *settings)
    if (one.is_string() && out.settings.size() < 16)
      out.settings.push_back(printable(one.get<std::string>()));
  if (const auto bytes = number(json, "bytes"); bytes && *bytes > 0 && *bytes < 1e18)
    out.bytes = static_cast<std::uint64_t>(*bytes);
  out.with_gbytes_per_s = number(json, "with_bus_gbytes_per_s");
  out.without_gbytes_per_s = number(json, "without_bus_gbytes_per_s");
  out.with_seconds = number(json, "with_seconds");
  out.without_seconds = number(json, "without_seconds");
  return out;
}

}  // namespace

bool looks_like_log_document(std::string_view text) {
  return looks_like_document(text, kSchema);
}

Result<LogCosts> parse_log_costs(std::string_view text) {
  const auto json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return fail(Errc::malformed, "not a JSON document");
  const auto* schema = field(json, "schema");
  if (schema == nullptr || *schema != kSchema) return fail(Errc::malformed, "not a {} document", kSchema);
  LogCosts out;
  const auto* measured = field(json, "measured");
  const auto* costs = measured == nullptr ? nullptr : field(*measured, "costs");
  if (costs != nullptr && costs->is_array())
    for (const auto& one : *costs)
      if (auto cost = cost_of(one); cost && out.costs.size() < kMost) out.costs.push_back(std::move(*cost));
  const auto* ranks = field(json, "ranks");
  if (ranks != nullptr && ranks->is_array())
    for (const auto& rank : *ranks)
      if (const auto* bdf = field(rank, "bdf"); bdf != nullptr && bdf->is_string() && out.bdfs.size() < kMost)
        out.bdfs.push_back(bdf->get<std::string>());
  return out;
}

}  // namespace topotune::parse
