#include "act/apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>

#include "act/allow.h"
#include "act/tree.h"

namespace topotune::act {
namespace {

using model::ActionKind;
using testing::HasSubstr;

class ApplyTest : public TreeTest {};

TEST_F(ApplyTest, DoesEverythingAndTakesItBack) {
  const auto before = picture();
  System system(root);
  const auto done = apply(system, plan(), {});
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_TRUE(done->complete());
  EXPECT_EQ(get("/proc/sys/kernel/numa_balancing"), "0\n");
  EXPECT_EQ(get("/etc/nccl.conf"), "NCCL_DEBUG=WARN\n");
  const auto config = get("/sys/bus/pci/devices/0000:02:00.0/config");
  EXPECT_EQ(config[0x106], 0x01);
  EXPECT_EQ(config[0x49], 0x50);
  EXPECT_THAT(get("/etc/systemd/system/slurmd.service.d/90-topotune.conf"), HasSubstr("LimitMEMLOCK"));
  const auto undone = undo(system, {});
  ASSERT_TRUE(undone) << undone.error().to_string();
  EXPECT_EQ(undone->accounts.size(), 7U);
  EXPECT_EQ(undone->accounts.front().id, "/etc/nccl.conf");  // newest first
  EXPECT_EQ(picture(), before);
  EXPECT_TRUE(undo(system, {})->accounts.empty());
}

TEST_F(ApplyTest, WhatHoldsAlreadyIsNotJournalled) {
  System system(root);
  ASSERT_TRUE(apply(system, plan(), {}));
  const auto again = apply(system, plan(), {});
  ASSERT_TRUE(again) << again.error().to_string();
  for (const auto& one : again->accounts) EXPECT_EQ(one.outcome, Outcome::already) << one.id;
  EXPECT_EQ(undo(system, {})->accounts.size(), 7U);
}

TEST_F(ApplyTest, ADifferentMachineIsRefusedBeforeAnythingIsWritten) {
  put("/etc/nccl.conf", "NCCL_P2P_DISABLE=1\n");  // the last action of the plan
  const auto before = picture();
  System system(root);
  const auto done = apply(system, plan(), {});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text, HasSubstr("nothing was changed"));
  EXPECT_EQ(picture(), before);
  EXPECT_EQ(get(kJournal), "(absent)");
}

TEST_F(ApplyTest, AFileOfAnotherHandIsNotOverwritten) {
  put("/etc/sysctl.d/90-topotune.conf", "vm.swappiness = 1\n");
  System system(root);
  EXPECT_THAT(apply(system, plan(), {}).error().text, HasSubstr("exists and was not written by topotune"));
}

// As a user who may read everything and write nothing.
TEST_F(ApplyTest, MissingRightsAreSaidBeforeAnythingIsWritten) {
  constexpr uid_t kNobody = 65534;
  ::chmod(root.c_str(), 0755);
  const auto before = picture();
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(3);
    if (::access((root + "/proc/sys/kernel/numa_balancing").c_str(), W_OK) == 0) ::_exit(4);  // its own tree
    System system(root);
    const auto done = apply(system, plan(), {});
    ::_exit(!done && done.error().code == Errc::denied &&
                    done.error().text.ends_with("Permission denied; nothing was changed")
                ? 0
                : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WEXITSTATUS(status) == 4) GTEST_SKIP() << "this user owns the tree";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(picture(), before);
}

TEST_F(ApplyTest, AnInterruptThatBelongsToAnotherDeviceNowIsLeft) {
  auto moved = plan();
  moved.actions[1].where = "0000:02:00.0";
  System system(root);
  EXPECT_THAT(apply(system, moved, {}).error().text,
              HasSubstr("interrupt 40 does not belong to 0000:02:00.0 any more"));
  put("/sys/bus/pci/devices/0000:02:00.0/msi_irqs/40", "msix\n");
  EXPECT_TRUE(apply(system, moved, {})->complete());
}

TEST_F(ApplyTest, DisruptiveActionsNeedToBeAskedFor) {
  model::Plan mtu;
  mtu.actions = {action(ActionKind::sysfs, "/sys/class/net/eth7/mtu", "9000", "1500")};
  mtu.actions[0].risk = model::ActionRisk::disruptive;
  System system(root);
  EXPECT_TRUE(apply(system, mtu, {})->accounts.empty());
  EXPECT_EQ(get("/sys/class/net/eth7/mtu"), "1500\n");
  EXPECT_TRUE(apply(system, mtu, {true})->complete());
  EXPECT_EQ(get("/sys/class/net/eth7/mtu"), "9000\n");
}

TEST_F(ApplyTest, TheFirstFailureEndsItAndTheAccountIsClean) {
  auto broken = plan();
  broken.actions[2].value = "0x1ffff";  // found out when the register is made
  System system(root);
  const auto done = apply(system, broken, {});
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_FALSE(done->complete());
  EXPECT_EQ(done->accounts[1].outcome, Outcome::done);
  EXPECT_EQ(done->accounts[2].outcome, Outcome::failed);
  EXPECT_EQ(done->accounts[3].outcome, Outcome::not_reached);
  EXPECT_TRUE(undo(system, {})->complete());
  EXPECT_EQ(get("/proc/sys/kernel/numa_balancing"), "1\n");
}

TEST_F(ApplyTest, UndoLeavesWhatAnotherHandChangedSince) {
  System system(root);
  ASSERT_TRUE(apply(system, plan(), {}));
  put("/proc/irq/40/smp_affinity_list", "3\n");
  const auto undone = undo(system, {});
  ASSERT_TRUE(undone);
  EXPECT_FALSE(undone->complete());
  EXPECT_EQ(get("/proc/irq/40/smp_affinity_list"), "3\n");
  ASSERT_TRUE(undo(system, {true, false})->complete());
  EXPECT_EQ(get("/proc/irq/40/smp_affinity_list"), "0-3\n");
}

TEST_F(ApplyTest, LinksCannotLeaveTheFolder) {
  std::filesystem::remove_all(root + "/etc/sysctl.d");
  const auto outside = root + "-outside";
  std::filesystem::create_directories(outside);
  std::filesystem::create_directory_symlink(outside, root + "/etc/sysctl.d");
  System system(root);
  (void)apply(system, plan(), {});
  EXPECT_TRUE(std::filesystem::is_empty(outside));
  std::filesystem::remove_all(outside);
}

TEST_F(ApplyTest, TwoAtOnceExcludeEachOther) {
  System system(root);
  auto held = Journal::open(system);
  ASSERT_TRUE(held);
  System other(root);
  EXPECT_THAT(apply(other, plan(), {}).error().text, HasSubstr("another topotune is changing this machine"));
}

TEST(Allow, OnlyTheTable) {
  const auto why = [](ActionKind kind, const char* target, const char* value) {
    model::Action one;
    one.kind = kind;
    one.target = target;
    one.value = value;
    return refused(one).value_or("");
  };
  EXPECT_EQ(why(ActionKind::sysfs, "/sys/class/net/eth0/mtu", "9000"), "");
  EXPECT_EQ(why(ActionKind::sysfs, "/sys/devices/system/cpu/cpu12/cpufreq/scaling_governor", "performance"),
            "");
  for (const auto* path : {"/sys/bus/pci/devices/0000:01:00.0/remove", "/sys/bus/pci/drivers/nvidia/unbind",
                           "/sys/class/net/../../kernel/mtu", "/proc/sys/kernel/core_pattern",
                           "/proc/sys/kernel/../kernel/numa_balancing", "/sys/class/net/a b/mtu", "relative"})
    EXPECT_NE(why(ActionKind::sysfs, path, "1"), "") << path;
  for (const auto* path : {"/etc/passwd", "/etc/cron.d/x", "/etc/sysctl.d/../passwd",
                           "/etc/systemd/system/other.service", "x/.nccl.conf"})
    EXPECT_NE(why(ActionKind::file, path, "x"), "") << path;
  EXPECT_EQ(why(ActionKind::file, "/root/.nccl.conf", "x"), "");
  EXPECT_NE(why(ActionKind::affinity, "/proc/irq/4/smp_affinity", "1"), "");
  EXPECT_NE(why(ActionKind::affinity, "/proc/irq/4/smp_affinity_list", "zz"), "");
  EXPECT_NE(why(ActionKind::config, "pci:0000:01:00.0/Command", "0"), "");
  EXPECT_NE(why(ActionKind::sysfs, "/sys/class/net/eth0/mtu", "1\n2"), "");
  model::Action command;
  command.kind = ActionKind::command;
  command.command = {"modprobe", "-r", "nvidia"};
  EXPECT_TRUE(refused(command));
}

// ---- kill -9

// Dies at its n-th point, as by kill -9: nothing is flushed, no destructor runs.
class Mortal final : public System {
 public:
  Mortal(std::string root, int points) : System(std::move(root)), left_(points) {}

 protected:
  void point() override {
    if (left_-- == 0) ::kill(::getpid(), SIGKILL);
  }

 private:
  int left_;
};

// True when the child came to its end.
template <class Body>
bool survives(const std::string& root, int points, Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    Mortal system(root, points);
    (void)body(system);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status);
}

class CrashTest : public TreeTest {
 protected:
  static constexpr int kNever = 1'000'000;
  bool dies_in_apply(int points) const {
    return !survives(root, points, [](System& system) { return apply(system, plan(), {}).has_value(); });
  }
  bool dies_in_undo(int points) const {
    return !survives(root, points, [](System& system) { return undo(system, {}).has_value(); });
  }
  void undo_whole() const {
    System system(root);
    const auto done = undo(system, {});
    ASSERT_TRUE(done) << done.error().to_string();
    ASSERT_TRUE(done->complete());
  }
};

TEST_F(CrashTest, ApplyKilledAtEveryPointIsUndone) {
  const auto before = picture();
  int points = 0;
  while (dies_in_apply(points)) {
    undo_whole();
    ASSERT_EQ(picture(), before) << "killed at point " << points;
    ++points;
  }
  EXPECT_GT(points, 60);
}

TEST_F(CrashTest, UndoKilledAtEveryPointIsTakenUpAgain) {
  const auto before = picture();
  int points = 0;
  for (;; ++points) {
    ASSERT_FALSE(dies_in_apply(kNever));
    const bool died = dies_in_undo(points);
    if (died) undo_whole();
    ASSERT_EQ(picture(), before) << "killed at point " << points;
    if (!died) break;
  }
  EXPECT_GT(points, 40);
}

// Apply killed, its undo killed, that one's undo killed, at 200 random triples.
TEST_F(CrashTest, KilledAgainAndAgainAtRandomPoints) {
  const auto before = picture();
  std::mt19937 random(20261129);
  for (int round = 0; round < 200; ++round) {
    const int a = static_cast<int>(random() % 110), b = static_cast<int>(random() % 80),
              c = static_cast<int>(random() % 80);
    dies_in_apply(a);
    dies_in_undo(b);
    dies_in_undo(c);
    undo_whole();
    ASSERT_EQ(picture(), before) << a << " " << b << " " << c;
  }
}

TEST_F(CrashTest, AnInterruptedApplyMustBeUndoneFirst) {
  ASSERT_TRUE(dies_in_apply(30));
  System system(root);
  const auto again = apply(system, plan(), {});
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().text, HasSubstr("was interrupted"));
  EXPECT_EQ(again.error().hint, "topotune undo");
}

TEST(Journal, ADamagedMiddleIsAnErrorACutTailIsNot) {
  EXPECT_TRUE(parse_journal("")->entries.empty());
  EXPECT_TRUE(parse_journal("00000000 {}")->entries.empty());
  const auto damaged = parse_journal("00000000 {}\n00000000 {}\n");
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().line, 1);
}

}  // namespace
}  // namespace topotune::act
