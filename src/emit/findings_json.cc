#include "emit/findings_json.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace topotune::emit {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Unknown is null, never "".
Json text(const std::string& value) { return value.empty() ? Json(nullptr) : Json(printable(value)); }

Json of(const model::Finding& f) {
  Json out;
  out["rule"] = f.rule;
  out["severity"] = name_of(f.severity);
  out["subject"] = printable(f.subject);
  out["file"] = f.file ? text(*f.file) : Json(nullptr);
  out["line"] = or_null(f.line);
  if (f.column) out["column"] = *f.column;
  out["title"] = f.title;
  out["evidence"] = Json::array();
  for (const auto& evidence : f.evidence)
    out["evidence"].push_back({{"source", printable(evidence.source)}, {"text", printable(evidence.text)}});
  out["expected"] = text(f.expected);
  out["observed"] = text(f.observed);
  out["impact"] = text(f.impact);
  out["remedy"] = text(f.remedy);
  out["action"] = text(f.action);
  out["reference"] = text(f.reference);
  if (!f.because.empty()) out["because"] = f.because;
  return out;
}

}  // namespace

std::string findings_json(const model::Diagnosis& diagnosis, const model::Source& source) {
  Json out;
  out["schema"] = "topotune.findings/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["source"] = {{"kind", name_of(source.kind)}, {"name", printable(source.name)}};
  out["verdict"] = name_of(model::verdict_of(diagnosis));
  out["findings"] = Json::array();
  for (const auto& finding : diagnosis.findings) out["findings"].push_back(of(finding));
  out["checked"] = diagnosis.checked;
  out["not_checked"] = Json::array();
  for (const auto& one : diagnosis.not_checked)
    out["not_checked"].push_back({{"rule", one.rule}, {"why", printable(one.why)}});
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace topotune::emit
