#include "measure/runner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "measure/session.h"
#include "measure/watchdog.h"

namespace topotune::measure {
namespace {

// A clock that each sample moves by `step` seconds.
struct Fake {
  double time = 0, step = 0.01;
  std::vector<double> values;  // one after the other, then the last again
  std::size_t calls = 0;
  Result<Sampled> run(
      const Policy& policy, const Stop& stop = [] { return false; }) {
    return sample_until(
        policy,
        [this]() -> Result<double> {
          time += step;
          return values[std::min(calls++, values.size() - 1)];
        },
        [this] { return time; }, stop);
  }
};

TEST(SampleUntil, StopsAtTheTargetAfterTheLeastCount) {
  Fake fake;
  fake.values = {100};
  Policy policy;
  policy.min_samples = 5;
  policy.max_seconds = 100;
  const auto got = fake.run(policy);
  EXPECT_EQ(got->warmup, 1u);  // the other two of the three that agree count
  EXPECT_EQ(got->samples.size(), 5u);
  EXPECT_EQ(fake.calls, 6u);
}

TEST(SampleUntil, ThrowsTheWarmUpAway) {
  Fake fake;
  fake.values = {10, 50, 80, 99, 100, 100, 100};
  Policy policy;
  policy.max_seconds = 100;
  const auto got = fake.run(policy);
  EXPECT_EQ(got->warmup, 4u);  // 99, 100, 100 lie within one percent
  for (const double s : got->samples) EXPECT_EQ(s, 100);
}

TEST(SampleUntil, TimeEndsItWhenTheSpreadDoesNot) {
  Fake fake;
  for (int i = 0; i < 1000; ++i) fake.values.push_back(i % 2 == 0 ? 80 : 120);
  Policy policy;
  policy.max_samples = 1000;
  policy.max_seconds = 0.5;
  const auto got = fake.run(policy);
  EXPECT_NEAR(static_cast<double>(got->samples.size()), 51, 2);
}

TEST(SampleUntil, TakesTheLeastCountThoughTimeIsUp) {
  Fake fake;
  fake.step = 1;
  fake.values = {100};
  Policy policy;
  policy.max_seconds = 0.5;
  policy.min_samples = 7;
  EXPECT_EQ(fake.run(policy)->samples.size(), 7u);
}

TEST(SampleUntil, AnInterruptionKeepsWhatWasTaken) {
  Fake fake;
  fake.values = {100, 80, 120};
  Policy policy;
  policy.ci_target = -1;  // never enough
  const auto got = fake.run(policy, [&] { return fake.calls >= 12; });
  EXPECT_TRUE(got->interrupted);
  EXPECT_EQ(got->warmup + got->samples.size(), 12u);
}

TEST(SampleUntil, AnErrorIsReturned) {
  const auto got = sample_until(
      {}, []() -> Result<double> { return fail(Errc::io, "gone"); }, monotonic_seconds, [] { return false; });
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().text, "gone");
}

TEST(Session, KeepsFailuresWithTheirReason) {
  Session session({}, {});
  model::Measurement m;
  m.name = "p2p.write.ce";
  EXPECT_FALSE(session.measure(m, []() -> Result<double> { return fail(Errc::io, "link down"); }));
  session.waive(m, "no GPU");
  const auto results = session.collected().results;
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].status, model::MeasureStatus::failed);
  EXPECT_EQ(results[0].why, "link down");
  EXPECT_EQ(results[1].status, model::MeasureStatus::waived);
}

TEST(Session, CountsWhereTheTimeGoes) {
  Session session({}, {});
  { const Session::Timed timed(session, &model::RunTimes::allocation); }
  session.spend(&model::RunTimes::allocation, 2);
  session.spend(&model::RunTimes::verification, 0.5);
  session.measure({}, [] {
    ::usleep(1000);
    return Result<double>(1.0);
  });
  const auto times = session.collected().times;
  EXPECT_GE(times.allocation, 2);
  EXPECT_LT(times.allocation, 2.5);
  EXPECT_EQ(times.verification, 0.5);
  EXPECT_GE(times.measuring, 0.007);
  EXPECT_EQ(times.driver_start, 0);
}

TEST(Session, AddsNothingWhenStoppedBefore) {
  Session::Hooks hooks;
  hooks.stop = [] { return true; };
  Session session({}, hooks);
  EXPECT_FALSE(session.measure({}, [] { return Result<double>(1.0); }));
  EXPECT_TRUE(session.collected().results.empty());
}

TEST(Watchdog, NamesTheStepThatHangs) {
  std::atomic<int> calls{0};
  std::string said;
  {
    Watchdog dog([&](const std::string& step, double) {
      said = step;
      ++calls;
    });
    dog.begin("quick", 10);
    dog.begin("slow", 0.02);
    for (int i = 0; i < 200 && calls == 0; ++i) ::usleep(5000);
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(said, "slow");
}

TEST(Watchdog, AStepThatGoesOnHasItsWholeTimeAgain) {
  std::atomic<int> calls{0};
  {
    Watchdog dog([&](const std::string&, double) { ++calls; });
    dog.begin("many samples", 0.2);
    for (int i = 0; i < 20; ++i) ::usleep(20000), dog.alive();
    EXPECT_EQ(calls, 0);
    for (int i = 0; i < 200 && calls == 0; ++i) ::usleep(5000);
  }
  EXPECT_EQ(calls, 1);
}

TEST(Watchdog, AnEndedStepIsNotNamed) {
  std::atomic<int> calls{0};
  {
    Watchdog dog([&](const std::string&, double) { ++calls; });
    dog.begin("a", 0.02);
    dog.end();
    ::usleep(60000);
  }
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace topotune::measure
