#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace topotune::plugins {

// Ranks of one node agree on a table before they use it: each one enters its table's hash in a small file in
// shared memory, named after user and communicator. NCCL lets the ranks of a node wait for each other after
// their tuners were started and before the first collective, so that all of them see the same entries. The
// last one to enter unlinks the file; the memory stays until the process lets go of it.
//
// A communicator's name can come again: in the next run with one NCCL_COMM_ID, in two shrinks of one parent.
// So whoever is in holds a shared lock on the file until the communicator ends; a file that nobody holds was
// left behind by ranks that are gone, and begins anew.
class Agreement {
 public:
  Agreement() = default;
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;
  ~Agreement();

  // `hash` 0: this rank has no table that it may use, which is said to the others. Returns the reason where
  // the memory cannot be had, "" otherwise. `folder` is /dev/shm.
  std::string enter(const std::string& folder, std::uint64_t comm_id, std::uint64_t hash, unsigned expected);

  // All have entered, with one table.
  bool holds() const;
  // "" while it holds, otherwise what is wrong.
  std::string why_not() const;

 private:
  struct Shared {
    std::atomic<std::uint64_t> hash;  // of the first to enter
    std::atomic<std::uint32_t> entered;
    std::atomic<std::uint32_t> different;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  bool take(std::string& wrong);
  void leave();

  std::string path_;
  int fd_ = -1;  // of the lock
  Shared* shared_ = nullptr;
  unsigned expected_ = 0;
};

}  // namespace topotune::plugins
