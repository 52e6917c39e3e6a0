#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include "loader.h"
#include "plugins/tuner_api.h"
#include "plugins/tuner_control.h"
#include "tune/table.h"

// What NCCL answers to plugins that ask for its version.
extern "C" __attribute__((visibility("default"))) int ncclGetVersion(int* version) {
  return *version = 22809, 0;
}

namespace topotune::plugins {
namespace {

constexpr int kAllReduce = 4;

std::string table_text(const std::string& nccl = "2.28.9") {
  return "topotune-tuning-table 1\nmachine test\nnccl " + nccl +
         "\nregion all_reduce 1000 1999 2 1 Ring LL128 8 1.1 1.0 1.2\n"
         "region all_reduce 2000 2999 2 1 Tree Simple * 1.1 1.0 1.2\n"
         "region all_reduce 3000 3999 2 1 * * 12 1.1 1.0 1.2\n"
         "region all_reduce 4000 4999 2 1 NVLS Simple 16 1.1 1.0 1.2\nend 4\n";
}

struct Job {
  loader::Folder folder;
  loader::Variables variables;
  explicit Job(const std::string& text = table_text()) {
    variables.set("TOPOTUNE_TUNER_TABLE", folder.write("table", text));
    variables.set("TOPOTUNE_TUNER_SHM", folder.path);
    variables.set("TOPOTUNE_TUNER_ACCEPT", "machine");
  }
};

// NCCL's table: 7 x 3, of which NVLS and the collnets are not possible.
struct Costs {
  float at[7][3];
  Costs() {
    for (int a = 0; a < 7; ++a)
      for (float& cost : at[a]) cost = a < 2 ? 10.0f : -1.0f;
  }
  float** table() { return reinterpret_cast<float**>(at); }
  int changed() const {
    int count = 0;
    for (int a = 0; a < 7; ++a)
      for (const float cost : at[a]) count += cost != (a < 2 ? 10.0f : -1.0f);
    return count;
  }
};

// v5 and v6 with `ranks` contexts of one communicator.
struct Ranks {
  TunerV5* tuner;
  std::vector<void*> contexts;
  Ranks(const loader::Library& library, std::size_t ranks, std::uint64_t id = 77,
        const char* symbol = "ncclTunerPlugin_v5")
      : tuner(library.get<TunerV5>(symbol)) {
    for (std::size_t r = 0; r < ranks; ++r) {
      NvlDomains domains{1, 2, 2};
      TunerConstants constants{};
      void* context = reinterpret_cast<void*>(1);
      EXPECT_EQ(tuner->init(&context, id, ranks, 1, loader::log, &domains, &constants), 0);
      contexts.push_back(context);
    }
  }
  ~Ranks() {
    for (void* c : contexts) EXPECT_EQ(tuner->finalize(c), 0);
  }
  int ask(std::uint64_t bytes, Costs& costs, int& channels, int function = kAllReduce, std::size_t rank = 0) {
    return tuner->get_coll_info(contexts[rank], function, bytes, 1, costs.table(), 7, 3, 0, &channels);
  }
};

TEST(Tuner, FollowsItsTableInV5AndV6) {
  const Job job;
  for (const char* symbol : {"ncclTunerPlugin_v5", "ncclTunerPlugin_v6"}) {
    const loader::Library library(TOPOTUNE_TUNER);
    Ranks ranks(library, 2, 77, symbol);
    EXPECT_TRUE(loader::said("4 regions for 2 ranks on 1 node(s)")) << loader::lines.front();
    Costs costs;
    int channels = 0;
    EXPECT_EQ(ranks.ask(1500, costs, channels), 0);
    EXPECT_EQ(costs.at[1][1], 0);
    EXPECT_EQ(costs.changed(), 1);
    EXPECT_EQ(channels, 8);
    EXPECT_TRUE(loader::said("in use"));
    Costs second;
    channels = 0;
    EXPECT_EQ(ranks.ask(2500, second, channels, kAllReduce, 1), 0);
    EXPECT_EQ(second.at[0][2], 0);
    EXPECT_EQ(channels, 0);
    Costs third;
    EXPECT_EQ(ranks.ask(3500, third, channels), 0);
    EXPECT_EQ(third.changed(), 0);
    EXPECT_EQ(channels, 12);
    // NVLS is not possible here: neither it nor its channel count is taken.
    Costs fourth;
    channels = 0;
    EXPECT_EQ(ranks.ask(4500, fourth, channels), 0);
    EXPECT_EQ(fourth.changed(), 0);
    EXPECT_EQ(channels, 0);
    // Outside of all regions, and functions that came after this plugin.
    for (const auto& [bytes, function] :
         {std::pair{999, kAllReduce}, {5000, kAllReduce}, {1500, 0}, {1500, 8}, {1500, -3}}) {
      Costs none;
      EXPECT_EQ(ranks.ask(static_cast<std::uint64_t>(bytes), none, channels, function), 0);
      EXPECT_EQ(none.changed(), 0);
    }
    EXPECT_EQ(channels, 0);
  }
}

TEST(Tuner, OlderNcclWithFewerAlgorithms) {
  const Job job;
  const loader::Library library(TOPOTUNE_TUNER);
  Ranks ranks(library, 2);
  float costs[1][3] = {{10, 10, 10}};
  int channels = 0;
  EXPECT_EQ(ranks.tuner->get_coll_info(ranks.contexts[0], kAllReduce, 1500, 1,
                                       reinterpret_cast<float**>(costs), 1, 3, 0, &channels),
            0);
  EXPECT_EQ(costs[0][0] + costs[0][1] + costs[0][2], 30);
  EXPECT_EQ(channels, 0);
}

TEST(Tuner, V2ToV4NeedTheHash) {
  Job job;
  {
    const loader::Library library(TOPOTUNE_TUNER);
    void* context = nullptr;
    auto* v4 = library.get<TunerV4>("ncclTunerPlugin_v4");
    EXPECT_EQ(v4->init(2, 1, loader::log, &context), 0);
    EXPECT_TRUE(loader::said("TOPOTUNE_TUNER_HASH is not set"));
    EXPECT_EQ(v4->destroy(context), 0);
  }
  job.variables.set("TOPOTUNE_TUNER_HASH", tune::hash_text(tune::hash_of(table_text())));
  const loader::Library library(TOPOTUNE_TUNER);
  Costs costs;
  int channels = 0;
  void* context = nullptr;
  auto* v3 = library.get<TunerV3>("ncclTunerPlugin_v3");
  ASSERT_EQ(v3->init(2, 1, loader::log, &context), 0);
  EXPECT_EQ(v3->get_coll_info(context, kAllReduce, 1500, 1, costs.table(), 7, 3, &channels), 0);
  EXPECT_EQ(costs.at[1][1], 0);
  EXPECT_EQ(v3->destroy(context), 0);
  auto* v4 = library.get<TunerV4>("ncclTunerPlugin_v4");
  ASSERT_EQ(v4->init(2, 1, loader::log, &context), 0);
  Costs fourth;
  EXPECT_EQ(v4->get_coll_info(context, kAllReduce, 2500, 1, fourth.table(), 7, 3, 1, &channels), 0);
  EXPECT_EQ(fourth.at[0][2], 0);
  EXPECT_EQ(v4->destroy(context), 0);
  auto* v2 = library.get<TunerV2>("ncclTunerPlugin_v2");
  ASSERT_EQ(v2->init(2, 1, loader::log, &context), 0);
  int algorithm = -1, protocol = -1;
  channels = 0;
  EXPECT_EQ(v2->get_coll_info(context, kAllReduce, 2500, 0, 0, 1, &algorithm, &protocol, &channels), 0);
  EXPECT_EQ(algorithm, 0);
  EXPECT_EQ(protocol, 2);
  EXPECT_EQ(channels, 0);
  // Nor whether LL128 is safe on this machine.
  algorithm = protocol = -1;
  EXPECT_EQ(v2->get_coll_info(context, kAllReduce, 1500, 0, 0, 1, &algorithm, &protocol, &channels), 0);
  EXPECT_EQ(algorithm, -1);
  EXPECT_EQ(channels, 0);
  // What the user filters is not seen either: not even channels are said then.
  job.variables.set("NCCL_ALGO", "Tree");
  {
    const auto copy = job.folder.path + "/second.so";
    std::filesystem::copy_file(TOPOTUNE_TUNER, copy);
    const loader::Library filtered(copy.c_str());
    auto* other = filtered.get<TunerV2>("ncclTunerPlugin_v2");
    void* mine = nullptr;
    ASSERT_EQ(other->init(2, 1, loader::log, &mine), 0);
    EXPECT_EQ(other->get_coll_info(mine, kAllReduce, 3500, 0, 0, 1, &algorithm, &protocol, &channels), 0);
    EXPECT_EQ(channels, 0);
    EXPECT_EQ(other->destroy(mine), 0);
  }
  // It cannot see whether NVLS is possible.
  algorithm = protocol = -1, channels = 0;
  EXPECT_EQ(v2->get_coll_info(context, kAllReduce, 4500, 0, 1, 1, &algorithm, &protocol, &channels), 0);
  EXPECT_EQ(algorithm, -1);
  EXPECT_EQ(channels, 0);
  EXPECT_EQ(v2->destroy(context), 0);
}

// NCCL 2.21 takes whatever is said: Tree of anything but an all-reduce would run another kernel.
TEST(Tuner, V2HasTreeForOneCollective) {
  std::string text = table_text();
  text.replace(text.find("region"), 0, "region broadcast 2000 2999 2 1 Tree Simple * 1.1 1.0 1.2\n");
  text.replace(text.find("end 4"), 5, "end 5");
  Job job(text);
  job.variables.set("TOPOTUNE_TUNER_HASH", tune::hash_text(tune::hash_of(text)));
  const loader::Library library(TOPOTUNE_TUNER);
  void* context = nullptr;
  auto* v2 = library.get<TunerV2>("ncclTunerPlugin_v2");
  ASSERT_EQ(v2->init(2, 1, loader::log, &context), 0);
  EXPECT_TRUE(loader::said("5 regions")) << loader::lines.front();
  int algorithm = -1, protocol = -1, channels = 0;
  EXPECT_EQ(v2->get_coll_info(context, 0, 2500, 0, 0, 1, &algorithm, &protocol, &channels), 0);
  EXPECT_EQ(algorithm, -1);
  EXPECT_EQ(v2->destroy(context), 0);
}

// With several nodes only the job's own hash decides, for all ranks alike: however many of them a node has,
// and whether or not NCCL's nodes share their memory.
TEST(Tuner, RanksOfSeveralNodesDecideAlike) {
  std::string text = table_text();
  for (std::size_t at = 0; (at = text.find(" 2 1 ", at)) != std::string::npos;) text.replace(at, 5, " 4 2 ");
  Job job(text);
  job.variables.set("TOPOTUNE_TUNER_HASH", tune::hash_text(tune::hash_of(text)));
  job.variables.set("TOPOTUNE_TUNER_SHM", "/nowhere");  // is of no use to them
  const loader::Library library(TOPOTUNE_TUNER);
  auto* v5 = library.get<TunerV5>("ncclTunerPlugin_v5");
  void* contexts[4] = {};
  for (auto& context : contexts) ASSERT_EQ(v5->init(&context, 9, 4, 2, loader::log, nullptr, nullptr), 0);
  for (auto* context : contexts) {
    Costs costs;
    int channels = 0;
    EXPECT_EQ(v5->get_coll_info(context, kAllReduce, 1500, 1, costs.table(), 7, 3, 0, &channels), 0);
    EXPECT_EQ(costs.at[1][1], 0);
    // NCCL would take any number of channels for what it chooses itself there, if that is a CollNet.
    channels = 0;
    EXPECT_EQ(v5->get_coll_info(context, kAllReduce, 3500, 1, costs.table(), 7, 3, 0, &channels), 0);
    EXPECT_EQ(channels, 0);
    EXPECT_EQ(v5->finalize(context), 0);
  }
}

// Hosts that share an NVLink fabric are one node to NCCL, and each has a /dev/shm of its own.
TEST(Tuner, ASharedFabricNeedsTheJobsHash) {
  Job job;
  const auto hash = tune::hash_text(tune::hash_of(table_text()));
  job.variables.set("TOPOTUNE_TUNER_ROOT", job.folder.path);
  (void)!std::system(("mkdir -p " + job.folder.path + "/dev/nvidia-caps-imex-channels").c_str());
  for (const bool whole_job : {false, true}) {
    job.variables.set("TOPOTUNE_TUNER_HASH", whole_job ? hash : "node:" + hash);
    const loader::Library library(TOPOTUNE_TUNER);
    auto* v4 = library.get<TunerV4>("ncclTunerPlugin_v4");
    auto* v5 = library.get<TunerV5>("ncclTunerPlugin_v5");
    void *older = nullptr, *newer = nullptr;
    ASSERT_EQ(v4->init(2, 1, loader::log, &older), 0);
    ASSERT_EQ(v5->init(&newer, 3, 2, 1, loader::log, nullptr, nullptr), 0);  // the other rank is elsewhere
    Costs first, second;
    int channels = 0;
    EXPECT_EQ(v4->get_coll_info(older, kAllReduce, 1500, 1, first.table(), 7, 3, 1, &channels), 0);
    EXPECT_EQ(v5->get_coll_info(newer, kAllReduce, 1500, 1, second.table(), 7, 3, 1, &channels), 0);
    EXPECT_EQ(first.changed(), whole_job ? 1 : 0);
    EXPECT_EQ(second.changed(), whole_job ? 1 : 0);
    v4->destroy(older), v5->finalize(newer);
  }
}

// NCCL multiplies what it does not want for other reasons than time: Ring by 1024 for fp8 on many ranks.
TEST(Tuner, LeavesAloneWhatNcclMarksByItsCost) {
  const Job job;
  const loader::Library library(TOPOTUNE_TUNER);
  Ranks ranks(library, 2);
  Costs costs;
  for (float& cost : costs.at[1]) cost *= 1024;
  int channels = 0;
  EXPECT_EQ(ranks.ask(1500, costs, channels), 0);
  EXPECT_EQ(costs.at[1][1], 10240);
  EXPECT_EQ(channels, 0);
}

// In a process of its own: the first of two ranks, and no other.
void enter_alone(std::uint64_t id) {
  void* handle = ::dlopen(TOPOTUNE_TUNER, RTLD_NOW | RTLD_LOCAL);
  auto* v5 = static_cast<TunerV5*>(::dlsym(handle, "ncclTunerPlugin_v5"));
  void* context = nullptr;
  v5->init(&context, id, 2, 1, nullptr, nullptr, nullptr);
}

// A name can come again after ranks that are gone: what they left counts for nothing.
TEST(Tuner, RanksThatDiedLeaveNothingBehind) {
  const Job job;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    enter_alone(21);
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const auto files = [&] { return std::distance(std::filesystem::directory_iterator(job.folder.path), {}); };
  EXPECT_EQ(files(), 2);  // the table, and what the child left
  const loader::Library library(TOPOTUNE_TUNER);
  {
    Ranks ranks(library, 2, 21);
    for (const std::size_t rank : {0u, 1u}) {
      Costs costs;
      int channels = 0;
      EXPECT_EQ(ranks.ask(1500, costs, channels, kAllReduce, rank), 0);
      EXPECT_EQ(costs.at[1][1], 0);
      EXPECT_EQ(files(), 1);  // it is settled
    }
  }
  // Where not all came, the one that leaves takes the file along.
  auto* v5 = library.get<TunerV5>("ncclTunerPlugin_v5");
  void* alone = nullptr;
  ASSERT_EQ(v5->init(&alone, 22, 2, 1, loader::log, nullptr, nullptr), 0);
  EXPECT_EQ(files(), 2);
  v5->finalize(alone);
  EXPECT_EQ(files(), 1);
}

// Communicators of one name again and again, their ranks in threads of their own.
TEST(Tuner, OneNameAgainAndAgain) {
  const Job job;
  const loader::Library library(TOPOTUNE_TUNER);
  auto* v5 = library.get<TunerV5>("ncclTunerPlugin_v5");
  constexpr int kRanks = 2, kRounds = 400;
  std::atomic<int> wrong{0};
  std::barrier together(kRanks);
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        void* context = nullptr;
        v5->init(&context, 5, kRanks, 1, nullptr, nullptr, nullptr);
        together.arrive_and_wait();
        Costs costs;
        int channels = 0;
        v5->get_coll_info(context, kAllReduce, 1500, 1, costs.table(), 7, 3, 0, &channels);
        if (costs.at[1][1] != 0) ++wrong;
        together.arrive_and_wait();
        v5->finalize(context);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// An attempt of which two ranks got as far as here, and then one that has the same name: NCCL starts it when
// all ranks are there, and some may not have given up the first.
TEST(Tuner, WhatAFailedAttemptEnteredIsVoid) {
  const Job job([] {
    std::string text = table_text();
    for (std::size_t at = 0; (at = text.find(" 2 1 ", at)) != std::string::npos;)
      text.replace(at, 5, " 3 1 ");
    return text;
  }());
  std::uint64_t id = 100;
  for (const std::size_t expected : {3u, 4u}) {  // of the first attempt: a shrink may have lost another rank
    for (const bool given_up : {false, true}) {
      std::vector<std::size_t> order{0, 1, 2};
      do {
        const loader::Library library(TOPOTUNE_TUNER);
        auto* v5 = library.get<TunerV5>("ncclTunerPlugin_v5");
        void *old[2] = {}, *now[3] = {};
        ++id;
        const auto start = [&](void*& context, std::size_t ranks) {
          ASSERT_EQ(v5->init(&context, id, ranks, 1, loader::log, nullptr, nullptr), 0);
        };
        for (const std::size_t rank : {0u, 1u}) start(old[rank], expected);
        for (const auto rank : order) {
          if (given_up && rank < 2) v5->finalize(std::exchange(old[rank], nullptr));
          start(now[rank], 3);
        }
        int with_table = 0;
        for (void* context : now) {
          Costs costs;
          int channels = 0;
          v5->get_coll_info(context, kAllReduce, 1500, 1, costs.table(), 7, 3, 0, &channels);
          with_table += channels == 8;
        }
        const bool all = (order[0] != 2 && given_up) || expected == 4;
        EXPECT_EQ(with_table, all ? 3 : 0) << order[0] << order[1] << order[2] << expected << given_up;
        for (void* context : old) v5->finalize(context);
        for (void* context : now) v5->finalize(context);
      } while (std::ranges::next_permutation(order).found);
    }
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(job.folder.path), {}), 1);
}

// A data loader that outlives the rank it was forked from holds nothing of it.
TEST(Tuner, ChildrenOfARankHoldNothing) {
  const Job job;
  int born[2];
  ASSERT_EQ(::pipe(born), 0);
  std::fflush(nullptr);
  const pid_t rank = ::fork();
  if (rank == 0) {
    enter_alone(23);
    if (::fork() == 0) {
      const pid_t child = ::getpid();
      (void)!::write(born[1], &child, sizeof child);
      for (;;) ::pause();
    }
    ::_exit(0);
  }
  pid_t child = 0;
  ASSERT_EQ(::read(born[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ASSERT_EQ(::waitpid(rank, nullptr, 0), rank);
  const loader::Library library(TOPOTUNE_TUNER);
  Ranks ranks(library, 2, 23);
  for (const std::size_t r : {0u, 1u}) {
    Costs costs;
    int channels = 0;
    ranks.ask(1500, costs, channels, kAllReduce, r);
    EXPECT_EQ(channels, 8) << r;
  }
  ::kill(child, SIGKILL);
  ::close(born[0]), ::close(born[1]);
}

// Once a rank has decided without the others, all of them do, whoever comes later.
TEST(Tuner, TheFirstDecisionStands) {
  const Job job;
  const loader::Library library(TOPOTUNE_TUNER);
  auto* v5 = library.get<TunerV5>("ncclTunerPlugin_v5");
  void* contexts[2] = {};
  for (auto& context : contexts) {
    ASSERT_EQ(v5->init(&context, 31, 2, 1, loader::log, nullptr, nullptr), 0);
    for (int turn = 0; turn < 2; ++turn) {
      Costs costs;
      int channels = 0;
      v5->get_coll_info(context, kAllReduce, 1500, 1, costs.table(), 7, 3, 0, &channels);
      EXPECT_EQ(channels, 0);
    }
  }
  for (auto* context : contexts) v5->finalize(context);
}

// The job's hash says what all ranks should have; on one node it is seen whether they do.
TEST(Tuner, ARankWithoutTheTableIsSeenBesideAHashToo) {
  Job job;
  job.variables.set("TOPOTUNE_TUNER_HASH", tune::hash_text(tune::hash_of(table_text())));
  const loader::Library library(TOPOTUNE_TUNER);
  auto* v5 = library.get<TunerV5>("ncclTunerPlugin_v5");
  void *with = nullptr, *without = nullptr;
  ASSERT_EQ(v5->init(&with, 41, 2, 1, loader::log, nullptr, nullptr), 0);
  const auto copy = job.folder.path + "/second.so";
  std::filesystem::copy_file(TOPOTUNE_TUNER, copy);
  loader::Variables other;
  other.set("TOPOTUNE_TUNER_TABLE", "/nowhere/table");
  const loader::Library second(copy.c_str());
  auto* second_v5 = second.get<TunerV5>("ncclTunerPlugin_v5");
  ASSERT_EQ(second_v5->init(&without, 41, 2, 1, loader::log, nullptr, nullptr), 0);
  Costs costs;
  int channels = 0;
  v5->get_coll_info(with, kAllReduce, 1500, 1, costs.table(), 7, 3, 0, &channels);
  EXPECT_EQ(channels, 0);
  v5->finalize(with), second_v5->finalize(without);
}

TEST(Tuner, KeepsNoDescriptors) {
  const Job job;
  const loader::Library library(TOPOTUNE_TUNER);
  const auto open = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = open();
  std::vector<std::unique_ptr<Ranks>> communicators;
  for (std::uint64_t id = 500; id < 600; ++id)
    communicators.push_back(std::make_unique<Ranks>(library, 2, id));
  EXPECT_LE(open() - before, 2);
}

TEST(Tuner, RemovesWhatRanksLeftLongAgo) {
  const Job job;
  const auto old =
      job.folder.write("topotune-tuner-" + std::to_string(::geteuid()) + "-0000000000000001", "x");
  const auto fresh =
      job.folder.write("topotune-tuner-" + std::to_string(::geteuid()) + "-0000000000000002", "x");
  std::filesystem::last_write_time(old,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  const loader::Library library(TOPOTUNE_TUNER);
  Ranks ranks(library, 2);
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(fresh));
}

// What a node took from its own file says nothing of the other nodes.
TEST(Tuner, AHashOfOneNodeIsForOneNode) {
  Job job;
  job.variables.set("TOPOTUNE_TUNER_HASH", "node:" + tune::hash_text(tune::hash_of(table_text())));
  const loader::Library library(TOPOTUNE_TUNER);
  auto* v4 = library.get<TunerV4>("ncclTunerPlugin_v4");
  const auto is_changed = [&](std::size_t nodes) {
    void* context = nullptr;
    Costs costs;
    int channels = 0;
    EXPECT_EQ(v4->init(2, nodes, loader::log, &context), 0);
    EXPECT_EQ(v4->get_coll_info(context, kAllReduce, 1500, 1, costs.table(), 7, 3, 1, &channels), 0);
    EXPECT_EQ(v4->destroy(context), 0);
    return costs.changed() != 0;
  };
  EXPECT_TRUE(is_changed(1));
  EXPECT_FALSE(is_changed(2));
  EXPECT_TRUE(
      loader::said("several nodes, and TOPOTUNE_TUNER_HASH does not say which table all of them use"));
}

// The job must run as if there were no plugin, and one line must say why.
TEST(Tuner, IsOffWithOneLine) {
  struct Case {
    const char* what;
    std::string text, line;
    const char* name = nullptr;
    std::string value;
  };
  const auto good = table_text();
  const std::vector<Case> cases{
      {"truncated", good.substr(0, good.size() - 20), "the last line has no end", nullptr, ""},
      {"hostile", "topotune-tuning-table 1\nset LD_PRELOAD 1\n", ":2: a table may not set 'LD_PRELOAD'",
       nullptr, ""},
      {"garbage", std::string(5000, '\xff') + "\n", "not plain ASCII", nullptr, ""},
      {"empty", "", "the file is empty", nullptr, ""},
      {"another NCCL", table_text("2.27.3"), "measured with NCCL 2.27.3, this is 2.28.9", nullptr, ""},
      {"other hash", good, "the job wants 00", "TOPOTUNE_TUNER_HASH", "00"},
      {"missing", good, "No such file", "TOPOTUNE_TUNER_TABLE", "/nowhere/table"},
      {"a folder", good, "not a regular file", "TOPOTUNE_TUNER_TABLE", "/tmp"},
      {"another machine", good, "measured on test, this machine has", "TOPOTUNE_TUNER_ACCEPT", "nothing"},
      {"no shared memory", good, "No such file", "TOPOTUNE_TUNER_SHM", "/nowhere"},
      {"read-only shared memory", good, "/sys/topotune-tuner-", "TOPOTUNE_TUNER_SHM", "/sys"},
      {"stale", "topotune-tuning-table 0\nend 0\n", "version '0' of the format is not known", nullptr, ""},
      {"too large", std::string((4u << 20) + 1, '#'), "larger than 4 MiB", nullptr, ""},
  };
  for (const auto& c : cases) {
    Job job(c.text);
    if (c.name != nullptr) job.variables.set(c.name, c.value);
    const loader::Library library(TOPOTUNE_TUNER);
    {
      Ranks ranks(library, 2);
      Costs costs;
      int channels = 0;
      EXPECT_EQ(ranks.ask(1500, costs, channels), 0) << c.what;
      EXPECT_EQ(costs.changed(), 0) << c.what;
      EXPECT_EQ(channels, 0) << c.what;
    }
    EXPECT_TRUE(loader::said(c.line)) << c.what << ": " << loader::lines.front();
    EXPECT_EQ(loader::lines.size(), 2u) << c.what;  // one a rank
    EXPECT_TRUE(loader::said("topotune tuner: off: ")) << c.what;
  }
}

TEST(Tuner, NothingIsDecidedUntilAllRanksOfTheNodeHaveTheTable) {
  const Job job;
  const loader::Library library(TOPOTUNE_TUNER);
  auto* v5 = library.get<TunerV5>("ncclTunerPlugin_v5");
  void* first = nullptr;
  ASSERT_EQ(v5->init(&first, 5, 2, 1, loader::log, nullptr, nullptr), 0);
  Costs costs;
  int channels = 0;
  EXPECT_EQ(v5->get_coll_info(first, kAllReduce, 1500, 1, costs.table(), 7, 3, 0, &channels), 0);
  EXPECT_EQ(costs.changed(), 0);
  EXPECT_TRUE(loader::said("off: 1 of this node's 2 ranks agreed on this table"));
  // A second library has read another table.
  v5->finalize(first);
  (void)!std::system(("rm -f " + job.folder.path + "/topotune-tuner-*").c_str());
  void *a = nullptr, *b = nullptr;
  ASSERT_EQ(v5->init(&a, 6, 2, 1, loader::log, nullptr, nullptr), 0);
  const auto copy = job.folder.path + "/second.so";
  (void)!std::system((std::string("cp ") + TOPOTUNE_TUNER + " " + copy).c_str());
  loader::Variables other;
  other.set("TOPOTUNE_TUNER_TABLE", job.folder.write("other", table_text() + "# other\n"));
  const loader::Library second(copy.c_str());
  auto* other_v5 = second.get<TunerV5>("ncclTunerPlugin_v5");
  ASSERT_EQ(other_v5->init(&b, 6, 2, 1, loader::log, nullptr, nullptr), 0);
  for (auto& [tuner, context] : {std::pair{v5, a}, {other_v5, b}}) {
    EXPECT_EQ(tuner->get_coll_info(context, kAllReduce, 1500, 1, costs.table(), 7, 3, 0, &channels), 0);
    EXPECT_EQ(costs.changed(), 0);
  }
  EXPECT_TRUE(loader::said("the ranks of this node do not have the same table"));
  v5->finalize(a);
  other_v5->finalize(b);
}

TEST(Tuner, NullsDoNoHarm) {
  const Job job;
  const loader::Library library(TOPOTUNE_TUNER);
  auto* v5 = library.get<TunerV5>("ncclTunerPlugin_v5");
  EXPECT_EQ(v5->init(nullptr, 1, 2, 1, nullptr, nullptr, nullptr), 0);
  void* context = nullptr;
  EXPECT_EQ(v5->init(&context, 1, 1, 1, nullptr, nullptr, nullptr), 0);
  Costs costs;
  int channels = 0;
  EXPECT_EQ(v5->get_coll_info(nullptr, kAllReduce, 1500, 1, costs.table(), 7, 3, 0, &channels), 0);
  EXPECT_EQ(v5->get_coll_info(context, kAllReduce, 1500, 1, nullptr, 7, 3, 0, &channels), 0);
  EXPECT_EQ(v5->get_coll_info(context, kAllReduce, 1500, 1, costs.table(), 0, 0, 0, &channels), 0);
  EXPECT_EQ(v5->get_coll_info(context, kAllReduce, 1500, 1, costs.table(), 7, 3, 0, nullptr), 0);
  EXPECT_EQ(v5->finalize(context), 0);
  EXPECT_EQ(v5->finalize(nullptr), 0);
  void* none = nullptr;  // no ranks, no nodes
  EXPECT_EQ(v5->init(&none, 1, 0, 0, nullptr, nullptr, nullptr), 0);
  EXPECT_EQ(v5->finalize(none), 0);
}

TEST(Tuner, IsSteeredByTheProgramThatMeasures) {
  const Job job;
  const loader::Library library(TOPOTUNE_TUNER);
  Ranks ranks(library, 2);
  EXPECT_EQ(library.function<ControlVersion>("topotune_tuner_control")(), kControlVersion);
  const auto force = library.function<Force>("topotune_tuner_force");
  const auto last = library.function<Last>("topotune_tuner_last");
  const auto watch = library.function<Watch>("topotune_tuner_watch");
  LastDecision seen;
  Costs costs;
  int channels = 0;
  force(-1, -1, 0);
  ranks.ask(1400, costs, channels);  // not watched: not written down
  last(&seen);
  EXPECT_EQ(seen.calls, 0u);
  watch(1);
  force(0, 2, 3);
  ranks.ask(1500, costs, channels);
  EXPECT_EQ(costs.at[0][2], 0);
  EXPECT_EQ(costs.changed(), 1);
  EXPECT_EQ(channels, 3);
  last(&seen);
  EXPECT_EQ(seen.calls, 1u);
  EXPECT_EQ(seen.costs[0][2], 10);  // as NCCL had it
  EXPECT_EQ(seen.bytes, 1500u);
  force(4, 2, 3);
  channels = 0;
  Costs second;
  ranks.ask(1500, second, channels);
  last(&seen);
  EXPECT_EQ(seen.unusable, 1u);
  EXPECT_EQ(second.changed(), 0);
  force(-1, -1, 0);  // NCCL alone, though the table has a line
  ranks.ask(1500, second, channels);
  EXPECT_EQ(second.changed(), 0);
  library.function<Release>("topotune_tuner_release")();
  ranks.ask(1500, second, channels);
  EXPECT_EQ(second.at[1][1], 0);
  last(&seen);
  EXPECT_EQ(seen.applied, 1u);
}

TEST(Tuner, ManyCommunicatorsOfManyThreads) {
  const Job job;
  const loader::Library library(TOPOTUNE_TUNER);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 10; ++round) {
        Ranks ranks(library, 2, static_cast<std::uint64_t>(1000 + t * 100 + round));
        for (std::uint64_t i = 0; i < 2000; ++i) {
          Costs costs;
          int channels = 0;
          const auto bytes = 900 + i % 1200;
          if (ranks.ask(bytes, costs, channels, kAllReduce, i % 2) != 0) ++wrong;
          const int expected = bytes < 1000 ? 0 : 1;
          if (costs.changed() != expected || channels != (bytes >= 1000 && bytes < 2000 ? 8 : 0)) ++wrong;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

// Communicators of every version of the interface, made, asked and closed at once.
TEST(Tuner, AllVersionsAtOnce) {
  Job job;
  job.variables.set("TOPOTUNE_TUNER_HASH", tune::hash_text(tune::hash_of(table_text())));
  const loader::Library library(TOPOTUNE_TUNER);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  const auto unnamed = [&](auto* tuner, auto ask) {
    for (int round = 0; round < 20; ++round) {
      void* context = nullptr;
      if (tuner->init(2, 1, loader::log, &context) != 0 || context == nullptr) ++wrong;
      for (int i = 0; i < 500; ++i)
        if (!ask(tuner, context)) ++wrong;
      tuner->destroy(context);
    }
  };
  for (int copy = 0; copy < 2; ++copy) {
    threads.emplace_back([&] {
      unnamed(library.get<TunerV2>("ncclTunerPlugin_v2"), [](auto* t, void* context) {
        int algorithm = -1, protocol = -1, channels = 0;
        const int rc = t->get_coll_info(context, kAllReduce, 2500, 0, 0, 1, &algorithm, &protocol, &channels);
        return rc == 0 && algorithm == 0 && protocol == 2 && channels == 0;
      });
    });
    threads.emplace_back([&] {
      unnamed(library.get<TunerV3>("ncclTunerPlugin_v3"), [](auto* t, void* context) {
        Costs costs;
        int channels = 0;
        const int rc = t->get_coll_info(context, kAllReduce, 1500, 1, costs.table(), 7, 3, &channels);
        return rc == 0 && costs.at[1][1] == 0 && costs.changed() == 1 && channels == 8;
      });
    });
    threads.emplace_back([&] {
      unnamed(library.get<TunerV4>("ncclTunerPlugin_v4"), [](auto* t, void* context) {
        Costs costs;
        int channels = 0;
        const int rc = t->get_coll_info(context, kAllReduce, 2500, 1, costs.table(), 7, 3, 1, &channels);
        return rc == 0 && costs.at[0][2] == 0 && costs.changed() == 1 && channels == 0;
      });
    });
    for (const char* symbol : {"ncclTunerPlugin_v5", "ncclTunerPlugin_v6"}) {
      threads.emplace_back([&, symbol, copy] {
        for (int round = 0; round < 20; ++round) {
          Ranks ranks(library, 2, static_cast<std::uint64_t>(symbol[17] * 1000 + copy * 100 + round), symbol);
          for (int i = 0; i < 500; ++i) {
            Costs costs;
            int channels = 0;
            ranks.ask(1500, costs, channels, kAllReduce, static_cast<std::size_t>(i % 2));
            if (costs.at[1][1] != 0 || costs.changed() != 1 || channels != 8) ++wrong;
          }
        }
      });
    }
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

// A limit for files that the shared memory does not fit in would end the process with a signal.
TEST(Tuner, AFileSizeLimitIsOff) {
  const Job job;
  const loader::Library library(TOPOTUNE_TUNER);
  auto* v5 = library.get<TunerV5>("ncclTunerPlugin_v5");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{8, 8};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    void* context = nullptr;
    v5->init(&context, 1, 2, 1, loader::log, nullptr, nullptr);
    ::_exit(loader::said("topotune tuner: off: ") && loader::said("(ulimit -f)") ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

char last_line[300];
void log_in_place(int, unsigned long, const char*, int, const char* format, ...) {
  std::va_list list;
  va_start(list, format);
  std::vsnprintf(last_line, sizeof last_line, format, list);
  va_end(list);
}

// Not a byte is left, in a thread that has thrown nothing yet.
TEST(Tuner, NoMemoryAtAllIsOff) {
#ifdef TOPOTUNE_SANITIZED
  GTEST_SKIP() << "address space is the sanitizer's";
#endif
  const Job job;
  const loader::Library library(TOPOTUNE_TUNER);
  auto* v5 = library.get<TunerV5>("ncclTunerPlugin_v5");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_AS, &limit);
    for (std::size_t bytes = 1 << 20; bytes >= 16; bytes /= 2) {
      void* volatile block = nullptr;
      do block = std::malloc(bytes);
      while (block != nullptr);
    }
    void* context = nullptr;
    const int rc = v5->init(&context, 1, 2, 1, log_in_place, nullptr, nullptr);
    ::_exit(rc == 0 && context == nullptr && std::strstr(last_line, "topotune tuner: off: out of memory")
                ? 0
                : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A process that can have no more memory: the job runs, one line says why there is no table.
TEST(Tuner, OutOfMemoryIsOff) {
#ifdef TOPOTUNE_SANITIZED
  GTEST_SKIP() << "address space is the sanitizer's";
#endif
  std::string text = table_text();
  const std::string raw = "raw all_reduce 1024 2 1 tuned " + [] {
    std::string samples = "1.0e-5";
    while (samples.size() < 4000) samples += ",1.0e-5";
    return samples + "\n";
  }();
  const auto end = text.rfind("end");
  std::string lines;
  while (lines.size() < 3'900'000) lines += raw;
  text.insert(end, lines);
  const Job job(text);
  const loader::Library library(TOPOTUNE_TUNER);
  auto* v5 = library.get<TunerV5>("ncclTunerPlugin_v5");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    std::ifstream status("/proc/self/statm");
    std::uint64_t pages = 0;
    status >> pages;
    const rlimit limit{pages * 4096, pages * 4096};
    ::setrlimit(RLIMIT_AS, &limit);
    for (std::size_t bytes = 1 << 20; bytes >= 1 << 16; bytes /= 2) {  // what earlier tests gave back
      void* volatile block = nullptr;
      do block = std::malloc(bytes);
      while (block != nullptr);
    }
    void* context = reinterpret_cast<void*>(1);
    const int rc = v5->init(&context, 1, 2, 1, loader::log, nullptr, nullptr);
    Costs costs;
    int channels = 0;
    const int asked = v5->get_coll_info(context, kAllReduce, 1500, 1, costs.table(), 7, 3, 0, &channels);
    const bool good = rc == 0 && asked == 0 && context == nullptr && costs.changed() == 0 &&
                      loader::said("topotune tuner: off: out of memory");
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Ten million decisions; a decision is quick.
TEST(Tuner, Soak) {
  const Job job;
  const loader::Library library(TOPOTUNE_TUNER);
  Ranks ranks(library, 2);
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t count = 0, taken = 0;
  Costs costs;
  std::chrono::duration<double, std::nano> best = std::chrono::hours(1);
  while (count < 10'000'000) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 10000; ++i, ++count) {
      int channels = 0;
      costs.at[1][1] = 10;
      ranks.ask(1000 + count % 4000, costs, channels);
      taken += costs.at[1][1] == 0;
    }
    best = std::min<decltype(best)>(best, (std::chrono::steady_clock::now() - began) / 10000);
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  EXPECT_NEAR(static_cast<double>(taken) / static_cast<double>(count), 0.25, 0.01);
#ifndef TOPOTUNE_SANITIZED
  EXPECT_LT(best.count(), 100.0);  // the quickest ten thousand: a loaded machine does not count
#endif
  RecordProperty("nanoseconds", static_cast<int>(spent.count() / static_cast<double>(count)));
  std::printf("%.1f ns a decision, %.1f million\n", spent.count() / static_cast<double>(count),
              1e-6 * static_cast<double>(count));
}

}  // namespace
}  // namespace topotune::plugins
