#include "tune/table.h"

#include <gtest/gtest.h>

#include "tune/decide.h"

namespace topotune::tune {
namespace {

const std::string kHead = "topotune-tuning-table 1\nmachine 2x10de:2335\nnccl 2.28.9\n";

std::string one(const std::string& lines, int regions) {
  return kHead + lines + "end " + std::to_string(regions) + "\n";
}

// The refusal of a text, as "LINE: what".
std::string refusal(const std::string& text) {
  const auto parsed = parse_table(text);
  return parsed.table ? "" : std::to_string(parsed.error.line) + ": " + parsed.error.text;
}

TEST(Table, IsReadBackAsWritten) {
  Table table;
  table.machine = "2x10de:2335", table.nccl = "2.28.9", table.created = "2026-01-02T03:04:05Z",
  table.tool = "t-1";
  table.settings = {{"NCCL_MIN_CTAS", 32}};
  table.regions = {{Collective::all_reduce, 4096, 8191, 2, 1, {1, 2, 24}, 1.05, 1.04, 1.06},
                   {Collective::broadcast, 1, 100, 2, 1, {kNcclChooses, kNcclChooses, 8}, 1.0, 0.99, 1.01}};
  table.raw = {{Collective::all_to_all, 1024, 2, 1, true, {1.5e-5, 1.25e-5}}};
  const auto text = write_table(table);
  const auto parsed = parse_table(text);
  ASSERT_TRUE(parsed.table) << parsed.error.line << parsed.error.text;
  EXPECT_EQ(write_table(*parsed.table), text);
  ASSERT_EQ(parsed.table->regions.size(), 2u);
  EXPECT_EQ(parsed.table->regions[0].collective, Collective::broadcast);  // sorted
  EXPECT_EQ(parsed.table->regions[1].choice, (Choice{1, 2, 24}));
  EXPECT_DOUBLE_EQ(parsed.table->regions[1].low, 1.04);
  EXPECT_EQ(parsed.table->settings[0].value, 32);
  EXPECT_EQ(parsed.table->raw[0].seconds, (std::vector<double>{1.5e-5, 1.25e-5}));
}

TEST(Table, RefusesWithLineAndReason) {
  const std::string good = "region all_reduce 1 9 2 1 Ring LL 8 1.1 1.0 1.2\n";
  EXPECT_EQ(refusal(one(good, 1)), "");
  EXPECT_EQ(refusal(""), "0: the file is empty");
  EXPECT_EQ(refusal("hello\n"), "1: not a tuning table: the first line is not 'topotune-tuning-table 1'");
  EXPECT_EQ(refusal("topotune-tuning-table 2\n"), "1: version '2' of the format is not known");
  EXPECT_EQ(refusal(kHead + good), "4: the table is cut off: no 'end' line");
  EXPECT_EQ(refusal(kHead + good + "end 1"), "5: the last line has no end");
  EXPECT_EQ(refusal(one(good, 2)), "5: 'end' does not name the number of regions (1)");
  EXPECT_EQ(refusal(one(good, 1) + "region\n"), "6: text behind the 'end' line");
  EXPECT_EQ(refusal(one("set LD_PRELOAD 1\n", 0)), "4: a table may not set 'LD_PRELOAD'");
  EXPECT_EQ(refusal(one("set NCCL_MIN_CTAS 65\n", 0)), "4: '65' is not 1 to 64");
  EXPECT_EQ(refusal(one("colour red\n", 0)), "4: unknown word 'colour'");
  EXPECT_EQ(refusal(one(good + good, 2)), "5: the region overlaps the one before it, or is out of order");
  EXPECT_EQ(refusal(one("region all_reduce 9 1 2 1 Ring LL 8 1.1 1.0 1.2\n", 1)),
            "4: the range of bytes is not FROM <= TO");
  EXPECT_EQ(refusal(one("region all_reduce 1 9 2 3 Ring LL 8 1.1 1.0 1.2\n", 1)), "4: nodes: '3'");
  EXPECT_EQ(refusal(one("region all_to_all 1 9 2 1 Ring LL 8 1.1 1.0 1.2\n", 1)),
            "4: no collective that NCCL asks a tuner about: 'all_to_all'");
  EXPECT_EQ(refusal(one("region all_reduce 1 9 2 1 Rung LL 8 1.1 1.0 1.2\n", 1)),
            "4: no algorithm of NCCL: 'Rung'");
  EXPECT_EQ(refusal(one("region all_reduce 1 9 2 1 Ring * 8 1.1 1.0 1.2\n", 1)),
            "4: algorithm and protocol: both or none is '*'");
  EXPECT_EQ(refusal(one("region all_reduce 1 9 2 1 Ring LL 0 1.1 1.0 1.2\n", 1)),
            "4: channels: '0' is neither '*' nor 1 to 64");
  EXPECT_EQ(refusal(one("region all_reduce 1 9 2 1 Ring LL -0 1.1 1.0 1.2\n", 1)),
            "4: channels: '-0' is neither '*' nor 1 to 64");
  EXPECT_EQ(refusal(one("raw all_reduce 9 2 1 tuned 1.0e-5,\n", 0)), "4: raw: '' is no time");
  EXPECT_EQ(refusal(one("raw all_reduce 9 2 3 tuned 1.0e-5\n", 0)), "4: nodes: '3'");
  EXPECT_EQ(refusal(one("set NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 8\n", 0)),
            "0: NCCL_MIN_CTAS is more than NCCL_MAX_CTAS");
  EXPECT_EQ(refusal(one("region all_reduce 1 9 2 1 Ring LL 8 nan 1.0 1.2\n", 1)),
            "4: ratio, low and high are not positive numbers in order");
  EXPECT_EQ(refusal("topotune-tuning-table 1\nnccl 2.28.9\nend 0\n"), "0: no 'machine' line");
  EXPECT_EQ(refusal(kHead + std::string("\0end 0\n", 7)), "4: not plain ASCII text");
  EXPECT_EQ(refusal(kHead + std::string(9000, 'x') + "\nend 0\n"), "4: longer than 8192 characters");
  EXPECT_EQ(refusal(std::string(kMaxTableBytes + 1, '\n')), "0: larger than 4 MiB");
}

TEST(Table, EveryTruncationIsRefused) {
  const auto text = one(
      "region all_reduce 1 9 2 1 Ring LL 8 1.1 1.0 1.2\nregion all_reduce 10 99 2 1 * * 8 1.1 1.0 1.2\n", 2);
  for (std::size_t i = 0; i < text.size(); ++i) EXPECT_FALSE(parse_table(text.substr(0, i)).table) << i;
  EXPECT_TRUE(parse_table(text).table);
}

TEST(Decide, FindsTheRegionOfItsShapeOnly) {
  const auto parsed =
      parse_table(one("region reduce 5 6 2 1 Tree LL * 1 1 1\n"
                      "region all_reduce 100 199 2 1 Ring LL 8 1 1 1\n"
                      "region all_reduce 300 399 2 1 Tree Simple * 1 1 1\n"
                      "region all_reduce 1 999 4 1 Ring LL128 4 1 1 1\n",
                      4));
  ASSERT_TRUE(parsed.table) << parsed.error.text;
  const Decider two(*parsed.table, 2, 1);
  EXPECT_EQ(two.regions(), 3u);
  const int all_reduce = 4;
  for (const std::uint64_t bytes : {0u, 99u, 200u, 299u, 400u})
    EXPECT_EQ(two.choice(all_reduce, bytes), nullptr) << bytes;
  for (const std::uint64_t bytes : {100u, 150u, 199u}) {
    ASSERT_NE(two.choice(all_reduce, bytes), nullptr) << bytes;
    EXPECT_EQ(*two.choice(all_reduce, bytes), (Choice{1, 0, 8}));
  }
  EXPECT_EQ(*two.choice(all_reduce, 300), (Choice{0, 2, 0}));
  EXPECT_EQ(two.choice(0, 150), nullptr);
  for (const int function : {-1, 5, 14, 1 << 30}) EXPECT_EQ(two.choice(function, 150), nullptr);
  EXPECT_EQ(Decider(*parsed.table, 8, 1).regions(), 0u);
  EXPECT_EQ(Decider(*parsed.table, 4, 2).regions(), 0u);
}

TEST(Apply, NeverRevivesAnEntryAndNeverSetsChannelsOfNothing) {
  float costs[2][3] = {{1, -1, 3}, {4, 5, 6}};
  int channels = 0;
  EXPECT_EQ(apply({0, 1, 8}, costs[0], 2, 3, &channels), Applied::unusable);
  EXPECT_EQ(costs[0][1], -1);
  EXPECT_EQ(channels, 0);
  EXPECT_EQ(apply({3, 1, 8}, costs[0], 2, 3, &channels),
            Applied::unusable);  // NCCL knows two algorithms only
  EXPECT_EQ(channels, 0);
  EXPECT_EQ(apply({1, 2, 0}, costs[0], 2, 3, &channels), Applied::forced);
  EXPECT_EQ(costs[1][2], 0);
  EXPECT_EQ(channels, 0);
  EXPECT_EQ(apply({kNcclChooses, kNcclChooses, 12}, costs[0], 2, 3, &channels), Applied::channels_only);
  EXPECT_EQ(channels, 12);
  EXPECT_EQ(apply({}, costs[0], 2, 3, &channels), Applied::nothing);
  EXPECT_EQ(apply({0, 0, 4}, nullptr, 2, 3, &channels), Applied::unusable);
}

TEST(Apply, CheapestIsNcclsRule) {
  const float costs[2][3] = {{-1, 7, 3}, {3, -1, 9}};
  EXPECT_EQ(cheapest(costs[0], 2, 3), (Choice{0, 2, 0}));  // the first of equals
  const float none[1][3] = {{-1, -1, -1}};
  EXPECT_EQ(cheapest(none[0], 1, 3), Choice{});
}

TEST(Names, AreReadInEveryUsualSpelling) {
  EXPECT_EQ(collective_from("AllReduce"), Collective::all_reduce);
  EXPECT_EQ(collective_from("all-gather"), Collective::all_gather);
  EXPECT_EQ(collective_from("alltoall"), Collective::all_to_all);
  EXPECT_EQ(collective_from("allmend"), std::nullopt);
}

}  // namespace
}  // namespace topotune::tune
