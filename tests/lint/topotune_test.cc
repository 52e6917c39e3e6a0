// topotune's own variables and plugins in configuration.
#include "lint_helpers.h"

namespace topotune::lint {
namespace {

TEST(Topotune, WrongIsReportedRightIsSilent) {
  struct Pair {
    const char *rule, *file, *wrong, *right;
  };
  constexpr Pair kPairs[] = {
      {"NCCL27", "a.env", "NCCL_MIN_CTAS=16\nNCCL_MAX_CTAS=8\n", "NCCL_MIN_CTAS=16\nNCCL_MAX_CTAS=16\n"},
      {"NCCL27", "a.env",
       "NCCL_MIN_CTAS=40\nNCCL_TUNER_PLUGIN=/opt/libnccl-tuner-other.so\nTOPOTUNE_TUNER_TABLE=/t\n",
       "NCCL_MIN_CTAS=40\nNCCL_TUNER_PLUGIN=/opt/libnccl-tuner-topotune.so\nTOPOTUNE_TUNER_TABLE=/t\n"},
      {"NCCL34", "a.env", "TOPOTUNE_TUNER_ACCEPT=machin\n", "TOPOTUNE_TUNER_ACCEPT=machine,nccl\n"},
      {"NCCL34", "a.env", "TOPOTUNE_TUNER_HASH=xyz\n", "TOPOTUNE_TUNER_HASH=node:2ec5fb8969a21500\n"},
      {"NCCL34", "a.env", "TOPOTUNE_PROFILER_KERNELS=yes\n", "TOPOTUNE_PROFILER_KERNELS=1\n"},
      {"NCCL34", "a.env", "TOPOTUNE_PROFILER_RECORDS=-5\n", "TOPOTUNE_PROFILER_RECORDS=65536\n"},
      {"NCCL34", "a.env", "TOPOTUNE_TUNER_SPEED=1\n", "TOPOTUNE_OF_OUR_SCRIPTS=1\n"},
      {"NCCL35", "a.env", "NCCL_TUNER_PLUGIN=/opt/libnccl-tuner-topotune.so\n",
       "NCCL_TUNER_PLUGIN=/opt/libnccl-tuner-topotune.so\nTOPOTUNE_TUNER_TABLE=/t\n"},
      {"NCCL35", "a.env", "NCCL_ENV_PLUGIN=/opt/libnccl-env-topotune.so\n",
       "NCCL_ENV_PLUGIN=/opt/libnccl-env-topotune.so\nTOPOTUNE_TUNER_TABLE=/t\n"},
      {"NCCL35", "a.env", "NCCL_PROFILER_PLUGIN=/opt/libnccl-tuner-topotune.so\n",
       "NCCL_PROFILER_PLUGIN=/opt/libnccl-profiler-topotune.so\n"},
      {"NCCL35", "job.sbatch",
       "#!/bin/bash\n#SBATCH --nodes=4\nexport NCCL_TUNER_PLUGIN=/opt/libnccl-tuner-topotune.so\n"
       "export TOPOTUNE_TUNER_TABLE=/t\nsrun python t.py\n",
       "#!/bin/bash\n#SBATCH --nodes=4\nexport NCCL_TUNER_PLUGIN=/opt/libnccl-tuner-topotune.so\n"
       "export TOPOTUNE_TUNER_TABLE=/t\nexport TOPOTUNE_TUNER_HASH=2ec5fb8969a21500\nsrun python t.py\n"},
      {"NCCL35", "job.sbatch",
       "#!/bin/bash\n#SBATCH --nodes=4\nexport NCCL_TUNER_PLUGIN=/opt/libnccl-tuner-topotune.so\n"
       "export TOPOTUNE_TUNER_TABLE=/t\nexport TOPOTUNE_TUNER_HASH=node:2ec5fb8969a21500\nsrun python t.py\n",
       "#!/bin/bash\n#SBATCH --nodes=1\nexport NCCL_TUNER_PLUGIN=/opt/libnccl-tuner-topotune.so\n"
       "export TOPOTUNE_TUNER_TABLE=/t\nexport TOPOTUNE_TUNER_HASH=node:2ec5fb8969a21500\nsrun python "
       "t.py\n"},
  };
  for (const auto& pair : kPairs) {
    EXPECT_NE(judged(pair.file, pair.wrong)->find(pair.rule), nullptr) << pair.wrong;
    EXPECT_EQ(judged(pair.file, pair.right)->find(pair.rule), nullptr) << pair.right;
  }
}

TEST(Topotune, AMisspeltNameIsGuessed) {
  const auto it = judged("a.env", "TOPOTUNE_TUNER_TABEL=/t\n");
  ASSERT_NE(it->find("NCCL34"), nullptr);
  EXPECT_EQ(it->find("NCCL34")->finding.remedy, "did you mean TOPOTUNE_TUNER_TABLE?");
}

TEST(Topotune, ExchangedLibrariesAreAnError) {
  const auto it = judged("a.env",
                         "NCCL_TUNER_PLUGIN=/o/libnccl-profiler-topotune.so\n"
                         "NCCL_PROFILER_PLUGIN=/o/libnccl-tuner-topotune.so\n");
  EXPECT_EQ(it->ids(), "NCCL35:error:1 NCCL35:error:2");
}

TEST(Topotune, RunTunedSetsTheTable) {
  EXPECT_EQ(judged("a.sh",
                   "#!/bin/bash\nexport NCCL_TUNER_PLUGIN=/o/libnccl-tuner-topotune.so\n"
                   "srun topotune run --tuned /t -- python t.py\n")
                ->find("NCCL35"),
            nullptr);
}

TEST(Topotune, WhatRunOrAnotherShellSetsIsNoFault) {
  EXPECT_EQ(judged("a.sh",
                   "#!/bin/bash\nexport TOPOTUNE_TUNER_TABLE=./node.table\n"
                   "topotune run --tuned $TOPOTUNE_TUNER_TABLE -- python t.py\n")
                ->find("NCCL35"),
            nullptr);
  EXPECT_EQ(judged("job.sbatch",
                   "#!/bin/bash\n#SBATCH --nodes=4\nexport NCCL_TUNER_PLUGIN=/o/libnccl-tuner-topotune.so\n"
                   "export TOPOTUNE_TUNER_TABLE=/t\nexport TOPOTUNE_TUNER_HASH\nsrun python t.py\n")
                ->find("NCCL35"),
            nullptr);
  EXPECT_EQ(judged("Dockerfile", "FROM x\nENV NCCL_TUNER_PLUGIN=/o/libnccl-tuner-topotune.so\n")->ids(),
            "NCCL35:info:2");
}

TEST(Nccl32, APluginThatTheMachineAtHandDoesNotHave) {
  Options here;
  here.file_exists = [](const std::string& path) { return path == "/there.so"; };
  EXPECT_NE(judged("a.env", "NCCL_TUNER_PLUGIN=/nowhere/x.so\n", here)->find("NCCL32"), nullptr);
  EXPECT_EQ(judged("a.env", "NCCL_TUNER_PLUGIN=/there.so\n", here)->find("NCCL32"), nullptr);
  EXPECT_EQ(judged("a.env", "NCCL_TUNER_PLUGIN=/nowhere/x.so\n")->find("NCCL32"),
            nullptr);  // another machine's
}

}  // namespace
}  // namespace topotune::lint
