#include "cli/act_output.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace topotune::cli {

std::string accounts_text(const act::ApplyReport& report) {
  std::string out;
  for (const auto& one : report.accounts)
    out += fmt::format("{:<11} {}: {}{}\n", name_of(one.outcome), one.id, one.target,
                       one.text.empty() ? "" : ": " + one.text);
  return printable(out);
}

std::string accounts_json(const act::ApplyReport& report, const std::string& schema) {
  nlohmann::ordered_json out;
  out["schema"] = schema;
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["complete"] = report.complete();
  out["actions"] = nlohmann::ordered_json::array();
  for (const auto& one : report.accounts)
    out["actions"].push_back({{"id", one.id},
                              {"target", printable(one.target)},
                              {"outcome", name_of(one.outcome)},
                              {"text", printable(one.text)}});
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace topotune::cli
