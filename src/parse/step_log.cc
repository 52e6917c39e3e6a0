#include "parse/step_log.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace topotune::parse {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kSchema = "topotune.step/1";
constexpr std::size_t kMostLine = 1 << 16, kMostSteps = 1000000, kMostText = 256u << 20;

Result<Json> object_of(std::string_view line, int number) {
  if (line.size() > kMostLine) return fail_at(number, "a line is longer than {} bytes", kMostLine);
  // Flat objects only: nothing nests deeper than a hostile text may.
  if (line.find_first_of("[{", 1) != std::string_view::npos)
    return fail_at(number, "a line is one flat JSON object");
  auto json = Json::parse(line, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return fail_at(number, "not a JSON object");
  return json;
}

std::string text_in(const Json& json, const char* name) {
  const auto at = json.find(name);
  return at != json.end() && at->is_string() ? printable(at->get<std::string>().substr(0, 200))
                                             : std::string();
}

Result<int> whole_in(const Json& json, const char* name, int number) {
  const auto at = json.find(name);
  if (at == json.end() || !at->is_number_integer()) return fail_at(number, "'{}' is no whole number", name);
  const auto value = at->get<double>();
  if (value < 0 || value > 1e9) return fail_at(number, "'{}' is out of range", name);
  return static_cast<int>(value);
}

// A number that is not negative, or nothing for null and a missing one.
Result<std::optional<double>> number_in(const Json& json, const char* name, int number) {
  const auto at = json.find(name);
  if (at == json.end() || at->is_null()) return std::optional<double>();
  if (!at->is_number()) return fail_at(number, "'{}' is no number", name);
  const auto value = at->get<double>();
  if (!std::isfinite(value) || value < 0 || value > 1e18)
    return fail_at(number, "'{}' is out of range", name);
  return std::optional(value);
}

Result<void> read_head(const Json& json, int number, StepLog& log) {
  if (text_in(json, "schema") != kSchema) return fail_at(number, "the first line is no {} head", kSchema);
  log.kind = text_in(json, "kind"), log.op = text_in(json, "op");
  log.framework = text_in(json, "framework"), log.backend = text_in(json, "backend");
  const auto rank = whole_in(json, "rank", number), ranks = whole_in(json, "ranks", number);
  if (!rank) return tl::unexpected(rank.error());
  if (!ranks) return tl::unexpected(ranks.error());
  if (*ranks < 1 || *rank >= *ranks) return fail_at(number, "rank {} of {} is none", *rank, *ranks);
  log.rank = *rank, log.ranks = *ranks;
  return {};
}

Result<TrainingStep> step_of(const Json& json, int number) {
  TrainingStep step;
  const auto index = whole_in(json, "step", number);
  if (!index) return tl::unexpected(index.error());
  step.step = *index;
  const auto seconds = number_in(json, "seconds", number);
  if (!seconds) return tl::unexpected(seconds.error());
  if (!*seconds || **seconds <= 0) return fail_at(number, "a step has no 'seconds'");
  step.seconds = **seconds;
  struct Field {
    const char* name;
    std::optional<double>& value;
  };
  for (const auto& field :
       {Field{"compute_seconds", step.compute}, Field{"dataloader_seconds", step.dataloader},
        Field{"communication_seconds", step.communication},
        Field{"exposed_communication_seconds", step.exposed},
        Field{"communication_bytes", step.communication_bytes}, Field{"communication_calls", step.calls}}) {
    const auto value = number_in(json, field.name, number);
    if (!value) return tl::unexpected(value.error());
    field.value = *value;
  }
  return step;
}

}  // namespace

Result<StepLog> parse_step_log(std::string_view text) {
  if (text.size() > kMostText) return fail(Errc::too_large, "a step log is at most 256 MiB");
  StepLog log;
  int number = 0;
  bool headed = false;
  for (const auto line : lines(text)) {
    ++number;
    const auto body = trim(line);
    if (body.empty()) continue;
    const auto json = object_of(body, number);
    if (!json) return tl::unexpected(json.error());
    if (!headed) {
      if (auto ok = read_head(*json, number, log); !ok) return tl::unexpected(ok.error());
      headed = true;
      continue;
    }
    if (log.steps.size() == kMostSteps) return fail_at(number, "too many steps");
    auto step = step_of(*json, number);
    if (!step) return tl::unexpected(step.error());
    log.steps.push_back(*step);
  }
  if (log.steps.empty()) return fail_at(std::max(number, 1), "no step");
  return log;
}

}  // namespace topotune::parse
