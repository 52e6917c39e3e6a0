#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

// The profiler's file in shared memory (docs/formats/profile.md): a header, totals, a ring of records.
// Little-endian, as the machine that wrote it; every number is naturally aligned. Written by any number of
// threads of one process, read by anybody at any time.
namespace topotune::plugins {

inline constexpr std::uint64_t kProfileMagic = 0x3146'4f52'5054'5454;  // "TTTPROF1"
inline constexpr std::uint32_t kProfileVersion = 1;
inline constexpr std::uint32_t kMostRanks = 65536;
inline constexpr std::uint32_t kMostRecords = 1 << 20;

enum class ProfileKind : std::uint8_t { none = 0, collective = 1, point_to_point = 2, copy_engine = 3 };

// Numbers as in ncclFunc_t of 2.29; 255 unknown.
inline constexpr const char* kProfileFunctions[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                                    "AllReduce", "SendRecv", "Send",      "Recv",
                                                    "AlltoAll",  "Scatter",  "Gather",    "AllGatherV"};
inline constexpr std::size_t kProfileFunctionCount = 12;
inline constexpr std::size_t kProfileSizes = 48;  // by floor(log2(bytes))
inline constexpr std::uint8_t kUnknown = 255;

struct ProfileRecord {
  std::atomic<std::uint64_t> sequence;  // number of the event from 1; 0: never used, or being written
  std::uint64_t start_ns, stop_ns;      // CLOCK_MONOTONIC: the host's work on it; stop 0: not ended
  std::atomic<std::uint64_t> gpu_start_ns,
      gpu_stop_ns;       // GPU's global timer, of the first and the last channel; 0: not timed
  std::uint64_t bytes;   // count x size of the data type
  std::uint64_t number;  // NCCL's sequence number of the function in this communicator
  std::uint8_t kind, function, algorithm, protocol, datatype, channels, warps;
  std::atomic<std::uint8_t> stopped;   // channels whose kernels have ended, modulo 256
  std::int32_t peer;                   // root or peer
  std::atomic<std::uint32_t> kernels;  // channels whose kernels were timed
};
static_assert(sizeof(ProfileRecord) == 72);

struct ProfileTotal {
  std::atomic<std::uint64_t> calls, bytes;
};

struct ProfileHeader {
  std::uint64_t magic;
  std::uint32_t version, header_bytes, record_bytes, records;  // records: a power of two
  std::uint32_t ranks, nodes, rank, abi;  // ranks and nodes 0: this interface does not tell
  std::uint64_t comm_id;                  // 0: not told yet
  std::uint64_t pid;
  std::uint64_t began_ns, began_unix_ns;  // one moment on both clocks
  char host[64], comm_name[64];
  std::atomic<std::uint64_t> next;     // events so far: the next one is next + 1
  std::atomic<std::uint64_t> closed;   // 1: the communicator was finalized
  std::atomic<std::uint64_t> foreign;  // bytes sent for ranks of other processes (PXN)
  std::atomic<std::uint32_t> mask, paused;
  std::uint32_t base_mask, sample;  // event bits of every collective; 1: their kernels are timed
  ProfileTotal totals[kProfileFunctionCount][kProfileSizes];
  // Behind it: ranks x atomic u64, bytes sent to each over the network; then the ring at header_bytes.
};
static_assert(sizeof(ProfileHeader) ==
              56 + 32 + 128 - 16 + 24 + 16 + kProfileFunctionCount * kProfileSizes * 16);

inline constexpr std::size_t profile_header_bytes(std::uint32_t ranks) {
  return (sizeof(ProfileHeader) + std::size_t{8} * ranks + 63) / 64 * 64;
}

}  // namespace topotune::plugins
