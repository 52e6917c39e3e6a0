#include "emit/sarif.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace topotune::emit {

using json = nlohmann::ordered_json;

namespace {

const char* level_of(model::Severity severity) {
  switch (severity) {
    case model::Severity::error:
      return "error";
    case model::Severity::warn:
      return "warning";
    case model::Severity::info:
      return "note";
  }
  return "none";
}

// A file name as a relative URI: only what RFC 3986 lets stand.
std::string uri_of(const std::string& file) {
  std::string out;
  for (const char c : file) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c)
                 : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return out;
}

json location(const model::Finding& finding) {
  json region = json::object();
  if (finding.line) region["startLine"] = *finding.line;
  if (finding.line && finding.column) region["startColumn"] = *finding.column;
  json physical = {{"artifactLocation", {{"uri", uri_of(*finding.file)}}}};
  if (!region.empty()) physical["region"] = std::move(region);
  return {{"physicalLocation", std::move(physical)}};
}

json result(const model::Finding& finding, std::size_t rule) {
  json out = {
      {"ruleId", finding.rule},
      {"ruleIndex", rule},
      {"level", level_of(finding.severity)},
      {"message", {{"text", printable(fmt::format("{}. Remedy: {}", finding.title, finding.remedy))}}}};
  if (finding.file) out["locations"] = json::array({location(finding)});
  return out;
}

json rule(const model::Finding& finding) {
  return {{"id", finding.rule},
          {"shortDescription", {{"text", printable(finding.title)}}},
          {"fullDescription", {{"text", printable(finding.impact.empty() ? finding.title : finding.impact)}}},
          {"help", {{"text", printable(finding.remedy)}}}};
}

}  // namespace

std::string findings_sarif(const model::Diagnosis& diagnosis) {
  json rules = json::array(), results = json::array();
  std::map<std::string, std::size_t> indices;
  for (const auto& finding : diagnosis.findings) {
    const auto [at, added] = indices.emplace(finding.rule, rules.size());
    if (added) rules.push_back(rule(finding));
    results.push_back(result(finding, at->second));
  }
  const json driver = {{"name", "topotune"}, {"version", TOPOTUNE_VERSION}, {"rules", std::move(rules)}};
  json document = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}};
  document["runs"] = json::array(
      {{{"tool", {{"driver", driver}}}, {"columnKind", "utf16CodeUnits"}, {"results", std::move(results)}}});
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace topotune::emit
