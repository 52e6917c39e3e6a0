#include "plugins/ticks.h"

#include <gtest/gtest.h>

namespace topotune::plugins {
namespace {

// A processor of 2 ticks a ns, whose thread is away for `away` ns from the reading `from` on.
struct Machine {
  std::uint64_t ns = 1000;
  int readings = 0, from = -1;
  std::uint64_t away = 0;
  void step() {
    if (++readings == from) ns += away;
    ns += 20;
  }
  TickPair pair() {
    return tightest_pair([&] { return step(), 2 * ns; }, [&] { return step(), ns; });
  }
};

TEST(Ticks, ALostProcessorDoesNotSpoilTheRate) {
  for (int from = 1; from <= 48; ++from) {
    Machine machine;
    machine.from = from, machine.away = 4'000'000;
    const auto first = machine.pair();
    machine.ns += 3'000'000, machine.readings = 0;
    const auto last = machine.pair();
    EXPECT_NEAR(static_cast<double>(tick_rate(first, last)) / 0x1p32, 0.5, 1e-5) << from;
  }
}

TEST(Ticks, WhatStaysWideIsNoRate) {
  const TickPair first{1000, 500, 40};
  EXPECT_NE(tick_rate(first, {6'001'000, 3'000'500, 1000}), 0);
  EXPECT_EQ(tick_rate(first, {6'001'000, 3'000'500, 1200}), 0);  // a 10^4th is 600
  EXPECT_EQ(tick_rate(first, {900, 3'000'500, 40}), 0);          // a counter that went back
  EXPECT_EQ(tick_rate(first, {6'001'000, 500, 40}), 0);
}

}  // namespace
}  // namespace topotune::plugins
