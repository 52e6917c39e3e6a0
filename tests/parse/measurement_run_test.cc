#include "parse/measurement_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topotune::parse {
namespace {

constexpr const char* kGood =
    R"({"schema":"topotune.measurement/1","suite":"p2p","date":"2026-01-02T03:04:05Z",
 "machine":{"gpus":"2 x NVIDIA H200","driver":null},
 "results":[{"name":"p2p.write.ce","params":{"src":"GPU0","dst":"GPU1","bytes":536870912},"unit":"gbytes_per_s",
   "samples":[395.1,395.3],"median":395.2,"ci95":[395.1,395.3],"expected":{"value":450.0,"why":"18 links x 25 GB/s"},
   "status":"noisy","why":"only 2 samples","verified":true}]})";

TEST(Measurement, IsRead) {
  const auto run = parse_measurement_run(kGood);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->suite, "p2p");
  ASSERT_EQ(run->results.size(), 1u);
  const auto& m = run->results[0];
  EXPECT_EQ(key_of(m), "p2p.write.ce src=GPU0 dst=GPU1 bytes=536870912");
  EXPECT_THAT(m.samples, testing::ElementsAre(395.1, 395.3));
  EXPECT_EQ(m.median, 395.2);
  EXPECT_EQ(m.ci95->high, 395.3);
  EXPECT_EQ(m.expected->low, 450.0);  // a single value is a range of itself
  EXPECT_EQ(m.status, model::MeasureStatus::noisy);
  EXPECT_TRUE(m.verified);
}

TEST(Measurement, OtherInputsAreRefusedInOneLine) {
  EXPECT_EQ(parse_measurement_run("{").error().text, "not a JSON document");
  EXPECT_EQ(parse_measurement_run("").error().text, "not a JSON document");
  EXPECT_EQ(parse_measurement_run("[1]").error().text, "its schema is not given, not topotune.measurement/1");
  EXPECT_EQ(parse_measurement_run(R"({"schema":"topotune.findings/1"})").error().text,
            "its schema is 'topotune.findings/1', not topotune.measurement/1");
  EXPECT_EQ(parse_measurement_run(R"({"schema":"topotune.measurement/1"})").error().text,
            "it has no list of results");
}

TEST(Measurement, FieldsOfAnotherTypeAreUnknown) {
  const auto run = parse_measurement_run(
      R"({"schema":"topotune.measurement/1","results":[7,{"name":3,"median":"fast","ci95":[1],"samples":"many","status":"great","verified":1}]})");
  ASSERT_TRUE(run);
  ASSERT_EQ(run->results.size(), 1u);
  EXPECT_EQ(run->results[0].name, "");
  EXPECT_FALSE(run->results[0].median);
  EXPECT_FALSE(run->results[0].ci95);
  EXPECT_FALSE(run->results[0].verified);
  EXPECT_EQ(run->results[0].status, model::MeasureStatus::failed);
}

TEST(Measurement, DeepNestingIsHarmless) {
  const std::string deep(200000, '[');
  EXPECT_FALSE(parse_measurement_run(deep));
  const std::string closed = R"({"schema":"topotune.measurement/1","results":[)" + std::string(100000, '[') +
                             std::string(100000, ']') + "]}";
  EXPECT_TRUE(parse_measurement_run(closed));
}

}  // namespace
}  // namespace topotune::parse
