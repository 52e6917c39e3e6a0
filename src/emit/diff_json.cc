#include "emit/diff_json.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace topotune::emit {

namespace {

using Json = nlohmann::ordered_json;

Json text(const std::string& value) { return value.empty() ? Json(nullptr) : Json(printable(value)); }
Json text(const std::optional<std::string>& value) { return value ? Json(printable(*value)) : Json(nullptr); }

Json of(const model::Source& source) {
  return {{"kind", name_of(source.kind)}, {"name", printable(source.name)}, {"complete", source.complete}};
}

Json of(const model::Change& change) {
  return {{"kind", name_of(change.kind)},
          {"group", name_of(change.group)},
          {"subject", printable(change.subject)},
          {"what", text(change.what)},
          {"before", text(change.before)},
          {"after", text(change.after)},
          {"note", text(change.note)}};
}

Json of(const model::OneSided& fact) {
  return {{"group", name_of(fact.group)},
          {"subject", printable(fact.subject)},
          {"what", text(fact.what)},
          {"known_in", fact.known_before ? "before" : "after"},
          {"value", printable(fact.value)}};
}

}  // namespace

std::string diff_json(const model::Diff& diff, const model::Source& before, const model::Source& after) {
  Json out;
  out["schema"] = "topotune.diff/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["before"] = of(before);
  out["after"] = of(after);
  out["identical"] = diff.identical();
  out["compared"] = diff.compared;
  out["changes"] = Json::array();
  for (const auto& change : diff.changes) out["changes"].push_back(of(change));
  out["not_compared"] = Json::array();
  for (const auto& fact : diff.one_sided) out["not_compared"].push_back(of(fact));
  return out.dump(2) + "\n";
}

}  // namespace topotune::emit
