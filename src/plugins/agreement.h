#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace topotune::plugins {

// Ranks of one node agree on a table before they use it: each one enters its table's hash in a small file in
// shared memory, named after user and communicator. NCCL lets the ranks of a node wait for each other after
// their tuners were started and before the first collective, so that all of them see the same entries. The
// first of them that is asked for a decision settles it for all: used if all have entered, otherwise not.
// Then the file goes; the memory stays until the process lets go of it.
//
// A communicator's name can come again: in the next run with one NCCL_COMM_ID, in each shrink of one parent,
// after an attempt that failed half way. So whoever is in holds a shared lock on the file until the
// communicator ends; a file that nobody holds was left behind by ranks that are gone, and begins anew. So
// does one that somebody left before it was settled. Entries of an earlier attempt that are still held make
// too many of them: at least one rank of the new attempt finds the file full, and what it holds is void for
// all, before any of them may decide.
class Agreement {
 public:
  Agreement() = default;
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;
  ~Agreement() { leave(); }

  // `hash` 0: this rank has no table that it may use, which is said to the others. Returns the reason where
  // the memory cannot be had, "" otherwise; allocates nothing after it has entered. `folder` is /dev/shm.
  std::string enter(const std::string& folder, std::uint64_t comm_id, std::uint64_t hash, unsigned expected);

  // All entered with one table: settled by the first call on any rank.
  bool holds() const {
    if (shared_ == nullptr) return false;
    const auto state = shared_->state.load(std::memory_order_acquire);
    return (state == kOpen ? settle() : state) == kUsed;
  }
  // "" while it holds, otherwise what is wrong.
  std::string why_not() const;

 private:
  enum State : std::uint32_t { kOpen, kUsed, kMissing, kDifferent, kVoid };
  struct Shared {
    std::atomic<std::uint64_t> hash;  // of the first to enter
    std::atomic<std::uint32_t> entered, expected;
    std::atomic<std::uint32_t> state;  // leaves kOpen once
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  enum class Taken { yes, again, no };
  Taken take(int fd, std::string& wrong);
  std::uint32_t settle() const;
  bool end_as(State state) const;  // if it is still open
  void remove_file(bool held_by_others) const;
  void leave();

  std::string path_;
  ino_t file_ = 0;
  pid_t process_ = 0;         // its children have neither file nor memory
  Shared* shared_ = nullptr;  // keeps the lock
  unsigned expected_ = 0;
};

// Files of this user in `folder` that ranks left behind more than an hour ago.
void remove_left_agreements(const std::string& folder);

}  // namespace topotune::plugins
