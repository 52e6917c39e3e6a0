#include "cuda/suite.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "cuda/kernel_image.h"

namespace topotune::cuda {
namespace {

using model::Measurement;
using model::MeasureStatus;
using testing::HasSubstr;

// Runs a suite on the driver of tests/cuda/fake, with a fault or without.
class FakeSuites : public testing::Test {
 protected:
  void SetUp() override {
    // A library that is loaded already is found by its name.
    if (::dlopen(TOPOTUNE_FAKE_CUDA, RTLD_NOW) == nullptr) GTEST_SKIP() << ::dlerror();
    if (kernel_image().empty()) GTEST_SKIP() << "built without a CUDA compiler";
    set("", 2);
    options_.bytes = 1u << 20;
  }
  void TearDown() override { set("", 2); }
  static void set(const char* fault, int gpus) {
    ::setenv("FAKE_CUDA_FAULT", fault, 1);
    ::setenv("FAKE_CUDA_GPUS", std::to_string(gpus).c_str(), 1);
  }

  std::vector<Measurement> run(void (*suite)(const Bench&)) {
    measure::Policy policy;
    policy.max_seconds = 0.05;
    measure::Session session(policy, hooks_);
    const auto machine = open_machine([](const std::string&) { return std::string(); });
    if (!machine) {
      error_ = machine.error().text;
      return {};
    }
    absent_ = (*machine)->absent;
    const model::Topology topology;
    const measure::ExpectedValues expected(topology);
    suite(Bench{session, **machine, expected, nullptr, options_});
    models_ = session.collected().models;
    return session.collected().results;
  }
  static void host_suite(const Bench& bench) { run_host(bench, {{0, {}}}); }

  static std::vector<Measurement> named(const std::vector<Measurement>& all, const std::string& name) {
    std::vector<Measurement> out;
    std::ranges::copy_if(all, std::back_inserter(out), [&](const auto& m) { return m.name == name; });
    return out;
  }

  SuiteOptions options_;
  measure::Session::Hooks hooks_;
  std::string error_;
  std::vector<Absent> absent_;
  std::vector<model::SizeModel> models_;
};

TEST_F(FakeSuites, EveryCellOfTwoGpusIsMeasuredAndVerified) {
  options_.parts = {"matrix", "both", "latency", "pingpong"};
  const auto results = run(run_p2p);
  for (const auto& m : results) {
    EXPECT_EQ(m.status, MeasureStatus::ok) << key_of(m) << ": " << m.why;
    EXPECT_TRUE(m.verified) << key_of(m) << ": " << m.verified_how;
    EXPECT_TRUE(m.median);
  }
  for (const char* name : {"p2p.write.ce", "p2p.read.ce", "p2p.write.sm", "p2p.read.sm", "p2p.both.write.ce",
                           "p2p.both.read.sm"})
    EXPECT_EQ(named(results, name).size(), 2u) << name;
  EXPECT_EQ(named(results, "p2p.latency.load").size(), 2u);
  EXPECT_EQ(named(results, "p2p.latency.local").size(), 2u);
  EXPECT_EQ(named(results, "p2p.pingpong.put").size(), 3u);
  const auto flag = named(results, "p2p.pingpong.flag");
  ASSERT_EQ(flag.size(), 1u);
  EXPECT_EQ(flag[0].samples.size(), 512u * 100);  // at 512 places
  EXPECT_NEAR(*flag[0].median, 1.3515e-6, 2e-9);
  // 1 MiB at 395 GB/s and 2 us for each copy: the fake's own clock.
  EXPECT_NEAR(*named(results, "p2p.write.ce")[0].median, 1048576 / (2e-6 + 1048576 / 395e9) / 1e9, 0.5);
}

TEST_F(FakeSuites, TheSweepIsFitted) {
  options_.parts = {"sweep", "sms"};
  const auto results = run(run_p2p);
  EXPECT_EQ(named(results, "p2p.sweep.write.ce").size(), 18u);  // 8 B to 1 MiB
  EXPECT_EQ(named(results, "p2p.sweep.read.sm").size(), 17u);
  ASSERT_EQ(models_.size(), 4u);
  for (const auto& m : models_) EXPECT_LT(m.mean_error, 0.03);
  EXPECT_EQ(named(results, "p2p.sms.write.tma").size(), 10u);
  for (const auto& m : results) EXPECT_TRUE(m.verified) << key_of(m) << m.verified_how;
}

// The fake's streams hold 1024 entries and such a copy takes 16: a driver that waits for room behind a closed
// gate.
TEST_F(FakeSuites, SmallReadsThatFillTheStreamDoNotHang) {
  options_.parts = {"sweep"};
  options_.bytes = 64;
  const auto reads = named(run(run_p2p), "p2p.sweep.read.ce");
  ASSERT_EQ(reads.size(), 4u);  // 8 to 64 bytes
  for (const auto& m : reads) {
    EXPECT_EQ(m.status, MeasureStatus::ok) << key_of(m) << ": " << m.why;
    EXPECT_NEAR(*m.median, static_cast<double>(std::get<std::int64_t>(m.params[2].value)) / 2e-6 / 1e9, 1e-4);
  }
}

TEST_F(FakeSuites, CorruptDataFail) {
  set("corrupt", 2);
  options_.parts = {"matrix"};
  for (const auto& m : run(run_p2p)) {
    EXPECT_EQ(m.status, MeasureStatus::failed);
    EXPECT_FALSE(m.verified);
    EXPECT_THAT(m.why, HasSubstr("1 pieces of 16 bytes from GPU"));
    EXPECT_THAT(m.why, HasSubstr("at byte 524288"));
  }
}

TEST_F(FakeSuites, FourGpusAreStressed) {
  set("", 4);
  options_.parts = {"matrix", "stress"};
  const auto results = run(run_p2p);
  EXPECT_EQ(named(results, "p2p.write.ce").size(), 12u);
  for (const char* name : {"p2p.many_to_one", "p2p.one_to_many", "p2p.all_pairs", "p2p.bisection"}) {
    ASSERT_EQ(named(results, name).size(), 1u) << name;
    EXPECT_TRUE(named(results, name)[0].verified) << named(results, name)[0].verified_how;
  }
}

TEST_F(FakeSuites, ScreeningMeasuresThreePartnersOfEach) {
  set("", 8);
  options_.parts = {"matrix"};
  options_.screen = true;
  EXPECT_EQ(named(run(run_p2p), "p2p.write.ce").size(), 24u);
}

TEST_F(FakeSuites, NoPeerAccessIsWaived) {
  set("no-peer", 2);
  const auto results = run(run_p2p);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].status, MeasureStatus::waived);
  EXPECT_EQ(results[0].why, "the driver gives GPU0 no peer access to GPU1");
}

TEST_F(FakeSuites, OneGpuIsWaived) {
  set("", 1);
  const auto results = run(run_p2p);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].why, "1 usable GPU: two are needed");
  EXPECT_EQ(named(run(host_suite), "host.h2d").size(), 1u);
}

TEST_F(FakeSuites, NoGpuIsAnError) {
  set("", 0);
  run(run_p2p);
  EXPECT_THAT(error_, HasSubstr("CUDA_ERROR_NO_DEVICE"));
}

TEST_F(FakeSuites, AnExclusiveGpuIsAbsent) {
  set("exclusive", 2);
  const auto results = run(run_p2p);
  ASSERT_EQ(absent_.size(), 1u);
  EXPECT_EQ(absent_[0].why, "its compute mode is Exclusive_Process and another process holds it");
  EXPECT_EQ(results[0].why, "1 usable GPU: two are needed");
}

TEST_F(FakeSuites, LittleMemoryMakesSmallerCells) {
  set("oom", 2);
  options_.bytes = 64u << 20;
  options_.parts = {"matrix"};
  const auto results = run(run_p2p);
  ASSERT_EQ(results.size(), 8u);
  EXPECT_EQ(std::get<std::int64_t>(results[0].params[2].value), 16 << 20);
  EXPECT_EQ(results[0].status, MeasureStatus::ok) << results[0].why;
}

TEST_F(FakeSuites, KernelsThatDoNotLoadLeaveTheCopyEngine) {
  set("no-kernels", 2);
  options_.parts = {"matrix", "latency", "pingpong"};
  const auto results = run(run_p2p);
  for (const auto& m : named(results, "p2p.write.ce")) {
    EXPECT_EQ(m.status, MeasureStatus::ok);
    EXPECT_FALSE(m.verified);
    EXPECT_THAT(m.verified_how, HasSubstr("do not load on sm_90"));
  }
  for (const char* name : {"p2p.write.sm", "p2p.latency.load", "p2p.pingpong.flag"}) {
    for (const auto& m : named(results, name)) EXPECT_EQ(m.status, MeasureStatus::waived) << name;
  }
}

TEST_F(FakeSuites, ALostGpuFailsAndTheRestGoesOn) {
  set("lost", 2);
  options_.parts = {"matrix", "pingpong"};
  const auto results = run(run_p2p);
  EXPECT_EQ(named(results, "p2p.write.ce")[0].status, MeasureStatus::failed);
  EXPECT_EQ(named(results, "p2p.pingpong.flag")[0].status, MeasureStatus::ok);
}

TEST_F(FakeSuites, HostCopiesAreVerifiedOnBothSides) {
  const auto results = run(host_suite);
  for (const char* name :
       {"host.h2d", "host.d2h", "host.both.h2d", "host.both.d2h", "host.pageable.h2d", "host.pageable.d2h"})
    EXPECT_EQ(named(results, name).size(), 2u) << name;
  EXPECT_EQ(named(results, "host.all.h2d").size(), 1u);
  for (const auto& m : results) EXPECT_TRUE(m.verified) << key_of(m) << ": " << m.verified_how;
}

TEST_F(FakeSuites, AnInterruptionKeepsWhatWasMeasured) {
  int asked = 0;
  hooks_.stop = [&] { return ++asked > 40; };
  options_.parts = {"matrix"};
  const auto results = run(run_p2p);
  EXPECT_GE(results.size(), 1u);
  EXPECT_LT(results.size(), 8u);
}

}  // namespace
}  // namespace topotune::cuda
