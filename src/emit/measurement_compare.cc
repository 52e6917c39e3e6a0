#include "emit/measurement_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "emit/measurement_text.h"

namespace topotune::emit {

namespace {

using Json = nlohmann::ordered_json;

double number(double value) { return std::strtod(fmt::format("{:.7g}", value).c_str(), nullptr); }

int order_of(model::Trend change) {
  constexpr std::array<int, 4> order{2, 1, 0, 3};  // worse, better, same, unclear
  return order[static_cast<std::size_t>(change)];
}

std::array<std::size_t, 4> counts_of(const model::ComparedRuns& compared) {
  std::array<std::size_t, 4> counts{};
  for (const auto& row : compared.rows) ++counts[static_cast<std::size_t>(row.change)];
  return counts;
}

}  // namespace

std::string compared_text(const model::ComparedRuns& compared, const std::string& before,
                          const std::string& after) {
  std::string out = fmt::format("{} -> {}\n", printable(before), printable(after));
  auto rows = compared.rows;
  std::ranges::stable_sort(rows, {}, [](const auto& row) { return order_of(row.change); });
  for (const auto& row : rows)
    out += fmt::format("  {:<8} {:<64} {:>12} -> {:>12}  x {:.4f} ({:.4f}-{:.4f})\n", name_of(row.change),
                       printable(row.key), value_text(row.before, row.unit), value_text(row.after, row.unit),
                       row.ratio, row.ci95.low, row.ci95.high);
  for (const auto& key : compared.only_before)
    out += fmt::format("  only in the first   {}\n", printable(key));
  for (const auto& key : compared.only_after)
    out += fmt::format("  only in the second  {}\n", printable(key));
  const auto counts = counts_of(compared);
  out +=
      fmt::format("{} worse, {} better, {} same, {} unclear\n", counts[2], counts[1], counts[0], counts[3]);
  return out;
}

std::string compared_json(const model::ComparedRuns& compared, const std::string& before,
                          const std::string& after) {
  Json out;
  out["schema"] = "topotune.measurement-compare/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["before"] = printable(before);
  out["after"] = printable(after);
  const auto counts = counts_of(compared);
  out["worse"] = counts[2], out["better"] = counts[1], out["same"] = counts[0], out["unclear"] = counts[3];
  out["rows"] = Json::array();
  for (const auto& row : compared.rows)
    out["rows"].push_back({{"key", printable(row.key)},
                           {"unit", row.unit},
                           {"before", number(row.before)},
                           {"after", number(row.after)},
                           {"ratio", number(row.ratio)},
                           {"ci95", {number(row.ci95.low), number(row.ci95.high)}},
                           {"change", name_of(row.change)}});
  out["only_before"] = compared.only_before;
  out["only_after"] = compared.only_after;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace topotune::emit
