#include "net/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
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

Link link(int a, int b, double rate) { return {a, b, rate, rate}; }

std::vector<Link> ring(int n, int slow) {
  std::vector<Link> out;
  for (const auto& round : screening(n))
    for (const auto& [a, b] : round) out.push_back(link(a, b, a == slow || b == slow ? 0.1 : 1.0 + 0.01 * a));
  return out;
}

TEST(Suspects, OneSlowMemberIsFoundAndNobodyElse) {
  for (int n = 4; n <= 12; ++n) {
    for (int slow = 0; slow < n; ++slow) {
      const auto found = suspects_of(ring(n, slow), n);
      EXPECT_EQ(found.members, std::vector<int>{slow}) << n;
      EXPECT_TRUE(found.links.empty());
      const auto partners = partners_of(slow, found, ring(n, slow), n);
      ASSERT_EQ(partners.size(), 2u);
      EXPECT_NE(partners[0], partners[1]);
      for (const int partner : partners) {
        EXPECT_NE(partner, slow);
        const auto reference = reference_for({slow, partner}, slow, found, ring(n, slow));
        ASSERT_TRUE(reference.has_value());
        EXPECT_TRUE(reference->first != slow && reference->second != slow);
      }
      const auto is_next = [&](int m) { return (m + 1) % n == slow || (slow + 1) % n == m; };
      EXPECT_TRUE(n < 5 || !(is_next(partners[0]) || is_next(partners[1]))) << n;
    }
  }
}

TEST(Suspects, ANeighbourOfASlowMemberIsNoSuspectForOneMoreSlowLink) {
  auto links = ring(8, 4);
  for (auto& l : links)
    if (l.a == 2 && l.b == 3) l = link(2, 3, 0.3);  // 3's other link is that to 4
  EXPECT_EQ(suspects_of(links, 8).members, (std::vector<int>{3, 4}));
  for (auto& l : links)
    if (l.a == 2 && l.b == 3) l = link(2, 3, 0.9);
  EXPECT_EQ(suspects_of(links, 8).members, std::vector<int>{4});
}

TEST(Suspects, OneOfFourIsFoundAlthoughHalfOfAllLinksAreIts) {
  std::vector<Link> links;
  for (const auto& round : all_pairs(4))
    for (const auto& [a, b] : round) links.push_back(link(a, b, a == 2 || b == 2 ? 0.1 : 1.0));
  links[1].there *= 0.6;  // others' load
  const auto found = suspects_of(links, 4);
  EXPECT_EQ(found.members, std::vector<int>{2});
  EXPECT_TRUE(std::ranges::all_of(found.links, [](const Pair& p) { return p.first != 2 && p.second != 2; }));
}

TEST(Suspects, OneDirectionIsEnough) {
  auto links = ring(8, -1);
  for (auto& l : links) (l.a == 3 ? l.there : l.b == 3 ? l.back : l.there) *= l.a == 3 || l.b == 3 ? 0.2 : 1;
  EXPECT_EQ(suspects_of(links, 8).members, std::vector<int>{3});
}

TEST(Suspects, WithoutOthersSuspectsAreComparedWithEachOther) {
  Suspects all;
  all.members = {0, 1, 2};
  all.usual = 1, all.limit = 0.8;
  const std::vector<Link> links{link(0, 1, 0.5), link(1, 2, 0.4), link(2, 0, 0.3)};
  EXPECT_EQ(partners_of(0, all, links, 3).size(), 2u);
  EXPECT_EQ(reference_for({0, 1}, 0, all, links), (Pair{1, 2}));
  EXPECT_EQ(reference_for({0, 1}, 0, all, {link(0, 1, 1)}), std::nullopt);
}

Doubt::State after(const std::vector<std::pair<double, double>>& turns, double usual) {
  Doubt doubt({0, 1}, {2, 3}, 6);
  for (const auto& [mine, other] : turns) {
    if (doubt.state(usual) != Doubt::State::open) break;
    doubt.add_turn({0, 1, mine, 2 * mine}, {2, 3, other, other});
  }
  return doubt.state(usual);
}

TEST(Doubt, OthersLoadMakesNoLinkSlow) {
  EXPECT_EQ(after({{0.2, 1.0}, {0.3, 0.4}, {0.8, 1.1}}, 1.0), Doubt::State::good);
  // The whole machine is slower than before.
  EXPECT_EQ(after({{0.2, 0.25}, {0.2, 0.2}, {0.2, 0.2}, {0.2, 0.2}, {0.2, 0.2}, {0.2, 0.2}}, 1.0),
            Doubt::State::good);
}

TEST(Doubt, ALimitedLinkIsSlowHoweverBusyTheOthersAre) {
  EXPECT_EQ(after({{0.1, 0.9}, {0.1, 0.12}, {0.1, 0.5}}, 1.0), Doubt::State::slow);
  // One turn of a reference that is slowed by others clears nobody.
  EXPECT_EQ(after({{0.1, 0.1}}, 1.0), Doubt::State::open);
  EXPECT_EQ(after({{0.1, 0.9}, {0.1, 0.9}}, 1.0), Doubt::State::open);
  EXPECT_EQ(after({{0.6, 1}, {0.6, 1}, {0.6, 1}, {0.6, 1}, {0.6, 1}}, 1.0), Doubt::State::open);
  EXPECT_EQ(after({{0.6, 1}, {0.6, 1}, {0.6, 1}, {0.6, 1}, {0.6, 1}, {0.6, 1}}, 1.0), Doubt::State::slow);
}

TEST(Doubt, TheSlowerDirectionCounts) {
  Doubt doubt({0, 1}, {2, 3});
  for (int i = 0; i < 5; ++i) doubt.add_turn({0, 1, 1.0, 0.1}, {2, 3, 1.0, 1.0});
  EXPECT_EQ(doubt.state(1.0), Doubt::State::open);  // alone it needs twice the turns
  doubt.add_turn({0, 1, 1.0, 0.1}, {2, 3, 1.0, 1.0});
  EXPECT_EQ(doubt.state(1.0), Doubt::State::slow);
}

TEST(Suspects, ASlowCableIsNoSlowMember) {
  auto links = ring(8, -1);
  links[2].back = 0.2;
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
