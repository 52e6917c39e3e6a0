#include "checks/bench.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace topotune::checks {
namespace {

using model::Measurement;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Measurement result(std::string name, double median, std::vector<model::Param> params = {}) {
  Measurement m;
  m.name = std::move(name);
  m.params = std::move(params);
  m.unit = "gbytes_per_s";
  m.samples = {median, median, median, median, median};
  m.median = median;
  m.p1 = m.p99 = median;
  return m;
}

model::MeasurementRun run_of(std::vector<Measurement> results) {
  model::MeasurementRun run;
  run.results = std::move(results);
  return run;
}

const model::Finding* find(const model::Diagnosis& d, std::string_view rule) {
  const auto found = std::ranges::find(d.findings, rule, &model::Finding::rule);
  return found == d.findings.end() ? nullptr : &*found;
}

bool not_checked(const model::Diagnosis& d, std::string_view rule) {
  return std::ranges::find(d.not_checked, rule, &model::NotChecked::rule) != d.not_checked.end();
}

Measurement collective(int ranks) {
  return result("coll.all_reduce", 300, {{"bytes", std::int64_t{1 << 20}}, {"ranks", std::int64_t{ranks}}});
}

TEST(Bench, OneRankMeasuresNothing) {
  const auto d = judge_measurement(run_of({collective(1)}), "b.json");
  ASSERT_NE(find(d, "BENCH01"), nullptr);
  EXPECT_EQ(find(d, "BENCH01")->severity, model::Severity::warn);
  EXPECT_EQ(find(d, "BENCH01")->file, "b.json");
  EXPECT_EQ(find(judge_measurement(run_of({collective(2)}), "b.json"), "BENCH01"), nullptr);
  EXPECT_TRUE(not_checked(judge_measurement(run_of({result("p2p.write.ce", 390)}), "b.json"), "BENCH01"));
  auto waived = collective(1);
  waived.status = model::MeasureStatus::waived;
  EXPECT_EQ(find(judge_measurement(run_of({waived}), "b.json"), "BENCH01"), nullptr);
}

TEST(Bench, AMeanOverSizesIsNoPeak) {
  const auto average = result("coll.all_reduce.avg_busbw", 120);
  const auto d = judge_measurement(run_of({collective(8), average}), "b.json");
  EXPECT_EQ(find(d, "BENCH02"), nullptr) << "one size measured";
  auto small = collective(8);
  small.params[0].value = std::int64_t{8};
  const auto several = judge_measurement(run_of({collective(8), small, average}), "b.json");
  ASSERT_NE(find(several, "BENCH02"), nullptr);
  EXPECT_THAT(find(several, "BENCH02")->observed, HasSubstr("120.0 GB/s"));
  EXPECT_EQ(find(judge_measurement(run_of({collective(8), small}), "b.json"), "BENCH02"), nullptr);
}

LinkLimit eighteen_links() {
  LinkLimit out;
  out.expected = model::Expected{393, 398, "18 links x 26.562 GB/s x 0.83", ""};
  out.link_rate = 18 * 26.562;
  out.why = "18 links x 26.562 GB/s";
  return out;
}
LimitOf of_p2p() {
  return [](const Measurement& m) {
    return m.name.starts_with("p2p.") ? std::optional(eighteen_links()) : std::nullopt;
  };
}

TEST(Bench, MoreThanTheLinksCarryIsAnError) {
  const auto run = run_of({result("p2p.write.ce", 740)});
  const auto d = judge_measurement(run, "b.json", of_p2p());
  ASSERT_NE(find(d, "BENCH03"), nullptr);
  EXPECT_EQ(find(d, "BENCH03")->severity, model::Severity::error);
  EXPECT_THAT(find(d, "BENCH03")->expected, HasSubstr("at most 478.1 GB/s: 18 links"));
  EXPECT_EQ(find(judge_measurement(run_of({result("p2p.write.ce", 396)}), "b.json", of_p2p()), "BENCH03"),
            nullptr);
  EXPECT_TRUE(not_checked(judge_measurement(run, "b.json"), "BENCH03")) << "no machine";
}

TEST(Bench, AThresholdOfAnotherMachine) {
  auto m = result("p2p.write.ce", 396);
  m.expected = model::Expected{150, 150, "any NVLink", "a script"};
  const auto d = judge_measurement(run_of({m}), "b.json", of_p2p());
  ASSERT_NE(find(d, "BENCH04"), nullptr);
  EXPECT_THAT(find(d, "BENCH04")->observed,
              HasSubstr("150.0 GB/s is expected there, 38 % of what the links give"));
  m.expected = model::Expected{380, 400, "", ""};
  EXPECT_EQ(find(judge_measurement(run_of({m}), "b.json", of_p2p()), "BENCH04"), nullptr);
  EXPECT_TRUE(not_checked(judge_measurement(run_of({m}), "b.json"), "BENCH04"));
}

TEST(Bench, WhatCannotBeRepeated) {
  auto few = result("p2p.write.ce", 396);
  few.samples = {396, 396};
  EXPECT_NE(find(judge_measurement(run_of({few}), "b.json"), "BENCH05"), nullptr);
  auto tail = result("p2p.write.ce", 396);
  tail.p1 = 300;
  const auto d = judge_measurement(run_of({tail}), "b.json");
  ASSERT_NE(find(d, "BENCH05"), nullptr);
  EXPECT_THAT(find(d, "BENCH05")->observed, HasSubstr("24 % away"));
  tail.p1 = 396;
  tail.p99 = 500;  // the good side of a rate
  EXPECT_EQ(find(judge_measurement(run_of({tail}), "b.json"), "BENCH05"), nullptr);
  auto latency = result("p2p.pingpong", 1e-6);
  latency.unit = "seconds";
  latency.p99 = 2e-6;
  EXPECT_NE(find(judge_measurement(run_of({latency}), "b.json"), "BENCH05"), nullptr);
  latency.samples.assign(1000, 1e-6);
  EXPECT_EQ(find(judge_measurement(run_of({latency}), "b.json"), "BENCH05"), nullptr)
      << "a distribution is wanted";
}

TEST(Bench, DisturbedGpus) {
  auto run = run_of({result("p2p.write.ce", 396)});
  run.before.push_back({"GPU0", {}, {}, {}, 0, std::vector<std::uint32_t>{}});
  EXPECT_EQ(find(judge_measurement(run, "b.json"), "BENCH05"), nullptr);
  run.before[0].other_processes = {4711};
  EXPECT_THAT(find(judge_measurement(run, "b.json"), "BENCH05")->observed, HasSubstr("1 other process"));
  run.before[0].other_processes->clear();
  run.before[0].throttle_reasons = 0x4;  // software power cap: normal under load
  EXPECT_EQ(find(judge_measurement(run, "b.json"), "BENCH05"), nullptr);
  run.before[0].throttle_reasons = 0x40;
  EXPECT_NE(find(judge_measurement(run, "b.json"), "BENCH05"), nullptr);
}

Measurement write_bw(double gbits, std::int64_t pairs, std::int64_t bytes, std::int64_t port) {
  auto m = result("net.write", gbits / 8, {{"queue_pairs", pairs}, {"bytes", bytes}});
  m.extra = {{"port_gbits_per_s", port}};
  return m;
}

TEST(Bench, OneQueuePairOnAFastPort) {
  const auto d = judge_measurement(run_of({write_bw(300, 1, 8 << 20, 400)}), "b.json");
  ASSERT_NE(find(d, "BENCH06"), nullptr);
  EXPECT_THAT(find(d, "BENCH06")->observed, HasSubstr("300 Gb/s with one queue pair"));
  for (const auto& good : {write_bw(390, 1, 8 << 20, 400), write_bw(300, 4, 8 << 20, 400),
                           write_bw(300, 1, 128 << 10, 400), write_bw(150, 1, 8 << 20, 200)})
    EXPECT_EQ(find(judge_measurement(run_of({good}), "b.json"), "BENCH06"), nullptr);
  EXPECT_TRUE(not_checked(judge_measurement(run_of({result("p2p.write.ce", 1)}), "b.json"), "BENCH06"));
}

TEST(Bench, DataThatArriveWrong) {
  auto m = result("p2p.write.ce", 390, {{"src", std::string("GPU0")}, {"dst", std::string("GPU1")}});
  m.verified = true;
  const auto good = judge_measurement(run_of({m}), "b.json");
  EXPECT_THAT(good.checked, Contains("ACS05"));
  EXPECT_EQ(find(good, "ACS05"), nullptr);
  m.verified = false;
  m.status = model::MeasureStatus::failed;
  m.why = "3 pieces of 16 bytes from GPU0 arrived wrong in GPU1, the first at byte 4096";
  const auto bad = judge_measurement(run_of({m}), "b.json");
  ASSERT_NE(find(bad, "ACS05"), nullptr);
  EXPECT_EQ(find(bad, "ACS05")->severity, model::Severity::error);
  EXPECT_THAT(find(bad, "ACS05")->observed, HasSubstr("the first at byte 4096"));
  m.why = "cuMemcpyPeerAsync: out of memory";
  EXPECT_TRUE(not_checked(judge_measurement(run_of({m}), "b.json"), "ACS05")) << "another failure";
  m.name = "host.h2d";
  m.why = "3 pieces of 16 bytes arrived wrong";
  EXPECT_EQ(find(judge_measurement(run_of({m}), "b.json"), "ACS05"), nullptr) << "no peer";
}

TEST(Bench, SeveralResultsAreOneFinding) {
  std::vector<Measurement> results;
  for (int i = 0; i < 20; ++i) results.push_back(result(fmt::format("p2p.{}", i), 740));
  const auto d = judge_measurement(run_of(results), "b.json", of_p2p());
  ASSERT_NE(find(d, "BENCH03"), nullptr);
  EXPECT_THAT(find(d, "BENCH03")->observed, HasSubstr("20 results in all"));
  EXPECT_EQ(find(d, "BENCH03")->evidence.size(), 8u);
  EXPECT_THAT(d.checked, Contains("BENCH03"));
  EXPECT_THAT(d.checked, Not(Contains("BENCH06")));
}

}  // namespace
}  // namespace topotune::checks
