#include "tune/prove.h"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/statistics.h"

namespace topotune::tune {
namespace {

// Communicators that a formula describes: level 0 and 3 the default, 1 and 2 a pair with more thread blocks.
// Each one has an offset of its own, as equal communicators do.
class Pairs : public Measurer {
 public:
  std::vector<double> offset{1, 1, 1, 1};
  double noise = 0.003;
  bool two_ways = false;
  std::function<double(const Cell&, const Candidate&)> usual = [](const Cell&, const Candidate&) {
    return 10e-6;
  };
  std::function<double(const Cell&, const Candidate&)> other = usual;

  int ranks() const override { return 2; }
  int nodes() const override { return 1; }
  const std::vector<Level>& levels() const override { return levels_; }
  bool steerable(Collective) const override { return true; }
  Result<Costs> costs(const Cell&, std::size_t) override { return fail(Errc::unsupported, "not asked"); }
  Result<double> sample(const Cell& cell, const Candidate& c) override { return timed(usual(cell, c), c); }
  bool has_other_way(const Cell&) const override { return two_ways; }
  Result<double> sample_other_way(const Cell& cell, const Candidate& c) override {
    return timed(other(cell, c), c);
  }
  Result<bool> verify(const Cell&, const Candidate&) override { return true; }

  double clock = 0;

 private:
  double timed(double seconds, const Candidate& c) {
    clock += 1e-3;
    return seconds * offset[c.level] * (1 + noise * random_.normal()) * (1 + 0.1 * std::sin(clock * 50));
  }
  std::vector<Level> levels_{{}, {32}, {32}, {}};
  measure::Random random_{11};
};

const Choice kRing{1, 0, 8}, kOther{1, 1, 32}, kDefault{1, 0, 0};

Answer answer(std::uint64_t bytes, Choice choice) {
  return {{Collective::all_reduce, bytes}, choice, {}, kDefault};
}

std::vector<Proof> proved(Pairs& m, const std::vector<Answer>& answers, ProveOptions o = {}) {
  if (o.standard.empty()) o.standard = {0, 3}, o.tuned = {1, 2};
  Hooks h;
  h.now = [&m] { return m.clock; };
  return prove(m, answers, o, h);
}

TEST(Prove, AnEntryThatIsNoBetterThanNoneIsDropped) {
  Pairs m;
  const auto proofs = proved(m, {answer(1024, kRing)});
  ASSERT_EQ(proofs.size(), 1u);
  EXPECT_TRUE(proofs[0].proved);
  EXPECT_EQ(proofs[0].after.choice, Choice{});
  EXPECT_FALSE(proofs[0].after.slower);
  EXPECT_TRUE(regions_of(answers_of(proofs), 2, 1).empty());
}

TEST(Prove, AnEntryThatIsBetterStands) {
  Pairs m;
  m.usual = [](const Cell&, const Candidate& c) { return c.choice == kRing ? 9e-6 : 10e-6; };
  const auto proofs = proved(m, {answer(1024, kRing)});
  EXPECT_EQ(proofs[0].after.choice, kRing);
  EXPECT_NEAR(proofs[0].after.ratio.median, 10.0 / 9, 0.01);
}

TEST(Prove, AnEntryThatIsSlowerIsDropped) {
  Pairs m;
  m.usual = [](const Cell&, const Candidate& c) { return c.choice == kRing ? 10.3e-6 : 10e-6; };
  const auto proofs = proved(m, {answer(1024, kRing)});
  EXPECT_EQ(proofs[0].after.choice, Choice{});
}

// More thread blocks cost the host more: NCCL's choice there is slower, the entry with fewer channels is not.
TEST(Prove, AnEntryThatSavesASizeStands) {
  Pairs m;
  m.two_ways = true;
  m.other = [](const Cell&, const Candidate& c) {
    return c.level == 0 || c.level == 3 || c.choice == kRing ? 12e-6 : 12.6e-6;
  };
  const auto proofs = proved(m, {answer(1024, kRing)});
  EXPECT_EQ(proofs[0].after.choice, kRing);
  EXPECT_FALSE(proofs[0].after.slower);
}

// Neither the entry nor none will do: the default's choice with fewer channels is found.
TEST(Prove, WhatIsSlowerGivesWayToTheDefaultsChoice) {
  Pairs m;
  m.usual = [](const Cell&, const Candidate& c) {
    return c.level == 0 || c.level == 3 || c.choice == Choice{1, 0, 16} ? 10e-6 : 10.5e-6;
  };
  auto proofs = proved(m, {answer(1024, kRing)});
  EXPECT_EQ(proofs[0].after.choice, (Choice{1, 0, 16}));
  EXPECT_FALSE(proofs[0].after.slower);
  m.usual = [](const Cell&, const Candidate& c) { return c.level == 0 || c.level == 3 ? 10e-6 : 10.5e-6; };
  proofs = proved(m, {answer(1024, kRing)});
  EXPECT_TRUE(proofs[0].after.slower);
}

// Equal communicators that differ by two percent are no reason to call one slower.
TEST(Prove, WhatEqualCommunicatorsDifferByIsNotSlower) {
  Pairs m;
  m.offset = {0.97, 1.0, 1.0, 1.0};
  const auto proofs = proved(m, {answer(1024, kRing)});
  EXPECT_LT(proofs[0].after.ratio.high, 0.992);
  EXPECT_FALSE(proofs[0].after.slower);
}

TEST(Prove, InDefaultCommunicatorsOnlyWhatIsSurelyFaster) {
  Pairs m;
  m.usual = [](const Cell&, const Candidate& c) { return c.choice == kRing ? 9.95e-6 : 10e-6; };
  ProveOptions o;
  o.standard = o.tuned = {0}, o.same = true;
  EXPECT_EQ(proved(m, {answer(1024, kRing)}, o)[0].after.choice, Choice{});
  m.usual = [](const Cell&, const Candidate& c) { return c.choice == kRing ? 9.5e-6 : 10e-6; };
  EXPECT_EQ(proved(m, {answer(1024, kRing)}, o)[0].after.choice, kRing);
  m.two_ways = true;  // and not slower in the other way
  m.other = [](const Cell&, const Candidate& c) { return c.choice == kRing ? 12.5e-6 : 12e-6; };
  EXPECT_EQ(proved(m, {answer(1024, kRing)}, o)[0].after.choice, Choice{});
}

// Between two sizes whose choices differ the one that is better in the middle is taken.
TEST(Prove, BordersAreMeasured) {
  Pairs m;
  m.usual = [](const Cell& cell, const Candidate& c) {
    const double crossing = 1.9 * 1024 * 1024, bytes = static_cast<double>(cell.bytes);
    if (c.choice == kRing) return bytes < crossing ? 9e-6 : 12e-6;
    if (c.choice == kOther) return bytes < crossing ? 12e-6 : 9e-6;
    return 10e-6;
  };
  const auto proofs = proved(m, {answer(1 << 20, kRing), answer(2 << 20, kOther)});
  ASSERT_EQ(proofs.size(), 3u);
  EXPECT_TRUE(proofs[1].border);
  EXPECT_EQ(proofs[1].after.choice, kRing);
  const auto regions = regions_of(answers_of(proofs), 2, 1);
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_GT(regions[0].to, 1'600'000u);
}

// What was not proved is not written.
TEST(Prove, WithoutTimeNothingStands) {
  Pairs m;
  m.usual = [](const Cell&, const Candidate& c) { return c.choice == kRing ? 5e-6 : 10e-6; };
  ProveOptions o;
  o.standard = {0, 3}, o.tuned = {1, 2}, o.budget_seconds = -1;
  const auto proofs = proved(m, {answer(1024, kRing)}, o);
  EXPECT_FALSE(proofs[0].proved);
  EXPECT_TRUE(regions_of(answers_of(proofs), 2, 1).empty());
}

TEST(Regions, SizesFarApartDoNotSpeakForWhatLiesBetween) {
  const auto regions = regions_of({answer(1 << 10, kRing), answer(1 << 20, kRing)}, 2, 1);
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0].to, 2048u);
  EXPECT_EQ(regions[1].from, 1u << 19);
  EXPECT_EQ(regions[1].to, 1u << 20);
}

}  // namespace
}  // namespace topotune::tune
