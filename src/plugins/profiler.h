#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "plugins/nccl_types.h"
#include "plugins/profile_format.h"

namespace topotune::plugins {

// The variables that the profiler plugin reads (docs/tuning.md).
struct ProfilerSettings {
  std::string folder = "/dev/shm";  // TOPOTUNE_PROFILER_DIR
  std::uint32_t records = 4096;     // TOPOTUNE_PROFILER_RECORDS: of a communicator, a power of two
  std::uint32_t sample = 512;  // TOPOTUNE_PROFILER_SAMPLE: kernels of each n-th collective are timed; 0 none
  int mask = 0;                // TOPOTUNE_PROFILER_MASK; 0: collectives, and network steps between nodes
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

// A communicator's file. Nothing here waits, allocates or fails after open().
class Profile {
 public:
  // The reason where the file cannot be made, "" otherwise.
  std::string open(const ProfilerSettings& settings, const CommFacts& facts, int* mask);
  void close();

  std::uint64_t begin(const Event& event);  // its number, for the calls below
  void end(std::uint64_t number);
  void kernel(std::uint64_t number, std::uint64_t timer, bool stop);
  void sent(std::uint32_t peer, std::uint64_t bytes);
  void sent_for_others(std::uint64_t bytes) { header_->foreign.fetch_add(bytes, std::memory_order_relaxed); }
  void name(std::uint64_t comm, int rank);  // as older interfaces tell it, with the first event
  void pause(bool on) { header_->paused.store(on ? 1 : 0, std::memory_order_relaxed); }

 private:
  ProfileRecord* record(std::uint64_t number) const;
  void count(const Event& event);
  void window(std::uint64_t number) const;

  ProfileHeader* header_ = nullptr;
  std::atomic<std::uint64_t>* sent_ = nullptr;
  ProfileRecord* ring_ = nullptr;
  int* mask_ = nullptr;
};

// Removes files of this user whose process is gone and that are older than an hour.
void remove_stale(const std::string& folder);

}  // namespace topotune::plugins
