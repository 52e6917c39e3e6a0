#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emit/claim.h"
#include "emit/measurement_compare.h"
#include "emit/measurement_json.h"
#include "emit/measurement_text.h"
#include "parse/measurement_run.h"

namespace topotune::emit {
namespace {

using testing::HasSubstr;

model::MeasurementRun sample_run() {
  model::Measurement m;
  m.name = "p2p.write.ce";
  m.params = {{"src", "GPU0"}, {"dst", "GPU1"}, {"bytes", std::int64_t{536870912}}};
  m.unit = "gbytes_per_s";
  m.samples = {395.1, 395.2, 395.3};
  m.median = 395.2;
  m.p1 = 395.1;
  m.p99 = 395.3;
  m.ci95 = model::Interval{395.1, 395.3};
  m.expected = model::Expected{394, 397, "18 links x 26.562 GB/s x 0.824-0.83", "own"};
  m.verified = true;
  m.verified_how = "pattern read back by the owner";
  model::Measurement waived;
  waived.name = "numa.remote";
  waived.unit = "ratio";
  waived.status = model::MeasureStatus::waived;
  waived.why = "one NUMA node";
  model::MeasurementRun run;
  run.suite = "p2p";
  run.machine = {{"gpus", "2 x NVIDIA H200"}, {"driver", ""}};
  run.results = {m, waived};
  run.models = {{"p2p.sweep.write.ce",
                 {{"src", "GPU0"}},
                 {{8, 1024, 2.5e-6, 0}, {2048, 1073741824, 4e-6, 395}},
                 0.012}};
  run.seconds = 1.5;
  return run;
}

TEST(MeasurementJson, RoundTrip) {
  const auto run = sample_run();
  const auto back = parse::parse_measurement_run(measurement_json(run));
  ASSERT_TRUE(back);
  ASSERT_EQ(back->results.size(), 2u);
  EXPECT_EQ(key_of(back->results[0]), key_of(run.results[0]));
  EXPECT_EQ(back->results[0].samples, run.results[0].samples);
  EXPECT_EQ(back->results[0].expected->low, 394);
  EXPECT_EQ(back->results[1].status, model::MeasureStatus::waived);
  EXPECT_EQ(back->results[1].why, "one NUMA node");
}

TEST(MeasurementJson, UnknownIsNull) {
  const auto text = measurement_json(sample_run());
  EXPECT_THAT(text, HasSubstr(R"("driver":null)"));
  EXPECT_THAT(text, HasSubstr(R"("median":null)"));
  EXPECT_THAT(text, HasSubstr(R"("verdict":"ok")"));
  EXPECT_THAT(text, HasSubstr(R"("ratio":0.9992415)"));
}

TEST(MeasurementText, EachNumberStandsBesideItsExpectation) {
  const auto text = measurement_text(sample_run(), false);
  EXPECT_THAT(text, HasSubstr("GPU0 -> GPU1 512 MiB"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "395.2 GB/s +- 0.03 %, expected 394.0-397.0 (18 links x 26.562 GB/s x 0.824-0.83), ok, verified"));
  EXPECT_THAT(text, HasSubstr("waived: one NUMA node"));
  EXPECT_THAT(text, HasSubstr("mean error 1.2 %"));
  EXPECT_THAT(text, HasSubstr("ok: 2 results in 1.5 s"));
}

TEST(MeasurementText, InterruptionIsSaid) {
  auto run = sample_run();
  run.interrupted = true;
  EXPECT_THAT(measurement_text(run, false), HasSubstr("interrupted: what is above was measured"));
}

TEST(MeasurementCsv, QuotesWhatNeedsIt) {
  auto run = sample_run();
  run.results[1].why = "one \"node\", only";
  const auto text = measurement_csv(run);
  EXPECT_THAT(text, HasSubstr("p2p.write.ce,src=GPU0 dst=GPU1 bytes=536870912,gbytes_per_s,395.2,"));
  EXPECT_THAT(text, HasSubstr("\"one \"\"node\"\", only\"\n"));
}

TEST(Units, AreReadable) {
  EXPECT_EQ(size_text(8), "8 B");
  EXPECT_EQ(size_text(1 << 20), "1 MiB");
  EXPECT_EQ(size_text(1.5 * (1 << 20)), "1.5 MiB");
  EXPECT_EQ(value_text(1.368e-6, "seconds"), "1.368 us");
  EXPECT_EQ(value_text(1.03e-7, "seconds"), "103.0 ns");
  EXPECT_EQ(value_text(395.23, "gbytes_per_s"), "395.2 GB/s");
}

TEST(Compared, WorseComesFirst) {
  model::ComparedRuns compared;
  compared.rows = {{"a", "gbytes_per_s", 100, 100, 1, {0.999, 1.001}, model::Trend::same},
                   {"b", "gbytes_per_s", 100, 90, 0.9, {0.899, 0.901}, model::Trend::worse}};
  compared.only_after = {"c"};
  const auto text = compared_text(compared, "x.json", "y.json");
  EXPECT_LT(text.find("worse    b"), text.find("same     a"));
  EXPECT_THAT(text, HasSubstr("1 worse, 0 better, 1 same, 0 unclear"));
  EXPECT_THAT(compared_json(compared, "x", "y"), HasSubstr("\"change\": \"worse\""));
}

TEST(Claim, NamesTheRuleWhenItIsWrong) {
  model::Claim claim;
  claim.claimed = 92;
  claim.limit = 12.25;
  claim.verdict = model::ClaimVerdict::units;
  EXPECT_THAT(claim_text(claim), HasSubstr("rule: BENCH03"));
  EXPECT_THAT(claim_json(claim), HasSubstr("\"verdict\": \"units mixed up\""));
  claim.verdict = model::ClaimVerdict::possible;
  EXPECT_THAT(claim_json(claim), HasSubstr("\"rule\": null"));
}

}  // namespace
}  // namespace topotune::emit
