#include "net/schedule.h"

#include <gtest/gtest.h>

#include <set>

#include "net/ucx.h"

namespace topotune::net {
namespace {

TEST(Schedule, AllPairsMeetOnceAndNobodyTwiceInARound) {
  for (int n = 0; n <= 17; ++n) {
    std::set<Pair> seen;
    for (const auto& round : all_pairs(n)) {
      std::set<int> busy;
      for (const auto& pair : round) {
        EXPECT_TRUE(busy.insert(pair.first).second && busy.insert(pair.second).second) << n;
        EXPECT_TRUE(seen.insert(pair).second) << n;
      }
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(n * (n - 1) / 2)) << n;
    EXPECT_LE(all_pairs(n).size(), static_cast<std::size_t>(n < 2 ? 0 : n)) << n;
  }
}

TEST(Schedule, ScreeningGivesEveryoneTwoPartnersInAFewRounds) {
  for (int n = 3; n <= 17; ++n) {
    std::vector<int> partners(static_cast<std::size_t>(n));
    for (const auto& round : screening(n)) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second) << n;
        ++partners[static_cast<std::size_t>(a)], ++partners[static_cast<std::size_t>(b)];
      }
    }
    for (const int p : partners) EXPECT_EQ(p, 2) << n;
    EXPECT_LE(screening(n).size(), 3u);
  }
}

TEST(Schedule, HostsOfOneMachineComeOneAfterTheOther) {
  const auto rounds = one_at_a_time(screening(6), {0, 0, 0, 1, 1, 1});
  std::size_t pairs = 0;
  for (const auto& round : rounds) {
    std::set<int> machines;
    for (const auto& [a, b] : round) {
      std::set<int> mine{a < 3 ? 0 : 1, b < 3 ? 0 : 1};
      for (const int m : mine) EXPECT_TRUE(machines.insert(m).second);
    }
    EXPECT_FALSE(round.empty());
    pairs += round.size();
  }
  EXPECT_EQ(pairs, 6u);
}

std::vector<Link> ring(int n, int slow) {
  std::vector<Link> out;
  for (const auto& round : screening(n))
    for (const auto& [a, b] : round) out.push_back({a, b, a == slow || b == slow ? 0.1 : 1.0 + 0.01 * a});
  return out;
}

TEST(Suspects, OneSlowMemberIsFoundAndNobodyElse) {
  for (int n = 4; n <= 12; ++n) {
    for (int slow = 0; slow < n; ++slow) {
      const auto found = suspects_of(ring(n, slow), n);
      EXPECT_EQ(found.members, std::vector<int>{slow}) << n;
      EXPECT_TRUE(found.links.empty());
      const auto again = confirmation(found, n);
      ASSERT_EQ(again.size(), 2u);
      for (const auto& round : again) EXPECT_TRUE(round[0].first == slow || round[0].second == slow);
      EXPECT_NE(again[0], again[1]);
    }
  }
}

TEST(Suspects, ANeighbourOfASlowMemberIsNoSuspectForOneMoreSlowLink) {
  auto links = ring(8, 4);
  for (auto& link : links)
    if (link.a == 2 && link.b == 3) link.gbytes_per_s = 0.3;  // 3's other link is that to 4
  EXPECT_EQ(suspects_of(links, 8).members, (std::vector<int>{3, 4}));
  for (auto& link : links)
    if (link.a == 2 && link.b == 3) link.gbytes_per_s = 0.9;
  EXPECT_EQ(suspects_of(links, 8).members, std::vector<int>{4});
}

TEST(Suspects, WhereAllDifferOnlyWhatIsFarFromAllIsSlow) {
  auto links = ring(8, 5);
  const double noise[] = {0.6, 1.9, 0.45, 1.0, 0.75, 1.4, 0.5, 1.2};
  for (std::size_t i = 0; i < links.size(); ++i)
    links[i].gbytes_per_s = links[i].gbytes_per_s < 0.5 ? 0.02 : noise[i];
  const auto found = suspects_of(links, 8);
  EXPECT_EQ(found.members, std::vector<int>{5});
  EXPECT_TRUE(found.links.empty());
}

TEST(Suspects, ASlowCableIsNoSlowMember) {
  auto links = ring(8, -1);
  links[2].gbytes_per_s = 0.2;
  const auto found = suspects_of(links, 8);
  EXPECT_TRUE(found.members.empty());
  ASSERT_EQ(found.links.size(), 1u);
  EXPECT_EQ(found.links[0], (Pair{links[2].a, links[2].b}));
}

TEST(Suspects, AllEqualIsNone) {
  const auto found = suspects_of(ring(8, -1), 8);
  EXPECT_TRUE(found.members.empty());
  EXPECT_TRUE(found.links.empty());
}

TEST(Lanes, OfWhatUcxPrints) {
  EXPECT_EQ(lanes_in("# UCP endpoint\n#                 lane[0]:  5:tcp/e0.0 md[2] -> md[2]/tcp/sysdev[255] "
                     "am am_bw#0\n"),
            "tcp/e0");
  EXPECT_EQ(lanes_in("# lane[0]: 1:posix/memory.0 md[0]\n# lane[1]: 8:cma/memory.0 md[4]\n"),
            "posix/memory cma/memory");
  EXPECT_EQ(lanes_in("nothing"), "");
}

}  // namespace
}  // namespace topotune::net
