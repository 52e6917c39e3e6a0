#pragma once

#include <atomic>
#include <cstdint>

#include "plugins/names.h"
#include "plugins/nccl_types.h"
#include "plugins/profile_format.h"

namespace topotune::plugins {

// The variables that the profiler plugin reads (docs/tuning.md).
struct ProfilerSettings {
  const char* folder = "/dev/shm";  // TOPOTUNE_PROFILER_DIR
  std::uint32_t records = 4096;     // TOPOTUNE_PROFILER_RECORDS: of a communicator, a power of two
  bool kernels = false;             // TOPOTUNE_PROFILER_KERNELS: they are timed
  int mask = 0;                     // TOPOTUNE_PROFILER_MASK; 0: collectives, and network steps between nodes
  char refused[160] = "";           // what is wrong with one of them, whose usual value holds; "" nothing
  static ProfilerSettings from_environment();
};

// What NCCL said about a communicator; zeroes where its interface is older than v4.
struct CommFacts {
  std::uint64_t comm = 0;
  const char* name = nullptr;
  int nodes = 0, ranks = 0, rank = -1, abi = 0;
};

// One event as all versions of the interface describe it.
struct Event {
  ProfileKind kind = ProfileKind::none;
  std::uint8_t function = kUnknown, algorithm = kUnknown, protocol = kUnknown, datatype = kUnknown,
               channels = 0, warps = 0;
  int peer = -1;
  std::uint64_t bytes = 0, number = 0;
};

// NCCL's event bits for a communicator: network steps cost something, and there are none within a node.
int events_of(const ProfilerSettings& settings, const CommFacts& facts);

using Reason = char[320];

// A communicator's file. Nothing here throws or takes memory but the file's own, since a job may have none
// left, and nothing waits or fails after open(). One line of the cache, since a job's other work has taken
// the caches away whenever an event comes.
class alignas(64) Profile {
 public:
  // False with the reason where the file cannot be made.
  bool open(const ProfilerSettings& settings, const CommFacts& facts, Reason& why);
  void forget();  // gives back the memory of a closed one
  bool is_open() const { return header() != nullptr; }
  bool close();  // gives back the memory of records that were never used; false: it was closed already

  void expect() const;                      // an event will begin soon
  std::uint64_t begin(const Event& event);  // its number, for the calls below; 0 once closed
  void end(std::uint64_t number) const;
  void kernel(std::uint64_t number, std::uint64_t timer, bool stop) const;
  void sent(std::uint32_t peer, std::uint64_t bytes) const;
  void sent_for_others(std::uint64_t bytes) const {
    header()->foreign.fetch_add(bytes, std::memory_order_relaxed);
  }
  void name(std::uint64_t comm, int rank);  // as older interfaces tell it, with the first event
  void pause(bool on) { header()->paused.store(on ? 1 : 0, std::memory_order_relaxed); }

  Names names;

 private:
  ProfileHeader* header() const { return header_.load(std::memory_order_acquire); }
  ProfileRecord& record(std::uint64_t number) const { return ring_[(number - 1) & last_]; }
  void count(ProfileHeader& header, const Event& event);

  std::atomic<ProfileHeader*> header_{nullptr};  // set last
  ProfileRecord* ring_ = nullptr;
  std::uint32_t last_ = 0;                         // records - 1
  std::atomic<std::uint32_t> next_{0}, total_{0};  // number and total of the newest event: only where to look
};
static_assert(sizeof(Profile) == 64);

// Removes files of this user whose process is gone and whose newest event is older than an hour; those of
// processes of other hosts and containers, which cannot be seen, after a week without one.
void remove_stale(const char* folder);

}  // namespace topotune::plugins
