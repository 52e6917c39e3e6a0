#include "plan/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topotune::plan {
namespace {

using testing::HasSubstr;

TEST(Job, ReadsLinesWithComments) {
  const auto job = parse_job(
      "# a job\nframework = pytorch\nnodes: 2   # two\n\ngpus = 16\nmodel_parameters = "
      "70B\nmessage_bytes=64K-1G\n");
  ASSERT_TRUE(job) << job.error().to_string();
  EXPECT_EQ(job->framework, "pytorch");
  EXPECT_EQ(job->nodes, 2);
  EXPECT_EQ(job->parameters, 70e9);
  EXPECT_EQ(job->message_min, 65536U);
  EXPECT_EQ(job->message_max, 1U << 30);
  EXPECT_EQ(ranks_per_node(*job), 8);
  EXPECT_TRUE(multi_node(*job));
}

TEST(Job, ReadsJson) {
  const auto job = parse_job(R"({"gpus": 8, "launcher": "srun", "binding": "share"})");
  ASSERT_TRUE(job) << job.error().to_string();
  EXPECT_EQ(job->gpus, 8);
  EXPECT_EQ(job->binding, BindingPolicy::share);
}

struct Bad {
  const char *text, *said;
  int line;
};
class BadJob : public testing::TestWithParam<Bad> {};

TEST_P(BadJob, IsOneExactLine) {
  const auto job = parse_job(GetParam().text);
  ASSERT_FALSE(job);
  EXPECT_THAT(job.error().text, HasSubstr(GetParam().said));
  if (GetParam().line > 0) {
    EXPECT_EQ(job.error().line, GetParam().line);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, BadJob,
    testing::Values(Bad{"", "an empty job file", 0}, Bad{"gpus = 8\nnodez = 2\n", "nodez: no such key", 2},
                    Bad{"gpus = eight\n", "gpus: eight is not a number from 1 to 1000000", 1},
                    Bad{"gpus = 0\n", "gpus: 0 is not a number", 1},
                    Bad{"gpus = 8\ngpus = 9\n", "gpus: given twice", 2},
                    Bad{"gpus\n", "not a line \"key = value\"", 1},
                    Bad{"dscp = 64\n", "dscp: 64 is not a number from 0 to 63", 1},
                    Bad{"launcher = ssh\n", "launcher: ssh is none of mpirun", 1},
                    Bad{"message_bytes = 1G-64K\n", "is larger than", 1},
                    Bad{"{\"gpus\": 8,\n\"nodes\": }", "not JSON", 2},
                    Bad{"{\"gpus\": [8]}", "gpus: not a text or a number", 0},
                    Bad{"interface = eth0; reboot\n", "interface: eth0; reboot is not one word", 1}));

Job job_of(const char* text) { return parse_job(text).value(); }

std::string contradiction(const char* text, std::optional<int> gpus = {}) {
  const auto valid = validate_job(job_of(text), gpus);
  return valid ? "" : valid.error().text;
}

TEST(Job, ContradictionsAreNamed) {
  EXPECT_EQ(contradiction("gpus=16\nnodes=2\ngpus_per_node=8\n", 8), "");
  EXPECT_EQ(contradiction("gpus=16\nnodes=2\ngpus_per_node=4\n"),
            "gpus = 16, but nodes x gpus_per_node = 2 x 4 = 8");
  EXPECT_EQ(contradiction("gpus=2\nnodes=4\n"), "gpus = 2 on nodes = 4: some nodes would have none");
  EXPECT_EQ(contradiction("gpus=7\nnodes=2\n"), "gpus = 7 cannot be spread evenly over nodes = 2");
  EXPECT_EQ(contradiction("gpus=8\ntensor_parallel=3\n"),
            "tensor_parallel x pipeline_parallel = 3 x 1 = 3 does not divide gpus = 8");
  EXPECT_EQ(contradiction("gpus=8\ntensor_parallel=2\ndata_parallel=2\n"),
            "tensor x pipeline x data parallel = 2 x 1 x 2 = 4, but gpus = 8");
  EXPECT_EQ(contradiction("gpus=8\nexpert_parallel=3\n"), "expert_parallel = 3 does not divide gpus = 8");
  EXPECT_EQ(contradiction("gpus=16\n", 8), "16 ranks on a node that has 8 GPUs");
}

}  // namespace
}  // namespace topotune::plan
