#include "launch/rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace topotune::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Values = std::map<std::string, std::string>;

Environment environment(Values values) {
  return [values](const std::string& name) -> std::optional<std::string> {
    const auto at = values.find(name);
    if (at == values.end()) return std::nullopt;
    return at->second;
  };
}

std::optional<Rank> rank_of(Values values) { return detect_rank(environment(std::move(values))).value(); }

TEST(Rank, NoLauncher) { EXPECT_FALSE(rank_of({})); }

TEST(Rank, OpenMpi) {
  const auto rank = rank_of({{"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"},
                             {"OMPI_COMM_WORLD_RANK", "11"},
                             {"OMPI_COMM_WORLD_SIZE", "16"}});
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->local, 3);
  EXPECT_EQ(rank->local_size, 8);
  EXPECT_EQ(rank->global, 11);
  EXPECT_EQ(rank->launcher, "Open MPI");
}

TEST(Rank, Hydra) {
  const auto rank =
      rank_of({{"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->launcher, "MPICH");
  EXPECT_EQ(rank->local, 1);
}

TEST(Rank, SlurmStepButNotABatchScript) {
  EXPECT_FALSE(rank_of({{"SLURM_LOCALID", "0"}, {"SLURM_PROCID", "0"}}));
  const auto rank = rank_of({{"SLURM_STEP_ID", "0"},
                             {"SLURM_LOCALID", "2"},
                             {"SLURM_PROCID", "6"},
                             {"SLURM_STEP_NUM_TASKS", "9"},
                             {"SLURM_STEP_TASKS_PER_NODE", "4(x2),1"},
                             {"SLURM_NODEID", "1"}});
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->local_size, 4);
  EXPECT_EQ(rank->size, 9);
}

TEST(Rank, TorchrunInsideSlurmIsInner) {
  const auto rank = rank_of({{"SLURM_STEP_ID", "0"},
                             {"SLURM_LOCALID", "0"},
                             {"LOCAL_RANK", "5"},
                             {"RANK", "13"},
                             {"LOCAL_WORLD_SIZE", "8"},
                             {"WORLD_SIZE", "16"}});
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->launcher, "torchrun");
  EXPECT_EQ(rank->local, 5);
}

TEST(Rank, WhatCannotBeIsAnError) {
  EXPECT_THAT(detect_rank(environment({{"OMPI_COMM_WORLD_LOCAL_RANK", "x"}})).error().text,
              HasSubstr("OMPI_COMM_WORLD_LOCAL_RANK=x is not a rank"));
  EXPECT_THAT(detect_rank(environment({{"MPI_LOCALRANKID", "2"}, {"MPI_LOCALNRANKS", "2"}})).error().text,
              HasSubstr("MPI_LOCALRANKID=2, but the node has 2 ranks"));
  EXPECT_FALSE(detect_rank(environment({{"MPI_LOCALRANKID", "-1"}})));
}

const std::vector<KnownGpu> kFour{{"0000:10:00.0", "GPU-aaaa"},
                                  {"0000:20:00.0", "GPU-bbbb"},
                                  {"0000:30:00.0", "GPU-cccc"},
                                  {"0000:40:00.0", ""}};

std::vector<std::size_t> visible(Values values) {
  return visible_gpus(environment(std::move(values)), kFour).value().gpus;
}

TEST(Visible, AllUnlessSaid) { EXPECT_THAT(visible({}), ElementsAre(0, 1, 2, 3)); }

TEST(Visible, NumbersAndUuids) {
  EXPECT_THAT(visible({{"CUDA_VISIBLE_DEVICES", "2,0"}}), ElementsAre(2, 0));
  EXPECT_THAT(visible({{"CUDA_VISIBLE_DEVICES", "GPU-bb, 3"}}), ElementsAre(1, 3));
  EXPECT_THAT(visible({{"CUDA_VISIBLE_DEVICES", ""}}), ElementsAre());
  EXPECT_THAT(visible({{"CUDA_VISIBLE_DEVICES", "1,-1,2"}}), ElementsAre(1));
}

TEST(Visible, SlurmRenumbersConfinedDevices) {
  EXPECT_THAT(visible({{"CUDA_VISIBLE_DEVICES", "0,1"}, {"SLURM_STEP_GPUS", "2,3"}}), ElementsAre(2, 3));
  EXPECT_THAT(visible({{"CUDA_VISIBLE_DEVICES", "2,3"}, {"SLURM_STEP_GPUS", "2,3"}}), ElementsAre(2, 3));
}

TEST(Visible, AnEntryThatIsNoGpuIsNamed) {
  EXPECT_THAT(visible_gpus(environment({{"CUDA_VISIBLE_DEVICES", "0,7"}}), kFour).error().text,
              HasSubstr("CUDA_VISIBLE_DEVICES: 7 is none of this machine's 4 GPUs"));
  EXPECT_THAT(visible_gpus(environment({{"CUDA_VISIBLE_DEVICES", "1,1"}}), kFour).error().text,
              HasSubstr("1 stands twice"));
  EXPECT_THAT(visible_gpus(environment({{"CUDA_VISIBLE_DEVICES", "MIG-GPU-x/1/0"}}), kFour).error().text,
              HasSubstr("MIG"));
}

Rank rank(int local, std::optional<int> size = {}) {
  Rank out;
  out.local = local;
  out.local_size = size;
  return out;
}

TEST(GpuOfRank, ByPlaceInTheVisibleList) {
  EXPECT_EQ(gpu_of_rank(rank(1, 2), {{2, 0}, "CUDA_VISIBLE_DEVICES"}).value(), 0U);
  EXPECT_EQ(gpu_of_rank(rank(5, 8), {{3}, "CUDA_VISIBLE_DEVICES"}).value(), 3U);  // each rank was given one
}

TEST(GpuOfRank, MoreRanksThanGpus) {
  EXPECT_EQ(gpu_of_rank(rank(0, 4), {{0, 1}, ""}).error().text, "4 ranks on a node with 2 GPUs");
  EXPECT_EQ(gpu_of_rank(rank(2), {{0, 1}, ""}).error().text, "3 ranks on a node with 2 GPUs");
  EXPECT_EQ(gpu_of_rank(rank(0), {{}, ""}).error().text, "no GPU was found");
}

}  // namespace
}  // namespace topotune::launch
