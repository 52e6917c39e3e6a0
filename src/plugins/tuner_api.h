#pragma once

#include "plugins/nccl_types.h"

namespace topotune::plugins {

// The order of the members is the interface; each version is a data symbol of its own, ncclTunerPlugin_vN.
// NCCL takes the newest that it knows: 2.21 v2, 2.22 v3, 2.24 v4, 2.28 v5, 2.30 v6.
struct TunerV2 {
  const char* name;
  Rc (*init)(std::size_t ranks, std::size_t nodes, Logger log, void** context);
  Rc (*get_coll_info)(void* context, int function, std::size_t bytes, int collnet, int nvls, int pipe_ops,
                      int* algorithm, int* protocol, int* channels);
  Rc (*destroy)(void* context);
};

// `costs` is declared float** by NCCL and is one float[algorithms][protocols].
struct TunerV3 {
  const char* name;
  Rc (*init)(std::size_t ranks, std::size_t nodes, Logger log, void** context);
  Rc (*get_coll_info)(void* context, int function, std::size_t bytes, int pipe_ops, float** costs,
                      int algorithms, int protocols, int* channels);
  Rc (*destroy)(void* context);
};

struct TunerV4 {
  const char* name;
  Rc (*init)(std::size_t ranks, std::size_t nodes, Logger log, void** context);
  Rc (*get_coll_info)(void* context, int function, std::size_t bytes, int pipe_ops, float** costs,
                      int algorithms, int protocols, int registered, int* channels);
  Rc (*destroy)(void* context);
};

struct NvlDomains {
  int domains, least_ranks, most_ranks;
};
// In: NCCL's constants, microseconds and GB/s; this plugin leaves them as they are.
struct TunerConstants {
  double base_latencies[7][3];
  double hardware_latencies[3][7][3];
  double ll_max[4][3], ring_ll128[4][3], tree_ll128[4][3], tree[4][3], nvls_tree[4][3];
};

struct TunerV5 {
  const char* name;
  Rc (*init)(void** context, std::uint64_t comm_id, std::size_t ranks, std::size_t nodes, Logger log,
             NvlDomains* domains, TunerConstants* constants);
  Rc (*get_coll_info)(void* context, int function, std::size_t bytes, int pipe_ops, float** costs,
                      int algorithms, int protocols, int registered, int* channels);
  Rc (*finalize)(void* context);
};

struct TunerV6 {
  const char* name;
  Rc (*init)(void** context, std::uint64_t comm_id, std::size_t ranks, std::size_t nodes, Logger log,
             NvlDomains* domains, TunerConstants* constants);
  Rc (*get_coll_info)(void* context, int function, std::size_t bytes, int pipe_ops, float** costs,
                      int algorithms, int protocols, int registered, int* channels);
  Rc (*finalize)(void* context);
  Rc (*get_chunk_size)(void* context, int function, std::size_t bytes, int algorithm, int protocol,
                       int channels,
                       std::size_t* chunk);  // null: NCCL's chunk size
};

static_assert(sizeof(TunerV2) == 32 && sizeof(TunerV3) == 32 && sizeof(TunerV4) == 32 &&
              sizeof(TunerV5) == 32);
static_assert(sizeof(TunerV6) == 40 && offsetof(TunerV6, get_chunk_size) == 32);
static_assert(sizeof(NvlDomains) == 12 && sizeof(TunerConstants) == (21 + 63 + 60) * 8);

}  // namespace topotune::plugins
