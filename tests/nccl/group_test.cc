#include "nccl/group.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cuda/kernel_image.h"

namespace topotune::nccl {
namespace {

using coll::Mode;
using coll::Op;
using coll::Question;
using testing::HasSubstr;

// NCCL of tests/nccl/fake on the driver of tests/cuda/fake.
class FakeGroup : public testing::Test {
 protected:
  void SetUp() override {
    if (::dlopen(TOPOTUNE_FAKE_CUDA, RTLD_NOW) == nullptr) GTEST_SKIP() << ::dlerror();
    if (cuda::kernel_image().empty()) GTEST_SKIP() << "built without a CUDA compiler";
    ::setenv("TOPOTUNE_NCCL_LIBRARY", TOPOTUNE_FAKE_NCCL, 1);
    set("", 4);
  }
  void TearDown() override { set("", 2); }
  static void set(const char* fault, int gpus) {
    ::setenv("FAKE_NCCL_FAULT", fault, 1);
    ::setenv("FAKE_CUDA_GPUS", std::to_string(gpus).c_str(), 1);
  }
  Group& group(std::size_t bytes = 1u << 16) {
    library_ = std::make_unique<Library>(*Library::load());
    machine_ = *cuda::open_machine([](const std::string&) { return std::string(); });
    std::vector<const cuda::Gpu*> gpus;
    for (const auto& gpu : machine_->gpus) gpus.push_back(&gpu);
    GroupOptions options;
    options.buffer_bytes = bytes;
    group_ = *Group::make(*library_, *machine_, gpus, options);
    return *group_;
  }
  static Question question(Op op, std::size_t bytes = 4096) {
    Question q;
    q.op = op;
    q.bytes = bytes;
    return q;
  }

  std::unique_ptr<Library> library_;
  std::unique_ptr<cuda::Machine> machine_;
  std::unique_ptr<Group> group_;
};

TEST_F(FakeGroup, EveryCollectiveArrivesRightInAndOutOfPlace) {
  auto& g = group();
  for (const auto op : coll::all_ops()) {
    for (const bool in_place : {false, true}) {
      auto q = question(op);
      q.in_place = in_place;
      q.root = 2;
      if (in_place && !coll::works_in_place(op)) continue;
      const auto checked = g.verify(q, Mode::back_to_back);
      ASSERT_TRUE(checked) << checked.error().text;
      EXPECT_EQ(checked->wrong, 0u) << coll::name_of(op) << (in_place ? " in place: " : ": ")
                                    << checked->first;
      EXPECT_GT(checked->checked, 0u) << coll::name_of(op);
    }
  }
}

TEST_F(FakeGroup, EveryTypeAndReductionIsExact) {
  auto& g = group();
  for (const auto type : coll::all_types()) {
    for (const auto reduction : coll::all_reductions()) {
      auto q = question(Op::all_reduce);
      q.type = type, q.reduction = reduction;
      const auto checked = g.verify(q, Mode::back_to_back);
      ASSERT_TRUE(checked) << checked.error().text;
      const bool small = type == coll::Type::float16 || static_cast<int>(type) > 8;
      if (reduction == coll::Reduction::avg && small) continue;  // the test double rounds down
      EXPECT_EQ(checked->wrong, 0u) << coll::name_of(type) << " " << coll::name_of(reduction) << " "
                                    << checked->first;
    }
  }
}

TEST_F(FakeGroup, AGraphIsLaunched) {
  auto& g = group();
  const auto checked = g.verify(question(Op::all_reduce), Mode::graph);
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->wrong, 0u) << checked->first;
}

TEST_F(FakeGroup, TheLaunchThatUploadsAGraphCountsWhereLaunchesAreAsked) {
  auto& g = group();
  const auto* const launches =
      static_cast<int*>(::dlsym(::dlopen(TOPOTUNE_FAKE_CUDA, RTLD_NOW), "fake_cuda_graph_launches"));
  ASSERT_NE(launches, nullptr);
  const int before = *launches, ranks = 4;
  EXPECT_TRUE(g.run(question(Op::all_reduce), 5, Mode::graph));
  EXPECT_EQ(*launches - before, 2 * ranks);
  EXPECT_TRUE(g.run(question(Op::all_reduce), 5, Mode::graph, 7));
  EXPECT_EQ(*launches - before, 9 * ranks);
}

TEST_F(FakeGroup, AWrongElementIsNamed) {
  set("wrong", 4);
  const auto checked = group().verify(question(Op::all_gather), Mode::back_to_back);
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->wrong, 1u);
  EXPECT_THAT(checked->first, HasSubstr("rank 3: element 0 of 1024 is 0x"));
}

TEST_F(FakeGroup, TimesOfEachIterationAndRank) {
  auto& g = group();
  const auto timed = g.run(question(Op::all_reduce), 7, Mode::events);
  ASSERT_TRUE(timed);
  ASSERT_EQ(timed->each.size(), 4u);
  ASSERT_EQ(timed->each[3].size(), 7u);
  EXPECT_NEAR(timed->each[3][2], 10e-6, 1e-9);
  EXPECT_GT(timed->seconds, 0);
  EXPECT_LE(timed->launch_seconds, timed->seconds);
  const auto blocking = g.run(question(Op::all_reduce), 7, Mode::blocking);
  ASSERT_TRUE(blocking);
  EXPECT_EQ(blocking->each.front().size(), 7u);
}

TEST_F(FakeGroup, ErrorsSayWhatFailedWhere) {
  auto& g = group();
  set("error", 4);
  const auto timed = g.run(question(Op::broadcast), 2, Mode::back_to_back);
  ASSERT_FALSE(timed);
  EXPECT_THAT(timed.error().text,
              HasSubstr("Broadcast of 4096 bytes on rank 0 (GPU0): NCCL 2.28.9: unhandled "
                        "system error: fake NCCL fails as it was told"));
}

TEST_F(FakeGroup, WhatItCannotDoIsSaid) {
  set("old", 2);
  auto& g = group();
  auto q = question(Op::all_reduce);
  q.type = coll::Type::float8e4m3;
  EXPECT_THAT(g.cannot(q, Mode::back_to_back).value_or(""), HasSubstr("NCCL 2.18.5 has no float8e4m3"));
  q = question(Op::send_recv);
  q.in_place = true;
  const auto checked = g.verify(q, Mode::back_to_back);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().text, HasSubstr("sendrecv in place has no defined result"));
  EXPECT_THAT(g.cannot(question(Op::all_gather, 8), Mode::back_to_back).value_or(""),
              HasSubstr("less than 16"));
  EXPECT_THAT(g.cannot(question(Op::all_reduce, 1u << 20), Mode::back_to_back).value_or(""),
              HasSubstr("do not fit"));
  EXPECT_FALSE(g.cannot(question(Op::all_reduce), Mode::graph));
}

TEST_F(FakeGroup, NoLibraryIsSaidWithAHint) {
  ::setenv("TOPOTUNE_NCCL_LIBRARY", "libnccl-that-is-not-there.so", 1);
  const auto library = Library::load();
  ASSERT_FALSE(library);
  EXPECT_THAT(library.error().hint, HasSubstr("TOPOTUNE_NCCL_LIBRARY"));
}

}  // namespace
}  // namespace topotune::nccl
