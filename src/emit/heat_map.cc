#include "emit/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/text.h"
#include "emit/svg_canvas.h"

namespace topotune::emit {

namespace {

struct Map {
  std::vector<std::string> names;  // in order of appearance
  std::map<std::pair<std::string, std::string>, double> rates;
};

std::string word_of(const model::Measurement& m, std::string_view name) {
  const auto found = std::ranges::find(m.params, name, &model::Param::name);
  return found == m.params.end() ? "" : model::text_of(found->value);
}

Map map_of(const model::MeasurementRun& run) {
  Map map;
  for (const auto& m : run.results) {
    const auto a = word_of(m, "a"), b = word_of(m, "b");
    if (a.empty() || b.empty() || m.unit != "gbytes_per_s" || !m.median) continue;
    for (const auto& name : {a, b})
      if (std::ranges::find(map.names, name) == map.names.end()) map.names.push_back(name);
    map.rates[{a, b}] = *m.median;
  }
  std::ranges::sort(map.names, [](const std::string& x, const std::string& y) {
    return x.size() != y.size() ? x.size() < y.size() : x < y;  // h2 before h10
  });
  return map;
}

double usual_of(const Map& map) {
  std::vector<double> all;
  for (const auto& [pair, rate] : map.rates) all.push_back(rate);
  std::ranges::sort(all);
  return all.empty() ? 1 : std::max(all[all.size() * 3 / 4 < all.size() ? all.size() * 3 / 4 : 0], 1e-12);
}

struct Shade {
  double from;  // share of the 75th percentile
  std::string_view fill, ink, words;
};
constexpr std::array<Shade, 5> kShades{{{0.9, "#e8f3ec", "#1f2933", "90 % of it or more"},
                                        {0.7, "#f9e8a8", "#1f2933", "70 % to 90 %"},
                                        {0.4, "#f0a35e", "#1f2933", "40 % to 70 %"},
                                        {0.1, "#d1495b", "#ffffff", "10 % to 40 %"},
                                        {0.0, "#5c1a33", "#ffffff", "under 10 %"}}};

const Shade& shade_of(double share) {
  return *std::ranges::find_if(kShades, [&](const Shade& s) { return share >= s.from || s.from == 0.0; });
}

constexpr double kLeft = 110, kTop = 84, kWide = 62, kHigh = 24;

void cell(SvgCanvas& canvas, const Map& map, std::size_t row, std::size_t column, double usual) {
  const Rect at{kLeft + kWide * static_cast<double>(column), kTop + kHigh * static_cast<double>(row), kWide,
                kHigh};
  const auto found = map.rates.find({map.names[row], map.names[column]});
  if (found == map.rates.end()) {
    canvas.box(at, {"#f4f5f7", "#ffffff", 1, 0, ""});
    return;
  }
  const auto& shade = shade_of(found->second / usual);
  canvas.begin_group(fmt::format("{} to {}: {:.3f} GB/s, {:.0f} % of the 75th percentile", map.names[row],
                                 map.names[column], found->second, 100 * found->second / usual));
  canvas.box(at, {shade.fill, "#ffffff", 1, 0, ""});
  canvas.text(at.middle(), at.y + 16, fmt::format("{:.2f}", found->second),
              {11, shade.ink, "middle", false, false});
  canvas.end_group();
}

void legend(SvgCanvas& canvas, double y) {
  double x = kLeft;
  for (const auto& shade : kShades) {
    canvas.box({x, y, 14, 14}, {shade.fill, "#7b8794", 0.6, 0, ""});
    canvas.text(x + 19, y + 11, shade.words, {11, "#1f2933", "start", false, false});
    x += 30 + SvgCanvas::text_width(shade.words, 11);
  }
}

}  // namespace

std::string heat_map_svg(const model::MeasurementRun& run) {
  const auto map = map_of(run);
  if (map.names.empty()) return "";
  const double usual = usual_of(map);
  const auto n = static_cast<double>(map.names.size());
  SvgCanvas canvas;
  const std::string title = fmt::format(
      "{}: GB/s from the row to the column, shaded against the 75th percentile, {:.3f}", run.suite, usual);
  canvas.text(16, 28, title, {15, "#1f2933", "start", true, false});
  for (std::size_t i = 0; i < map.names.size(); ++i) {
    const double at = static_cast<double>(i);
    canvas.text(kLeft - 8, kTop + kHigh * at + 16, SvgCanvas::fit(map.names[i], kLeft - 16, 11),
                {11, "#1f2933", "end", false, false});
    canvas.text(kLeft + kWide * (at + 0.5), kTop - 8, SvgCanvas::fit(map.names[i], kWide - 4, 11),
                {11, "#1f2933", "middle", false, false});
  }
  for (std::size_t row = 0; row < map.names.size(); ++row)
    for (std::size_t column = 0; column < map.names.size(); ++column) cell(canvas, map, row, column, usual);
  legend(canvas, kTop + kHigh * n + 16);
  return canvas.document(std::max(kLeft + kWide * n + 16, 760.0), kTop + kHigh * n + 48, title);
}

}  // namespace topotune::emit
