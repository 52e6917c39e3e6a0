#include "net/ucx.h"

#include <gtest/gtest.h>

namespace topotune::net {
namespace {

constexpr const char* kHere = "self/memory0 tcp/lo tcp/eth0 sysv/memory posix/memory cma/memory";

TEST(AbsentTransport, NamesAndAliases) {
  EXPECT_EQ(absent_transport("", kHere), std::nullopt);
  EXPECT_EQ(absent_transport("all", kHere), std::nullopt);
  EXPECT_EQ(absent_transport("tcp,shm", kHere), std::nullopt);
  EXPECT_EQ(absent_transport("^rc", kHere), std::nullopt);
  EXPECT_EQ(absent_transport("tcp,rc", kHere), "rc");
  EXPECT_EQ(absent_transport("dc_x", kHere), "dc_x");
  EXPECT_EQ(absent_transport("dc", "dc_mlx5/mlx5_0:1"), std::nullopt);
  EXPECT_EQ(absent_transport("rc_v", "rc_mlx5/mlx5_0:1"), "rc_v");
  EXPECT_EQ(absent_transport("cuda", kHere), "cuda");
  EXPECT_EQ(absent_transport("rc", ""), std::nullopt);  // UCX does not tell what it has
}

TEST(Lanes, OfPrintedEndpoint) {
  EXPECT_EQ(lanes_in("#  lane[0]:  5:tcp/e0.0 md[2] -> md[2]/tcp\n#  lane[1]:  5:tcp/e0.0 md\n# lane[2]: "
                     "1:cma/memory.0 x\n"),
            "tcp/e0 cma/memory");
}

}  // namespace
}  // namespace topotune::net
