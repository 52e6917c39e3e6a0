#include <gtest/gtest.h>

#include "loader.h"
#include "plugins/env_api.h"
#include "tune/table.h"

namespace topotune::plugins {
namespace {

const char* const kTable =
    "topotune-tuning-table 1\nmachine test\nnccl 2.28.9\nset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\n"
    "region all_reduce 1000 1999 2 1 Ring LL128 8 1.1 1.0 1.2\nend 1\n";

struct Job {
  loader::Folder folder;
  loader::Variables variables;
  explicit Job(const std::string& text = kTable) {
    variables.set("TOPOTUNE_TUNER_TABLE", folder.write("table", text));
    variables.set("TOPOTUNE_TUNER_ACCEPT", "machine");
    variables.set("LOCAL_WORLD_SIZE", "8");
    variables.set("WORLD_SIZE", "8");
  }
};

std::string text(const char* value) { return value == nullptr ? "(null)" : value; }

TEST(Env, GivesTheTablesSettingsAndTheTunerBesideIt) {
  const Job job;
  const loader::Library library(TOPOTUNE_ENV);
  auto* v1 = library.get<EnvV1>("ncclEnvPlugin_v1");
  ASSERT_EQ(v1->init(2, 28, 9, ""), 0);
  EXPECT_EQ(text(v1->get_env("NCCL_MIN_CTAS")), "32");
  EXPECT_EQ(text(v1->get_env("NCCL_MAX_CTAS")), "32");
  EXPECT_EQ(std::string(TOPOTUNE_TUNER), text(v1->get_env("NCCL_TUNER_PLUGIN")));
  EXPECT_EQ(v1->get_env("NCCL_DEBUG_NOT_SET"), nullptr);
  EXPECT_EQ(v1->get_env(nullptr), nullptr);
  EXPECT_EQ(v1->finalize(), 0);
}

TEST(Env, WhatTheProcessSetsComesFirst) {
  Job job;
  job.variables.set("NCCL_MIN_CTAS", "8");
  job.variables.set("NCCL_TUNER_PLUGIN", "none");
  job.variables.set("NCCL_ALGO", "Ring");
  const loader::Library library(TOPOTUNE_ENV);
  auto* v2 = library.get<EnvV2>("ncclEnvPlugin_v2");
  ASSERT_EQ(v2->init(2, 28, 9, "", loader::log), 0);
  EXPECT_EQ(text(v2->get_env("NCCL_MIN_CTAS")), "8");
  EXPECT_EQ(text(v2->get_env("NCCL_TUNER_PLUGIN")), "none");
  EXPECT_EQ(text(v2->get_env("NCCL_ALGO")), "Ring");
  EXPECT_TRUE(
      loader::said("topotune env: table hash " + tune::hash_text(tune::hash_of(kTable)) + ", 3 variables"));
}

// The job must run as if there were no plugin.
TEST(Env, ATableThatMayNotBeUsedChangesNothing) {
  struct Case {
    const char *what, *variable;
    std::string value, line, text = kTable;
  };
  const std::string good = kTable;
  for (const auto& c : std::vector<Case>{
           {"missing", "TOPOTUNE_TUNER_TABLE", "/nowhere/table", "No such file"},
           {"not named", "TOPOTUNE_TUNER_TABLE", "", "TOPOTUNE_TUNER_TABLE is not set"},
           {"another machine", "TOPOTUNE_TUNER_ACCEPT", "nothing", "it was measured on test"},
           {"other hash", "TOPOTUNE_TUNER_HASH", "00", "the job wants 00"},
           {"truncated", "NCCL_UNUSED", "", "cut off", good.substr(0, good.find("end"))},
           {"hostile", "NCCL_UNUSED", "", "a table may not set 'NCCL_DEBUG_FILE'",
            "topotune-tuning-table 1\nset NCCL_DEBUG_FILE 1\nend 0\n"},
       }) {
    Job job(c.text);
    job.variables.set(c.variable, c.value);
    const loader::Library library(TOPOTUNE_ENV);
    auto* v2 = library.get<EnvV2>("ncclEnvPlugin_v2");
    EXPECT_EQ(v2->init(2, 28, 9, "", loader::log), 0) << c.what;
    EXPECT_EQ(v2->get_env("NCCL_MIN_CTAS"), nullptr) << c.what;
    EXPECT_EQ(v2->get_env("NCCL_TUNER_PLUGIN"), nullptr) << c.what;
    EXPECT_TRUE(loader::said("topotune env: off: ")) << c.what;
    EXPECT_TRUE(loader::said(c.line)) << c.what << ": " << loader::lines.front();
    EXPECT_EQ(loader::lines.size(), 1u) << c.what;
  }
  Job job;
  job.variables.set("NCCL_DEBUG", "info");
  const loader::Library library(TOPOTUNE_ENV);
  auto* v1 = library.get<EnvV1>("ncclEnvPlugin_v1");
  testing::internal::CaptureStderr();    // NCCL gives this interface no log
  EXPECT_EQ(v1->init(2, 27, 3, ""), 0);  // another NCCL
  const auto line = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(line.starts_with("topotune env: off: ") && line.ends_with(", this is 2.27.3\n")) << line;
  EXPECT_EQ(v1->get_env("NCCL_MIN_CTAS"), nullptr);
}

// The interface does not say which NCCL asks: what was measured with one is not given to another.
TEST(Env, ASecondNcclTakesTheSettingsAway) {
  const Job job;
  const loader::Library library(TOPOTUNE_ENV);
  auto* v2 = library.get<EnvV2>("ncclEnvPlugin_v2");
  EXPECT_EQ(v2->init(2, 28, 9, "", loader::log), 0);
  EXPECT_EQ(v2->init(2, 28, 9, "", loader::log), 0);
  EXPECT_NE(v2->get_env("NCCL_MIN_CTAS"), nullptr);
  EXPECT_EQ(v2->init(2, 30, 7, "", loader::log), 0);
  EXPECT_EQ(v2->get_env("NCCL_MIN_CTAS"), nullptr);
  EXPECT_TRUE(loader::said("topotune env: off: this process has NCCL 2.28.9 and 2.30.7"));
}

// Ranks with different numbers of thread blocks hang, and one node does not know what the others have.
TEST(Env, SettingsAreForOneNodeOrByTheJobsHash) {
  struct Case {
    const char *world, *hash;
    bool set;
  };
  const auto hash = tune::hash_text(tune::hash_of(kTable));
  const auto of_node = "node:" + hash;
  for (const auto& c : {Case{"8", "", true},
                        {"16", "", false},
                        {"", "", false},
                        {"16", of_node.c_str(), false},
                        {"16", hash.c_str(), true}}) {
    Job job;
    job.variables.set("WORLD_SIZE", c.world);
    job.variables.set("TOPOTUNE_TUNER_HASH", c.hash);
    const loader::Library library(TOPOTUNE_ENV);
    auto* v2 = library.get<EnvV2>("ncclEnvPlugin_v2");
    EXPECT_EQ(v2->init(2, 28, 9, "", loader::log), 0);
    EXPECT_EQ(v2->get_env("NCCL_MIN_CTAS") != nullptr, c.set) << c.world << c.hash;
    EXPECT_EQ(v2->get_env("NCCL_TUNER_PLUGIN") != nullptr, c.set) << c.world << c.hash;
    EXPECT_EQ(loader::said("all ranks need the table's NCCL_MIN_CTAS"), !c.set) << c.world << c.hash;
  }
}

// A table that sets nothing is the tuner's to judge.
TEST(Env, WithoutSettingsThereIsNothingToGuard) {
  std::string text = kTable;
  text.erase(text.find("set"), text.find("region") - text.find("set"));
  Job job(text);
  job.variables.set("WORLD_SIZE", "16");
  const loader::Library library(TOPOTUNE_ENV);
  auto* v2 = library.get<EnvV2>("ncclEnvPlugin_v2");
  EXPECT_EQ(v2->init(2, 28, 9, "", loader::log), 0);
  EXPECT_NE(v2->get_env("NCCL_TUNER_PLUGIN"), nullptr) << loader::lines.front();
}

}  // namespace
}  // namespace topotune::plugins
