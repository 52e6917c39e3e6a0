#include "parse/nccl_log_blank.h"

#include <gtest/gtest.h>

namespace topotune::parse {
namespace {

TEST(NcclLogBlank, LeavesOtherLinesWhereTheyAre) {
  EXPECT_EQ(without_nccl_lines(
                "$ ibstat\na:1:2 [0] NCCL INFO x\nCA 'mlx5_0'\r\n[1,0]<stdout>:a:1:2 [0] x.cc:5 NCCL WARN y"),
            "$ ibstat\n\nCA 'mlx5_0'\r\n");
}

TEST(NcclLogBlank, ALineAboutTheLogIsNoneOfIt) {
  for (const std::string text :
       {"grep NCCL_INFO job.log\n", "export NCCL_DEBUG=INFO\n", "\n", "", "xNCCL INFO\n"})
    EXPECT_EQ(without_nccl_lines(text), text);
}

}  // namespace
}  // namespace topotune::parse
