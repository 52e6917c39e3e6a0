#include "cli/versions_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace topotune::cli {

namespace {

std::string range_of(const plan::VersionRow& row) {
  if (row.from == "0" && row.to == "-") return row.have;
  return row.to == "-" ? fmt::format("{} {}+", row.have, row.from)
                       : fmt::format("{} {} to below {}", row.have, row.from, row.to);
}

}  // namespace

std::string versions_text(const std::vector<plan::VersionRow>& rows) {
  std::string out;
  for (const auto& row : rows) {
    out += fmt::format("{:<9} {} with {} {}", name_of(row.fit), range_of(row), row.needs, row.minimum);
    if (row.here)
      out += fmt::format("   (here: {} {}{})", row.have, row.here->empty() ? "loaded" : *row.here,
                         row.needed_here ? fmt::format(", {} {}", row.needs, *row.needed_here) : "");
    out += fmt::format("\n          {} [{}; {}]\n", row.why, row.source, row.date);
  }
  return printable(out);
}

std::string versions_json(const std::vector<plan::VersionRow>& rows) {
  using Json = nlohmann::ordered_json;
  const auto text = [](const std::optional<std::string>& value) {
    return value ? Json(printable(*value)) : Json(nullptr);
  };
  Json out;
  out["schema"] = "topotune.versions/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["rows"] = Json::array();
  for (const auto& row : rows)
    out["rows"].push_back({{"have", row.have},
                           {"from", row.from},
                           {"to", row.to == "-" ? Json(nullptr) : Json(row.to)},
                           {"needs", row.needs},
                           {"minimum", row.minimum == "-" ? Json(nullptr) : Json(row.minimum)},
                           {"here", text(row.here)},
                           {"needed_here", text(row.needed_here)},
                           {"fit", name_of(row.fit)},
                           {"why", row.why},
                           {"source", row.source},
                           {"date", row.date}});
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace topotune::cli
