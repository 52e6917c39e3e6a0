#include "launch/bind.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/start.h"

namespace topotune::launch {
namespace {

// In a child: the binding of the test program itself stays.
int in_child(int (*body)()) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST(Bind, OneCpuIsReadBackAndTheCpusetIsSeenBeyondIt) {
  EXPECT_EQ(in_child([] {
              const auto all = allowed_by_cpuset();
              if (!all || all->empty()) return 1;
              CpuSet one;
              one.add(all->to_vector().back());
              const auto bound = bind_cpus(one);
              if (!bound || !(*bound == one)) return 2;
              const auto still = allowed_by_cpuset();
              if (!still || !(*still == *all)) return 3;
              return *current_cpus() == one ? 0 : 4;  // asking put the mask back
            }),
            0);
}

TEST(Bind, CpusThatDoNotExistAreRefused) {
  EXPECT_EQ(in_child([] {
              CpuSet none;
              none.add(CpuSet::kMaxCpu - 1);
              return bind_cpus(none) ? 1 : bind_cpus(CpuSet{}) ? 2 : 0;
            }),
            0);
}

TEST(Bind, MemoryPrefersANode) {
  EXPECT_EQ(in_child([] {
              const auto done = bind_memory(0, MemoryPolicy::preferred);
              if (!done)
                return done.error().code == Errc::denied || done.error().code == Errc::unsupported ? 0 : 1;
              return current_memory_policy().value() == "prefer:0" ? 0 : 2;
            }),
            0);
  EXPECT_FALSE(bind_memory(4096, MemoryPolicy::strict));
}

TEST(Children, TheFirstBadStatusIsTheResult) {
  EXPECT_EQ(run_children(3, [](std::size_t) { return 0; }), 0);
  EXPECT_EQ(run_children(3,
                         [](std::size_t i) {
                           if (i == 1) return 7;
                           ::sleep(30);  // ended by SIGTERM
                           return 0;
                         }),
            7);
}

}  // namespace
}  // namespace topotune::launch
