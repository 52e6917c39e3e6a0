#include <gmock/gmock.h>

#include <map>

#include "coll/host_source.h"
#include "mixed/advice.h"
#include "mixed/checkpoint.h"
#include "mixed/levels.h"
#include "mixed/loss.h"
#include "mixed/plan.h"
#include "mixed/result.h"
#include "mixed/run.h"

namespace topotune::mixed {
namespace {

using testing::HasSubstr;

parse::MixedStream stream(const char* name, const char* op, std::vector<std::size_t> bytes, double every,
                          int burst = 1) {
  parse::MixedStream s;
  s.name = name, s.op = op, s.bytes = std::move(bytes), s.every_seconds = every, s.burst = burst;
  return s;
}

TEST(Plan, KnownProfilesParseAndHaveThreeStreams) {
  for (const auto& name : known_profiles()) {
    const auto profile = known_profile(name);
    ASSERT_TRUE(profile) << name << ": " << profile.error().to_string();
    EXPECT_EQ(profile->name, name);
    EXPECT_EQ(profile->streams.size(), 3u);
  }
  EXPECT_FALSE(known_profile("dense"));
}

TEST(Plan, CountsFollowTheRate) {
  const auto plan = plan_stream(stream("a", "all_reduce", {1024}, 0.1, 4), 3, 1e-3);
  EXPECT_EQ(plan.count, 120u);
  EXPECT_DOUBLE_EQ(plan.due_of(3), 0);
  EXPECT_DOUBLE_EQ(plan.due_of(4), 0.1);
  EXPECT_NEAR(plan.offered_gbytes_per_s(), 1024 * 4 / 0.1 * 1e-9, 1e-12);
}

TEST(Plan, NoMoreThanTheStreamCanDo) {
  EXPECT_EQ(plan_stream(stream("a", "broadcast", {1024}, 0.001), 1, 0.1).count, 10u);
  EXPECT_EQ(plan_stream(stream("a", "broadcast", {1024}, 0), 1, 0.1).count, 10u);
  EXPECT_EQ(plan_stream(stream("a", "broadcast", {1024}, 0), 1, 1e-9).count, 20000u);
}

TEST(Plan, RareBurstsComeThreeTimes) {
  const auto plan = plan_stream(stream("a", "checkpoint", {1024}, 10), 3, 0.01);
  EXPECT_EQ(plan.count, 3u);
  EXPECT_DOUBLE_EQ(plan.every_seconds, 1);
}

TEST(Plan, LargeStreamsShrinkToMemory) {
  auto profile = *known_profile("dense-ddp");
  const auto scale = fitting_scale(profile, std::size_t{256} << 20);
  EXPECT_LT(scale, 1);
  scale_large(profile, scale);
  EXPECT_LE(memory_of(profile), std::size_t{256} << 20);
  EXPECT_EQ(profile.streams[0].bytes.back(), 1u << 20) << "small streams stay";
  EXPECT_EQ(fitting_scale(profile, std::size_t{64} << 30), 1);
}

// Ends after a number of looks; fails at an operation.
class FakeLane : public coll::Lane {
 public:
  explicit FakeLane(int looks, int fail_at = -1) : looks_(looks), fail_at_(fail_at) {}
  Result<void> start(std::size_t bytes) override {
    EXPECT_EQ(left_, 0);
    if (started++ == fail_at_) return fail(Errc::io, "it broke");
    left_ = looks_, last = bytes;
    return {};
  }
  Result<bool> ended() override { return left_ <= 0 || --left_ == 0; }
  Result<coll::Checked> verify(std::size_t) override { return coll::Checked(); }
  int started = 0;
  std::size_t last = 0;

 private:
  int looks_, fail_at_, left_ = 0;
};

TEST(Run, EveryOperationOfEveryStreamInTurns) {
  FakeLane a(3), b(1);
  const std::vector<Running> streams{
      {plan_stream(stream("a", "all_reduce", {64, 128}, 0.002), 0.02, 1e-4), &a},
      {plan_stream(stream("b", "broadcast", {4096}, 0.005), 0.02, 1e-4), &b}};
  const auto phase = run_streams(streams, {});
  ASSERT_TRUE(phase);
  EXPECT_EQ((*phase)[0].size(), 10u);
  EXPECT_EQ((*phase)[1].size(), 4u);
  EXPECT_EQ((*phase)[0][1].bytes, 128u);
  for (const auto& done : (*phase)[0]) {
    EXPECT_GE(done.start, done.due);
    EXPECT_GE(done.end, done.start);
  }
}

TEST(Run, AnOperationThatNeverEndsIsNamed) {
  FakeLane lane(1 << 30);
  Watch watch;
  watch.limit_seconds = 0.05;
  const auto phase =
      run_streams({{plan_stream(stream("a", "all_reduce", {64}, 0), 0.01, 1e-3), &lane}}, watch);
  ASSERT_FALSE(phase);
  EXPECT_EQ(phase.error().code, Errc::timed_out);
  EXPECT_THAT(phase.error().text, HasSubstr("stream a: all_reduce of 64 bytes did not end within 0.05 s"));
}

TEST(Run, ErrorsNameTheStreamAndNewsEndTheRun) {
  FakeLane broken(1, 2);
  auto phase = run_streams({{plan_stream(stream("a", "all_reduce", {64}, 0), 0.01, 1e-3), &broken}}, {});
  ASSERT_FALSE(phase);
  EXPECT_EQ(phase.error().text, "stream a: it broke");
  FakeLane endless(1 << 30);
  Watch watch;
  watch.news = [] { return std::optional(Error{Errc::io, "rank 1 ended", {}, {}, {}, {}}); };
  phase = run_streams({{plan_stream(stream("a", "all_reduce", {64}, 0), 0.01, 1e-3), &endless}}, watch);
  ASSERT_FALSE(phase);
  EXPECT_EQ(phase.error().text, "rank 1 ended");
}

TEST(Run, AStoppedRunKeepsWhatEnded) {
  FakeLane lane(1);
  Watch watch;
  watch.stopped = [&] { return lane.started >= 3; };
  const auto phase =
      run_streams({{plan_stream(stream("a", "all_reduce", {64}, 0.03), 10, 1e-3), &lane}}, watch);
  ASSERT_TRUE(phase);
  EXPECT_GE(phase->front().size(), 2u);
  EXPECT_LT(phase->front().size(), 300u);
}

std::vector<Done> steady(std::size_t count, double seconds, double every, std::size_t bytes = 1024,
                         double from = 0) {
  std::vector<Done> out;
  for (std::size_t i = 0; i < count; ++i) {
    const double start = from + static_cast<double>(i) * every;
    out.push_back({bytes, start, start, start + seconds, seconds * (1 + 0.01 * static_cast<double>(i % 3))});
  }
  return out;
}

TEST(Slowdown, IsOfEachSizeAgainstItself) {
  auto alone = steady(20, 1e-3, 0.01, 1024), together = steady(20, 2e-3, 0.01, 1024);
  const auto big = steady(20, 10e-3, 0.1, 1 << 20), big_together = steady(5, 20e-3, 0.1, 1 << 20);
  alone.insert(alone.end(), big.begin(), big.end());
  together.insert(together.end(), big_together.begin(), big_together.end());
  const auto slower = slowdown_of(alone, together);
  ASSERT_TRUE(slower);
  EXPECT_NEAR(slower->ratio, 2, 0.05);
  EXPECT_LE(slower->ci95.low, slower->ratio);
  EXPECT_GE(slower->ci95.high, slower->ratio);
  EXPECT_LT(slower->ci95.high - slower->ci95.low, 0.1);
  EXPECT_FALSE(slowdown_of(steady(2, 1, 1), together));
  EXPECT_FALSE(slowdown_of(steady(9, 1, 1, 77), together)) << "no size in common";
}

TEST(Overlap, OnlyOperationsThatMeet) {
  const auto mine = steady(10, 0.1, 1);
  const std::vector<Done> other{{1, 0, 2.05, 4.5, 2.45}};
  const auto found = overlapping(mine, other);
  ASSERT_EQ(found.size(), 3u);  // at 2, 3 and 4
  EXPECT_DOUBLE_EQ(found.front().start, 2);
}

Report report_of(double small_slower, double large_slower) {
  Report report;
  report.profile = "test", report.ranks = 2;
  StreamResult small, large;
  small.plan = plan_stream(stream("small", "all_reduce", {1024}, 0.01), 1, 1e-4);
  small.alone = steady(100, 1e-4, 0.01), small.together = steady(100, 1e-4 * small_slower, 0.01);
  large.plan = plan_stream(stream("large", "broadcast", {1u << 30}, 0.1), 1, 1e-2);
  large.alone = steady(10, 1e-2, 0.1, 1u << 30),
  large.together = steady(10, 1e-2 * large_slower, 0.1, 1u << 30);
  report.streams = {small, large};
  return report;
}

std::vector<std::string> rules_of(const Report& report, Evidence evidence = {}) {
  evidence.report = &report;
  std::vector<std::string> out;
  for (const auto& j : advise(evidence)) out.push_back(j.subject.substr(7));
  return out;
}

TEST(Advice, EachRuleHasItsCause) {
  using testing::Contains;
  using testing::Not;
  EXPECT_THAT(rules_of(report_of(1.0, 2.0)), Contains("small-fine-large-slow"));
  EXPECT_THAT(rules_of(report_of(2.0, 1.0)), Contains("large-fine-small-slow"));
  EXPECT_THAT(rules_of(report_of(2.0, 2.0)), Contains("all-slow"));
  Evidence crowded;
  crowded.load["h"] = {4, 2};
  EXPECT_THAT(rules_of(report_of(2.0, 2.0), crowded), Contains("too-few-cpus"));
  const auto quiet = rules_of(report_of(1.0, 1.0));
  EXPECT_EQ(quiet, std::vector<std::string>{"not-judged"}) << testing::PrintToString(quiet);
}

TEST(Advice, CountersAndInterrupts) {
  using testing::Contains;
  using testing::Not;
  auto report = report_of(1, 1);
  Evidence evidence;
  evidence.counters["h"] = {{"tcp.RetransSegs", 50}, {"tcp.OutSegs", 10000}, {"mlx5_0/1.packet_seq_err", 3}};
  report.interrupts = {{"h", "nic", "eth0", "24", "rx-0", 5000, 3, 0.99},
                       {"h", "nic", "eth0", "25", "rx-1", 100, 4, 1}};
  auto rules = rules_of(report, evidence);
  EXPECT_THAT(rules, testing::UnorderedElementsAre("network-loss", "interrupts-on-one-cpu"));
  evidence.counters["h"] = {{"tcp.RetransSegs", 1}, {"tcp.OutSegs", 100000}, {"mlx5_0/1.port_xmit_data", 3}};
  report.interrupts = {{"h", "nic", "eth0", "24", "rx-0", 5000, 3, 0.99},
                       {"h", "nic", "eth0", "25", "rx-1", 5000, 4, 1}};
  rules = rules_of(report, evidence);
  EXPECT_TRUE(rules.empty()) << testing::PrintToString(rules);
}

TEST(Advice, WhatWasNotReadIsSaid) {
  const auto report = report_of(1, 1);
  Evidence evidence;
  evidence.report = &report;
  evidence.unread["h"] = "/proc/interrupts: denied";
  const auto all = advise(evidence);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0].text, HasSubstr("interrupts and counters of h: /proc/interrupts: denied"));
}

TEST(Report, BandwidthIsExpectedAtTheRateOfTheSameScheduleAlone) {
  const auto report = report_of(1, 2);
  const auto results = measurements_of(report);
  ASSERT_EQ(results.size(), 8u);
  EXPECT_EQ(results[7].name, "mixed.interference");
  EXPECT_NEAR(*results[7].median, 0.5, 0.02);
  EXPECT_EQ(results[6].name, "mixed.bandwidth");
  ASSERT_TRUE(results[6].expected);
  EXPECT_FALSE(results[0].verified) << "nothing was compared";
  EXPECT_THAT(table_text(report), HasSubstr("2.00 x"));
}

TEST(Report, WrongDataFail) {
  auto report = report_of(1, 1);
  report.streams[0].checked = coll::Checked{1, 100, "rank 1: element 3"};
  EXPECT_EQ(measurements_of(report)[0].status, model::MeasureStatus::failed);
}

// A few files by name.
class FakeHost final : public host::Host {
 public:
  Result<std::string> read(std::string_view path) const override {
    const auto at = files.find(std::string(path));
    if (at == files.end()) return fail(Errc::not_found, "{}: not found", path);
    return at->second;
  }
  Result<std::vector<std::string>> list(std::string_view path) const override {
    const auto at = folders.find(std::string(path));
    if (at == folders.end()) return fail(Errc::not_found, "{}: not found", path);
    return at->second;
  }
  Result<std::string> link(std::string_view) const override { return fail(Errc::not_found, "none"); }
  Result<std::string> run(std::span<const std::string>) const override {
    return fail(Errc::unsupported, "none");
  }
  Result<std::string> probe(std::string_view) const override { return fail(Errc::unsupported, "none"); }
  std::map<std::string, std::string> files;
  std::map<std::string, std::vector<std::string>> folders;
};

TEST(Interrupts, RatesOfTheNicsVectorsAndSoftirqs) {
  FakeHost host;
  host.folders = {{"/sys/class/net", {"eth0", "lo"}},
                  {"/sys/class/net/eth0/device/../msi_irqs", {"24", "25"}}};
  host.files = {{"/proc/interrupts", "  CPU0 CPU1\n24: 10 20 MSI rx-0\n25: 0 0 MSI rx-1\n30: 1 1 MSI nvme\n"},
                {"/proc/softirqs", "  CPU0 CPU1\nNET_RX: 100 0\nTIMER: 5 5\n"}};
  const auto before = read_interrupts(host, 10);
  ASSERT_TRUE(before) << before.error().to_string();
  host.files = {
      {"/proc/interrupts", "  CPU0 CPU1\n24: 110 320 MSI rx-0\n25: 0 0 MSI rx-1\n30: 9 9 MSI nvme\n"},
      {"/proc/softirqs", "  CPU0 CPU1\nNET_RX: 1100 0\nTIMER: 5 5\n"}};
  const auto rates = rates_between(*before, *read_interrupts(host, 12));
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_EQ(rates[0].id, "NET_RX");
  EXPECT_DOUBLE_EQ(rates[0].per_second, 500);
  EXPECT_EQ(rates[1].nic, "eth0");
  EXPECT_DOUBLE_EQ(rates[1].per_second, 200);
  EXPECT_EQ(rates[1].busiest_cpu, 1);
  EXPECT_DOUBLE_EQ(rates[1].busiest_share, 0.75);
  const auto again = unpacked(packed(rates), "h");
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[1].host, "h");
  EXPECT_EQ(again[1].name, "rx-0");
  EXPECT_DOUBLE_EQ(again[1].busiest_share, 0.75);
  host.files.erase("/proc/softirqs");
  const auto missing = read_interrupts(host, 13);
  ASSERT_FALSE(missing);
  EXPECT_EQ(*missing.error().file, "/proc/softirqs");
}

std::vector<std::unique_ptr<coll::ByteSource>> one_source(std::size_t bytes) {
  std::vector<std::unique_ptr<coll::ByteSource>> out;
  out.push_back(coll::host_source(bytes));
  return out;
}

Result<void> wait_for(coll::Lane& lane) {
  for (;;) {
    const auto ended = lane.ended();
    if (!ended) return tl::unexpected(ended.error());
    if (*ended) return {};
  }
}

TEST(Checkpoint, CopiesAndWrites) {
  auto lane = make_checkpoint(one_source(1 << 20), testing::TempDir());
  ASSERT_TRUE(lane) << lane.error().text;
  const auto checked = (*lane)->verify(1 << 20);
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->wrong, 0u);
  EXPECT_EQ(checked->checked, 1u << 20);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE((*lane)->start(1 << 20));
    EXPECT_TRUE(wait_for(**lane));
  }
}

TEST(Checkpoint, AFullDiskIsSaid) {
  EXPECT_FALSE(make_checkpoint(one_source(1 << 20), "/nonexistent"));
  EXPECT_FALSE(has_room("/", std::size_t{1} << 62));
  EXPECT_TRUE(has_room("/", 1));
}

TEST(Loss, OfTcpAndOfPorts) {
  EXPECT_TRUE(signs_of_loss({{"tcp.RetransSegs", 5}, {"tcp.OutSegs", 100000}}).empty());
  EXPECT_TRUE(signs_of_loss({{"tcp.RetransSegs", 5}, {"tcp.OutSegs", 10}}).empty()) << "too few to say";
  EXPECT_EQ(signs_of_loss({{"tcp.RetransSegs", 500}, {"tcp.OutSegs", 100000}}).size(), 1u);
  EXPECT_EQ(signs_of_loss({{"m/1.out_of_sequence", 1}, {"m/1.port_rcv_data", 9}}).size(), 1u);
}

parse::StepLog log_of(int rank, double seconds, double dataloader, double communication, double exposed) {
  parse::StepLog log;
  log.kind = "ddp", log.op = "all_reduce", log.rank = rank, log.ranks = 2;
  for (int i = 0; i < 7; ++i) {
    parse::TrainingStep step;
    step.step = i, step.seconds = i < 2 ? 100 : seconds;
    step.compute = seconds / 2, step.dataloader = dataloader, step.communication = communication;
    step.exposed = exposed, step.communication_bytes = 4e6, step.calls = 4;
    log.steps.push_back(step);
  }
  return log;
}

Levels levels_of(double dataloader, double communication, double exposed) {
  Levels levels;
  levels.step =
      summarise_steps({log_of(0, 0.1, dataloader, communication, exposed), log_of(1, 0.09, 0, 0, 0)});
  levels.collective = CollectiveAlone{0.005, 10, 20};
  levels.counters = std::map<std::string, double>{{"tcp.OutSegs", 5}};
  return levels;
}

TEST(Levels, TheSlowestRankCountsAndTheFirstStepsDoNot) {
  const auto levels = levels_of(0.001, 0.02, 0.001);
  ASSERT_TRUE(levels.step);
  EXPECT_DOUBLE_EQ(levels.step->median, 0.1);
  EXPECT_EQ(levels.step->seconds.size(), 5u);
  EXPECT_DOUBLE_EQ(*levels.step->call_bytes(), 1e6);
  EXPECT_FALSE(summarise_steps({}));
}

TEST(Levels, TheVerdictNamesTheLevelThatLosesMost) {
  EXPECT_EQ(verdict_of(levels_of(0.001, 0.02, 0.001)).level, "none");
  EXPECT_EQ(verdict_of(levels_of(0.03, 0.02, 0.001)).level, "profile");
  EXPECT_EQ(verdict_of(levels_of(0.001, 0.02, 0.02)).level, "profile");
  EXPECT_EQ(verdict_of(levels_of(0.001, 0.06, 0.02)).level, "step");
  auto slow = levels_of(0.001, 0.02, 0.001);
  slow.expected_busbw_gbytes_per_s = 40;
  EXPECT_EQ(verdict_of(slow).level, "collective");
  slow.counters = std::map<std::string, double>{{"m/1.symbol_error", 3}};
  EXPECT_EQ(verdict_of(slow).level, "ports");
}

TEST(Levels, UnknownIsSaid) {
  auto levels = levels_of(0.001, 0.02, 0.001);
  levels.collective.reset(), levels.no_collective = "no GPU";
  auto verdict = verdict_of(levels);
  EXPECT_EQ(verdict.level, "unknown");
  EXPECT_THAT(verdict.unknown, testing::Contains(HasSubstr("no GPU")));
  levels = Levels();
  levels.no_step = "torch is not here";
  verdict = verdict_of(levels);
  EXPECT_EQ(verdict.level, "unknown");
  EXPECT_THAT(levels_text(levels), HasSubstr("2 step        unknown: torch is not here"));
  EXPECT_EQ(measurements_of(levels)[0].status, model::MeasureStatus::waived);
}

}  // namespace
}  // namespace topotune::mixed
