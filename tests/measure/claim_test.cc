#include "measure/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topotune::measure {
namespace {

using model::ClaimVerdict;
using testing::HasSubstr;

struct Case {
  const char* text;
  ClaimVerdict verdict;
  double limit;  // GB/s or seconds
};

class Claims : public testing::TestWithParam<Case> {};

TEST_P(Claims, AreJudged) {
  const auto claim = judge_claim(GetParam().text);
  ASSERT_TRUE(claim) << claim.error().text;
  EXPECT_EQ(name_of(claim->verdict), std::string(name_of(GetParam().verdict))) << claim->text;
  EXPECT_NEAR(claim->limit, GetParam().limit, GetParam().limit * 0.01) << claim->why;
}

INSTANTIATE_TEST_SUITE_P(
    All, Claims,
    testing::Values(Case{"92 GB/s on 100G RoCE", ClaimVerdict::units, 12.25},
                    Case{"11.8 GB/s on 100G RoCE", ClaimVerdict::possible, 12.25},
                    Case{"92 Gb/s on 100G RoCE", ClaimVerdict::possible, 12.25},
                    Case{"92Gbps over 100GbE", ClaimVerdict::possible, 12.4},
                    Case{"23 GB/s on 100 Gb/s RoCE", ClaimVerdict::sum, 12.25},
                    Case{"1.4 GB/s on 100G RoCE", ClaimVerdict::low, 12.25},
                    Case{"49 GB/s on NDR InfiniBand", ClaimVerdict::possible, 49.6},
                    Case{"390 GB/s on 8x400G IB", ClaimVerdict::possible, 397},
                    Case{"500 GB/s with 8 NICs of 400 Gb/s", ClaimVerdict::sum, 400},
                    Case{"55.4 GB/s PCIe 5.0 x16", ClaimVerdict::possible, 63},
                    Case{"55 GB/s H2D on PCIe Gen4 x16", ClaimVerdict::sum, 31.5},
                    Case{"400 GB/s on PCIe Gen3 x16", ClaimVerdict::impossible, 15.75},
                    Case{"395 GB/s between two H200 over NVLink", ClaimVerdict::possible, 478},
                    Case{"780 GB/s H100 NVLink", ClaimVerdict::sum, 478},
                    Case{"480 GB/s busbw allreduce on 8 x H100 NVLink", ClaimVerdict::equivalent, 478},
                    Case{"276 GB/s A100 NVLink", ClaimVerdict::possible, 300},
                    Case{"2 TB/s H100 NVLink", ClaimVerdict::impossible, 478},
                    Case{"1 MiB in 20 us on 100 Gb/s RoCE", ClaimVerdict::impossible, 85.6e-6},
                    Case{"1 MiB in 100 us on 100G IB", ClaimVerdict::possible, 84.5e-6}));

TEST(Claim, EquivalentNeedsToBeOverTheLink) {
  EXPECT_EQ(judge_claim("490 GB/s busbw on 8 x H100 NVLink")->verdict, ClaimVerdict::equivalent);
  EXPECT_EQ(judge_claim("490 GB/s on H100 NVLink")->verdict, ClaimVerdict::sum);
}

TEST(Claim, ReasonsAreExact) {
  const auto claim = judge_claim("92 GB/s on 100G RoCE");
  EXPECT_EQ(claim->why, "100 Gb/s / 8 = 12.5 GB/s, of which 98.0 % are payload: 12.25 GB/s");
  EXPECT_THAT(claim->text, HasSubstr("it is 7.5 times the limit, near 8, so bits were taken for bytes; 92 "
                                     "Gb/s would be 11.5 GB/s, 94 %"));
}

TEST(Claim, WhatIsMissingIsSaid) {
  EXPECT_EQ(judge_claim("fast on 100G RoCE").error().text,
            "'fast on 100G RoCE' has no speed such as 92 GB/s");
  EXPECT_EQ(judge_claim("92 GB/s").error().text,
            "'92 GB/s' names no link such as 100G RoCE, PCIe 5.0 x16 or H100 NVLink");
  EXPECT_FALSE(judge_claim(""));
  EXPECT_FALSE(judge_claim("0 GB/s on 100G RoCE"));
}

}  // namespace
}  // namespace topotune::measure
