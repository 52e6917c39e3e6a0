#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

// The part of NCCL's binary interface that the measurements use, declared here so that neither headers nor a
// library are needed to build; each function is looked up by name in libnccl.so.2. Names, numbers and layouts
// follow nccl.h.
namespace topotune::nccl::api {

using Rc = int;  // ncclResult_t
using Comm = struct CommHandle*;
using Stream = void*;  // cudaStream_t, the same handle as CUstream

inline constexpr Rc kSuccess = 0;
inline constexpr Rc kUnhandledCudaError = 1;
inline constexpr Rc kInProgress = 7;

struct UniqueId {
  char internal[128];
};

// ncclConfig_t as of 2.18: a prefix of later ones. The library takes `size` bytes and gives members that came
// after `version` their defaults.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = INT_MIN;
  int cga_cluster_size = INT_MIN;
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};
static_assert(sizeof(Config) == 48);

// X(member, symbol, parameters): all return ncclResult_t.
#define TOPOTUNE_NCCL_FUNCTIONS(X)                                                                  \
  X(get_version, "ncclGetVersion", (int*))                                                          \
  X(get_unique_id, "ncclGetUniqueId", (UniqueId*))                                                  \
  X(comm_init_rank, "ncclCommInitRank", (Comm*, int, UniqueId, int))                                \
  X(comm_destroy, "ncclCommDestroy", (Comm))                                                        \
  X(comm_abort, "ncclCommAbort", (Comm))                                                            \
  X(get_async_error, "ncclCommGetAsyncError", (Comm, Rc*))                                          \
  X(group_start, "ncclGroupStart", ())                                                              \
  X(group_end, "ncclGroupEnd", ())                                                                  \
  X(all_reduce, "ncclAllReduce", (const void*, void*, std::size_t, int, int, Comm, Stream))         \
  X(broadcast, "ncclBroadcast", (const void*, void*, std::size_t, int, int, Comm, Stream))          \
  X(reduce, "ncclReduce", (const void*, void*, std::size_t, int, int, int, Comm, Stream))           \
  X(all_gather, "ncclAllGather", (const void*, void*, std::size_t, int, Comm, Stream))              \
  X(reduce_scatter, "ncclReduceScatter", (const void*, void*, std::size_t, int, int, Comm, Stream)) \
  X(send, "ncclSend", (const void*, std::size_t, int, int, Comm, Stream))                           \
  X(recv, "ncclRecv", (void*, std::size_t, int, int, Comm, Stream))

// Null where the library is older: with configuration 2.14, error text 2.13, registration 2.19, the last
// three 2.28.
#define TOPOTUNE_NCCL_OPTIONAL(X)                                                          \
  X(comm_init_rank_config, "ncclCommInitRankConfig", (Comm*, int, UniqueId, int, Config*)) \
  X(comm_register, "ncclCommRegister", (Comm, void*, std::size_t, void**))                 \
  X(comm_deregister, "ncclCommDeregister", (Comm, void*))                                  \
  X(all_to_all, "ncclAlltoAll", (const void*, void*, std::size_t, int, Comm, Stream))      \
  X(gather, "ncclGather", (const void*, void*, std::size_t, int, int, Comm, Stream))       \
  X(scatter, "ncclScatter", (const void*, void*, std::size_t, int, int, Comm, Stream))

}  // namespace topotune::nccl::api
