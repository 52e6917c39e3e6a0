#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace topotune::plugins {

// Ranks of one node agree on a table before they use it: each one enters its table's hash in a small file in
// shared memory, named after user and communicator. NCCL lets the ranks of a node wait for each other after
// their tuners were started and before the first collective, so that all of them see the same entries. The
// first of them that is asked for a decision settles it for all: used if all have entered, otherwise not. The
// last one to enter unlinks the file; the memory stays until the process lets go of it.
//
// A communicator's name can come again: in the next run with one NCCL_COMM_ID, in each shrink of one parent,
// after an attempt that failed half way. So whoever is in holds a shared lock on the file until the
// communicator ends; a file that nobody holds was left behind by ranks that are gone, and begins anew. So
// does one where somebody went before it was settled, or came again: NCCL lets no rank start a communicator
// before all of them are there, hence whatever an earlier attempt entered is void for those of the new one.
class Agreement {
 public:
  Agreement() = default;
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;
  ~Agreement();

  // `hash` 0: this rank has no table that it may use, which is said to the others. `device`: this rank's GPU
  // in this process, which tells a rank that comes again from another one; -1 unknown. Returns the reason
  // where the memory cannot be had, "" otherwise; allocates nothing after it has entered. `folder` is
  // /dev/shm.
  std::string enter(const std::string& folder, std::uint64_t comm_id, std::uint64_t hash, unsigned expected,
                    int device);

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

  std::uint32_t settle() const;
  void end_as(State state) const;  // if it is still open
  bool is_complete() const;
  bool take(std::string& wrong);
  bool refuse(std::string& wrong, const std::string& why);
  void let_go();
  void unmap();
  void leave();

  std::string path_;
  int fd_ = -1;  // of the lock
  Shared* shared_ = nullptr;
  unsigned expected_ = 0;
  int device_ = -1;

  // Those of this process. Its children by fork() let go of files and memory, either of which keeps a lock
  // after its parent.
  struct Members;
  static Members members;
  Agreement* next_ = nullptr;
};

// Files of this user in `folder` that ranks left behind more than an hour ago.
void remove_left_agreements(const std::string& folder);

}  // namespace topotune::plugins
