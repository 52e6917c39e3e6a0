#include "emit/heat_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topotune::emit {
namespace {

using testing::HasSubstr;

model::Measurement link(const std::string& a, const std::string& b, double rate) {
  model::Measurement m;
  m.name = "net.bandwidth.tag";
  m.unit = "gbytes_per_s";
  m.params = {{"a", a}, {"b", b}};
  m.median = rate;
  return m;
}

TEST(HeatMap, ShadesAgainstTheUsual) {
  model::MeasurementRun run;
  run.suite = "net";
  for (const char* a : {"h1", "h2", "h10"})
    for (const char* b : {"h1", "h2", "h10"})
      if (a != b) run.results.push_back(link(a, b, std::string(a) == "h10" ? 0.5 : 10));
  const auto svg = heat_map_svg(run);
  EXPECT_THAT(svg, HasSubstr("h1 to h2: 10.000 GB/s, 100 % of the 75th percentile"));
  EXPECT_THAT(svg, HasSubstr("h10 to h1: 0.500 GB/s, 5 % of the 75th percentile"));
  EXPECT_THAT(svg, HasSubstr("#5c1a33"));
  EXPECT_LT(svg.find(">h2<"), svg.find(">h10<"));
}

TEST(HeatMap, EscapesNamesAndTakesTheLaterResult) {
  model::MeasurementRun run;
  run.results = {link("<a>", "b", 1), link("<a>", "b", 3)};
  const auto svg = heat_map_svg(run);
  EXPECT_THAT(svg, HasSubstr("&lt;a&gt; to b: 3.000 GB/s"));
  EXPECT_THAT(svg, testing::Not(HasSubstr("<a>")));
}

TEST(HeatMap, NothingWithoutPairs) { EXPECT_EQ(heat_map_svg({}), ""); }

}  // namespace
}  // namespace topotune::emit
