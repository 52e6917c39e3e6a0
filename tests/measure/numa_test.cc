#include "measure/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "measure/node_memory.h"

namespace topotune::measure {
namespace {

TEST(NodeMemory, IsWholeHugePagesAndTouched) {
  auto memory = NodeMemory::make(3 << 20, std::nullopt);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->size(), 4u << 20);
  EXPECT_EQ(memory->data()[0], std::byte{1});
  EXPECT_FALSE(memory->pages().empty());
}

TEST(NodeMemory, ANodeThatIsNotThereIsAnError) {
  const auto memory = NodeMemory::make(1 << 20, 1023);
  ASSERT_FALSE(memory);
  EXPECT_THAT(memory.error().text, testing::HasSubstr("memory of node 1023"));
}

TEST(CpuChain, IsOneCycleThroughEveryLine) {
  auto memory = NodeMemory::make(4 << 20, std::nullopt);
  ASSERT_TRUE(memory);
  CpuChain chain(*memory, 3);
  EXPECT_EQ(chain.lines(), (4u << 20) / 64);
  EXPECT_GT(chain.chase(1000), 0);
  EXPECT_TRUE(chain.closes());
  // Fewer loads than lines never come back to the start.
  auto* const start = reinterpret_cast<void**>(memory->data());
  void** p = start;
  for (std::uint64_t i = 0; i + 1 < chain.lines(); ++i) {
    p = static_cast<void**>(*p);
    ASSERT_NE(p, start);
  }
  EXPECT_EQ(*p, static_cast<void*>(start));
}

TEST(CpuChain, ABrokenChainIsNoticed) {
  auto memory = NodeMemory::make(4 << 20, std::nullopt);
  CpuChain chain(*memory, 3);
  auto* const second = static_cast<void**>(*reinterpret_cast<void**>(memory->data()));
  *second = memory->data();  // a short cut
  EXPECT_FALSE(chain.closes());
}

TEST(Bandwidth, WrongDataIsAnError) {
  const auto memory = NodeMemory::make(2 << 20, std::nullopt);
  fill_words(*memory);
  const auto cpus = std::vector<int>{allowed_cpus().to_vector().front()};
  const auto good = read_bandwidth(*memory, cpus, 2);
  ASSERT_TRUE(good) << good.error().text;
  EXPECT_GT(*good, 0);
  EXPECT_TRUE(copy_bandwidth(*memory, cpus, 1));
  EXPECT_FALSE(read_bandwidth(*memory, cpus, 1));  // the copy changed the second half
}

TEST(Bandwidth, SlicesOfSeveralThreadsCoverAll) {
  const auto memory = NodeMemory::make(2 << 20, std::nullopt);
  fill_words(*memory);
  const int cpu = allowed_cpus().to_vector().front();
  EXPECT_TRUE(read_bandwidth(*memory, {cpu, cpu, cpu}, 1));
}

TEST(Pinned, GivesTheOldSetBack) {
  const CpuSet before = allowed_cpus();
  CpuSet one;
  one.add(before.to_vector().back());
  {
    const Pinned pinned(one);
    EXPECT_TRUE(pinned.holds());
    EXPECT_EQ(allowed_cpus(), one);
  }
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(Pinned, CpusThatAreNotOursHoldNothing) {
  CpuSet far;
  far.add(65000);
  const CpuSet before = allowed_cpus();
  const Pinned pinned(far);
  EXPECT_FALSE(pinned.holds());
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(RunNuma, OneNodeHasLocalValuesAndTheRestWaived) {
  Policy policy;
  policy.max_seconds = 0.02;
  Session session(policy, {});
  NumaOptions options;
  options.latency_bytes = options.bandwidth_bytes = 8u << 20;
  model::Topology topology;
  run_numa(session, topology, options);
  const auto results = session.collected().results;
  ASSERT_EQ(results.size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(results[i].median) << results[i].name << results[i].why;
    EXPECT_TRUE(results[i].verified) << results[i].why;
  }
  EXPECT_EQ(results[3].name, "numa.remote");
  EXPECT_EQ(results[3].status, model::MeasureStatus::waived);
}

TEST(Distances, AnOrderThatDisagreesIsSaid) {
  const std::vector<NodeLatency> cells{
      {0, 0, 150e-9, 10}, {0, 1, 90e-9, 20}, {1, 1, 90e-9, 10}, {1, 0, 160e-9, 20}};
  const auto said = judge_distances(cells);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].subject, "node 0");
  EXPECT_THAT(said[0].text, testing::HasSubstr("memory of node 0 takes 150.0 ns, of node 1 90.0 ns"));
}

TEST(Distances, UnknownDistancesSayNothing) {
  EXPECT_TRUE(judge_distances({{0, 0, 150e-9, std::nullopt}, {0, 1, 90e-9, 20}}).empty());
  EXPECT_TRUE(judge_distances({{0, 0, 100e-9, 10}, {0, 1, 95e-9, 21}}).empty());  // within 20 %
}

}  // namespace
}  // namespace topotune::measure
