#pragma once

#include <cstddef>
#include <cstdint>

// The C interface between the program and libtopotune-verbs.so, which alone is linked with libibverbs.
extern "C" {

// What failed: the step in the words of kGdrSteps, the error number of the system (a completion's status for
// "completion"), and the library's words.
struct TopotuneVerbsFault {
  char step[32];
  int number;
  char text[224];
};

// One thread uses it. Functions that return int: 0, or another number and a fault.
struct TopotuneVerbs {
  int version;  // kVerbsModuleVersion
  // Names of the devices that libibverbs opens here, a space between two.
  int (*devices)(char* names, std::size_t size, TopotuneVerbsFault* fault);
  // One end of a reliable connection on a port; gid_index -1: addressed by LID. Null: a fault.
  void* (*open)(const char* device, int port, int gid_index, TopotuneVerbsFault* fault);
  // Registers memory for local and remote reads and writes, in place of what was registered; dmabuf_fd -1: by
  // its address, else by the buffer that the descriptor stands for, which begins at `address`.
  int (*register_memory)(void* end, void* address, std::size_t bytes, int dmabuf_fd,
                         TopotuneVerbsFault* fault);
  // Two different ends with each other; they may be on one port.
  int (*connect)(void* a, void* b, TopotuneVerbsFault* fault);
  // `count` times `bytes` from a's memory at from_offset to b's at to_offset (op 0, RDMA write), or from b's
  // memory at from_offset to a's at to_offset (op 1, RDMA read); at most `window` under way. `seconds`: until
  // the last completion.
  int (*transfer)(void* a, void* b, int op, std::size_t from_offset, std::size_t to_offset, std::size_t bytes,
                  std::uint64_t count, int window, double limit_seconds, double* seconds,
                  TopotuneVerbsFault* fault);
  void (*close)(void* end);
};

inline constexpr int kVerbsModuleVersion = 1;
const TopotuneVerbs* topotune_verbs();

}  // extern "C"
