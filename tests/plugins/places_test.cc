#include "plugins/places.h"

#include <gtest/gtest.h>

namespace topotune::plugins {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(Places, TheOneGivenBackLongestAgoComesNext) {
  Places<3> places;
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(places.take(0), i);
  EXPECT_EQ(places.take(0), std::nullopt);
  places.give_back(1, 10), places.give_back(0, 20);
  EXPECT_EQ(places.take(kSecond), std::nullopt);  // its events may still come
  EXPECT_EQ(places.take(kSecond + 10), 1u);
  EXPECT_EQ(places.take(kSecond + 20), 0u);
  EXPECT_EQ(places.take(9 * kSecond), std::nullopt);
}

TEST(Places, AfterManyOthersWithoutWaiting) {
  Places<100> places;
  for (unsigned i = 0; i < 100; ++i) places.take(0);
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(places.give_back(i, 0), std::nullopt);
  EXPECT_EQ(places.take(0), std::nullopt);
  EXPECT_EQ(places.give_back(64, 0), 0u);
  EXPECT_EQ(places.give_back(65, 0), 1u);
  EXPECT_EQ(places.take(0), 0u);
  EXPECT_EQ(places.take(0), 1u);
  EXPECT_EQ(places.take(0), std::nullopt);
}

}  // namespace
}  // namespace topotune::plugins
