#include "tune/prove.h"

#include <gtest/gtest.h>

#include "fresh.h"

namespace topotune::tune {
namespace {

const Choice kRing{1, 0, 8}, kOther{1, 1, 32}, kDefault{1, 0, 0};

Answer answer(std::uint64_t bytes, Choice choice) {
  return {{Collective::all_reduce, bytes}, choice, {}, kDefault};
}

std::vector<Proof> proved(Fresh& m, const std::vector<Answer>& answers, const ProveOptions& o = {}) {
  const auto got = prove(m, answers, o, m.hooks());
  EXPECT_TRUE(got);
  return got->proofs;
}

// Seconds of kRing; of everything else 10 us.
auto ring(double seconds) {
  return [=](const Cell&, Kind, const Choice& c) { return c == kRing ? seconds : 10e-6; };
}

TEST(Prove, AnEntryThatIsNoBetterThanNoneIsDropped) {
  Fresh m;
  const auto proofs = proved(m, {answer(1 << 20, kRing)});
  ASSERT_EQ(proofs.size(), 1u);
  EXPECT_TRUE(proofs[0].proved);
  EXPECT_EQ(proofs[0].after.choice, Choice{});
  EXPECT_NE(proofs[0].after.verdict, Verdict::slower);
  EXPECT_TRUE(regions_of(answers_of(proofs), 2, 1).empty());
}

TEST(Prove, AnEntryThatIsBetterStands) {
  Fresh m;
  m.usual = ring(9e-6);
  const auto proofs = proved(m, {answer(1024, kRing)});
  EXPECT_EQ(proofs[0].after.choice, kRing);
  EXPECT_NEAR(proofs[0].after.ratio.median, 10.0 / 9, 0.02);
  EXPECT_EQ(proofs[0].after.verdict, Verdict::not_slower);
}

// A small size is not worth a line for two percent, a larger one is.
TEST(Prove, SmallGainsOfSmallSizesAreLeftOut) {
  Fresh m;
  m.offset = 0.003;
  m.usual = ring(9.8e-6);
  const auto proofs = proved(m, {answer(1024, kRing), answer(1 << 20, kRing)});
  EXPECT_EQ(proofs.front().after.choice, Choice{});
  EXPECT_EQ(proofs.back().after.choice, kRing);
}

TEST(Prove, AnEntryThatIsSlowerIsDropped) {
  Fresh m;
  m.usual = ring(10.3e-6);
  EXPECT_EQ(proved(m, {answer(1024, kRing)})[0].after.choice, Choice{});
}

// More thread blocks cost the host more: NCCL's choice there is slower, the entry with fewer channels is not.
TEST(Prove, AnEntryThatSavesASizeStands) {
  Fresh m;
  m.two_ways = true;
  m.other = [](const Cell&, Kind kind, const Choice& c) {
    return kind != Kind::tuned || c == kRing ? 12e-6 : 12.6e-6;
  };
  const auto proofs = proved(m, {answer(1024, kRing)});
  EXPECT_EQ(proofs[0].after.choice, kRing);
  EXPECT_NE(proofs[0].after.verdict, Verdict::slower);
}

// More thread blocks are faster by 8 % once the kernels run, and by chance or not slower to start: what
// cannot be told apart gives way to the default's own choice. Where they are not slower, the gain stays.
TEST(Prove, AGainInOneWayIsNotPaidForInTheOther) {
  const Choice all{1, 0, 32};  // the search's: says the same as no entry
  int saved = 0, saved_from_entry = 0, kept = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Fresh m(seed);
    m.two_ways = true, m.offset = 0.02;
    m.usual = [](const Cell&, Kind kind, const Choice& c) {
      return kind == Kind::tuned && (c == Choice{} || c == Choice{1, 0, 32}) ? 9.2e-6 : 10e-6;
    };
    m.other = [](const Cell&, Kind kind, const Choice& c) {
      return kind == Kind::tuned && (c == Choice{} || c == Choice{1, 0, 32}) ? 12.25e-6 : 12e-6;
    };
    saved += proved(m, {answer(1 << 20, {})})[0].after.choice == Choice{1, 0, 24};
    saved_from_entry += proved(m, {answer(1 << 20, all)})[0].after.choice == Choice{1, 0, 24};
    Fresh quick(seed);
    quick.two_ways = true, quick.offset = 0.005;
    quick.usual = m.usual;
    quick.other = [](const Cell&, Kind kind, const Choice& c) {
      return kind == Kind::tuned && c == Choice{} ? 11.6e-6 : 12e-6;
    };
    kept += proved(quick, {answer(1 << 20, {})})[0].after.choice == Choice{};
  }
  EXPECT_GE(saved, 18);
  EXPECT_GE(saved_from_entry, 18);
  EXPECT_EQ(kept, 20);
}

// A first CUDA graph changes what launches in streams cost.
TEST(Prove, StreamsAreMeasuredBeforeGraphs) {
  Fresh m;
  m.two_ways = m.graphs_hide = true;
  m.other = [](const Cell&, Kind kind, const Choice& c) {
    return kind == Kind::tuned && c == Choice{} ? 12.6e-6 : 12e-6;
  };
  const auto proofs = proved(m, {answer(256 << 10, {}), answer(1 << 20, {})});
  for (const auto& p : {proofs.front(), proofs.back()})
    EXPECT_EQ(p.after.choice, (Choice{1, 0, 24})) << p.cell.bytes;
}

// Neither the entry nor none will do: the default's choice with fewer channels is found.
TEST(Prove, WhatIsSlowerGivesWayToTheDefaultsChoice) {
  Fresh m;
  m.usual = [](const Cell&, Kind kind, const Choice& c) {
    return kind != Kind::tuned || c == Choice{1, 0, 16} ? 10e-6 : 10.5e-6;
  };
  auto proofs = proved(m, {answer(1024, kRing)});
  EXPECT_EQ(proofs[0].after.choice, (Choice{1, 0, 16}));
  EXPECT_NE(proofs[0].after.verdict, Verdict::slower);
  m.usual = [](const Cell&, Kind kind, const Choice&) { return kind != Kind::tuned ? 10e-6 : 10.5e-6; };
  proofs = proved(m, {answer(1024, kRing)});
  EXPECT_EQ(proofs[0].after.verdict, Verdict::slower);
}

// A size that NCCL does not ask about, slower by chance in the first communicators, is looked at again in
// others.
TEST(Prove, SlowerIsConfirmedBeforeItCounts) {
  Fresh m;
  m.usual = [&](const Cell&, Kind kind, const Choice&) {
    return kind == Kind::tuned && m.generations <= 4 ? 10.5e-6 : 10e-6;
  };
  EXPECT_NE(proved(m, {{{Collective::all_to_all, 1 << 20}, {}, {}, {}}})[0].after.verdict, Verdict::slower);
  EXPECT_GT(m.generations, 4u);
}

// Luck of one communicator neither makes an entry nor calls a size slower: of 100 equal ones next to none.
TEST(Prove, WhatEqualCommunicatorsDifferByDecidesNothing) {
  int entries = 0, slower = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Fresh m(seed);
    m.offset = 0.015;
    const auto p = proved(m, {answer(1024, kRing)})[0];
    entries += p.after.choice != Choice{};
    slower += p.after.verdict == Verdict::slower;
  }
  EXPECT_EQ(entries, 0);
  EXPECT_LE(slower, 2);
}

// What the settings do to sizes without an entry is said of all of them together.
TEST(Prove, WhatLeavingOutCostsIsMeasured) {
  Fresh m;
  m.offset = 0.005;
  std::vector<Answer> answers;
  for (std::uint64_t bytes = 1024; bytes <= 64 << 10; bytes *= 2) answers.push_back(answer(bytes, {}));
  const auto free = prove(m, answers, {}, m.hooks());
  ASSERT_TRUE(free && free->left_out);
  EXPECT_EQ(free->left_out_cells, 7u);
  EXPECT_NEAR(free->left_out->median, 1, 0.004);
  m.usual = [](const Cell&, Kind kind, const Choice&) { return kind == Kind::tuned ? 10.06e-6 : 10e-6; };
  const auto costs = prove(m, answers, {}, m.hooks());
  EXPECT_LT(costs->left_out->high, 0.9995);
}

TEST(Prove, InDefaultCommunicatorsOnlyWhatIsSurelyFaster) {
  Fresh m;
  ProveOptions o;
  o.same = true;
  m.usual = ring(9.95e-6);
  EXPECT_EQ(proved(m, {answer(1 << 20, kRing)}, o)[0].after.choice, Choice{});
  EXPECT_EQ(proved(m, {answer(1 << 20, kRing)}, o)[0].after.verdict, Verdict::not_slower);
  m.usual = ring(9.5e-6);
  EXPECT_EQ(proved(m, {answer(1 << 20, kRing)}, o)[0].after.choice, kRing);
  m.two_ways = true;  // and not slower in the other way
  m.other = [](const Cell&, Kind, const Choice& c) { return c == kRing ? 12.5e-6 : 12e-6; };
  EXPECT_EQ(proved(m, {answer(1 << 20, kRing)}, o)[0].after.choice, Choice{});
}

// Between two sizes whose choices differ the one that is better in the middle is taken.
TEST(Prove, BordersAreMeasured) {
  Fresh m;
  m.usual = [](const Cell& cell, Kind, const Choice& c) {
    const double crossing = 1.9 * 1024 * 1024, bytes = static_cast<double>(cell.bytes);
    if (c == kRing) return bytes < crossing ? 9e-6 : 12e-6;
    if (c == kOther) return bytes < crossing ? 12e-6 : 9e-6;
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
  Fresh m;
  m.usual = ring(5e-6);
  ProveOptions o;
  o.budget_seconds = 0.02;
  const auto proofs = proved(m, {answer(1024, kRing)}, o);
  ASSERT_EQ(proofs.size(), 1u);
  EXPECT_FALSE(proofs[0].proved);
  EXPECT_TRUE(regions_of(answers_of(proofs), 2, 1).empty());
}

Proof proof(std::uint64_t bytes, const Choice& choice, bool proved = true) {
  Proof p;
  p.cell = {Collective::all_reduce, bytes};
  p.after.choice = choice, p.proved = proved;
  return p;
}

// Regions of a table for which others were proved now: those of other collectives, ranks and sizes stay.
TEST(Room, OnlyWhatIsProvedNowGivesWay) {
  const auto region = [](Collective c, std::uint64_t from, std::uint64_t to, std::uint32_t ranks) {
    return Region{c, from, to, ranks, 1, kRing, 1.1, 1.05, 1.2};
  };
  Table table;
  table.regions = {
      region(Collective::all_reduce, 1024, 4 << 20, 2), region(Collective::broadcast, 1024, 8192, 2),
      region(Collective::all_reduce, 1024, 4 << 20, 4), region(Collective::all_reduce, 1 << 30, 1 << 30, 2)};
  for (const std::uint64_t bytes : {2048, 65536, 1 << 20})
    table.raw.push_back({Collective::all_reduce, bytes, 2, 1, false, {1e-5}});
  const auto gone = make_room(
      table, {proof(32 << 10, {}), proof(64 << 10, kRing), proof(128 << 10, kRing, false)}, 2, 1, 1);
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].to, 4u << 20);
  ASSERT_EQ(table.regions.size(), 5u);
  EXPECT_EQ(table.regions[0].from, 1024u);
  EXPECT_EQ(table.regions[0].to, (32u << 10) - 1);
  EXPECT_EQ(table.regions[1].from, 92682u + 0);  // half way to 128 KiB, where nothing was proved
  EXPECT_EQ(table.regions[1].to, 4u << 20);
  ASSERT_EQ(table.raw.size(), 2u);
  EXPECT_EQ(table.raw[0].bytes, 2048u);
  EXPECT_TRUE(make_room(table, {proof(32 << 10, kRing, false)}, 2, 1, 1).empty());
}

TEST(Regions, SizesFarApartDoNotSpeakForWhatLiesBetween) {
  const auto regions = regions_of({answer(1 << 10, kRing), answer(1 << 20, kRing)}, 2, 1);
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0].to, 2048u);
  EXPECT_EQ(regions[1].from, 1u << 19);
  EXPECT_EQ(regions[1].to, 1u << 20);
}

}  // namespace
TEST(Refusal, NeedsManySlowSizesOrOneThatIsMuchSlower) {
  Proved proved;
  for (int i = 0; i < 100; ++i) {
    Proof p;
    p.cell = {Collective::all_reduce, std::uint64_t{1024} << (i % 20)};
    p.proved = true;
    proved.proofs.push_back(p);
  }
  const auto slow = [&](std::size_t i, double ratio) {
    auto& m = proved.proofs[i].after;
    m.ratio = {ratio, ratio - 0.005, ratio + 0.005};
    m.verdict = Verdict::slower, m.surely_slower = true;
  };
  EXPECT_EQ(refusal(proved), "");
  slow(3, 0.98), slow(4, 0.97);
  EXPECT_EQ(refusal(proved), "");
  EXPECT_EQ(still_slower(proved).size(), 2u);
  proved.proofs[5].after.verdict = Verdict::slower;  // by a narrow interval of few pairs
  EXPECT_EQ(still_slower(proved).size(), 2u);
  slow(6, 0.98);
  EXPECT_EQ(refusal(proved), "3 sizes stay slower");
  proved.proofs[6].after = {};
  slow(3, 0.94);
  EXPECT_EQ(refusal(proved), "a size stays more than 5 % slower");
  slow(3, 0.98);
  proved.left_out = Ratio{0.98, 0.975, 0.985};
  EXPECT_NE(refusal(proved), "");
}

}  // namespace topotune::tune
