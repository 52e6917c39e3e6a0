#pragma once

#include "plugins/nccl_types.h"

// The layouts repeat from version to version, member by member and with small changes: that is the interface.
// NCCL hands over whichever one a version was compiled with, so that each is written out, and compared with
// NCCL's own headers where these are at hand (tests/plugins/headers_test.cc).
//
// Each version is a data symbol of its own, ncclProfiler_vN. NCCL takes the newest that it knows: 2.23
// v1, 2.24 v2, 2.26 v3, 2.27 v4, 2.28 v5, 2.29 v6.
namespace topotune::plugins {

enum ProfilerEvent : std::uint64_t {
  kGroup = 1,
  kColl = 2,
  kP2p = 4,
  kProxyOp = 8,
  kProxyStep = 16,
  kProxyCtrl = 32,
  kKernelCh = 64,
  kNetPlugin = 128,
  kCollApi = 512,
  kP2pApi = 1024,
  kCeColl = 4096
};
// ncclProfilerEventState_t, those that are looked at.
inline constexpr int kSendWait = 9, kKernelChStop = 22;

struct CollV1 {
  const char* name;
  std::uint64_t comm;
  std::uint64_t number;
  std::uint8_t function;
  const void* send;
  void* recv;
  std::size_t count;
  int root;
  std::uint8_t datatype;
  std::uint32_t op;
  std::size_t traffic;
  std::uint8_t channels, warps, algorithm, protocol;
  int collnet, nvls;
};
struct P2pV1 {
  const char* name;
  std::uint64_t comm;
  std::uint8_t function;
  void* buffer;
  std::uint8_t datatype;
  std::size_t count;
  int peer;
};
struct ProxyOp {
  int pid;
  std::uint8_t channel;
  int peer, steps, chunk, is_send;
};
struct ProxyStep {
  int step;
};
struct CollV2 {
  const char* name;
  std::uint64_t comm;
  std::uint64_t number;
  const char* function;
  const void* send;
  void* recv;
  std::size_t count;
  int root;
  const char* datatype;
  std::size_t traffic;
  std::uint8_t channels, warps;
  const char *algorithm, *protocol;
};
struct P2pV2 {
  const char* name;
  std::uint64_t comm;
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
};
struct CollV3 {
  const char* name;
  std::uint64_t comm;
  std::uint64_t number;
  const char* function;
  const void* send;
  void* recv;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels, warps;
  const char *algorithm, *protocol;
};
struct KernelChV3 {
  std::uint8_t channel;
};
struct NetEvent {
  std::int64_t id;
  void* data;
};
struct CollV4 {
  std::uint64_t number;
  const char* function;
  const void* send;
  void* recv;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels, warps;
  const char *algorithm, *protocol;
};
struct P2pV4 {
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
  std::uint8_t channels;
};
struct KernelChV4 {
  std::uint8_t channel;
  std::uint64_t timer;
};
struct CollV5 {
  std::uint64_t number;
  const char* function;
  const void* send;
  void* recv;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels, warps;
  const char *algorithm, *protocol;
  void* parent_group;
};
struct P2pV5 {
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
  std::uint8_t channels;
  void* parent_group;
};
struct CollApi {
  const char* function;
  std::size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool captured;
};
struct CeColl {
  std::uint64_t number;
  const char* function;
  const void* send;
  void* recv;
  std::size_t count;
  int root;
  const char *datatype, *strategy;
  bool intra_batch;
  std::uint32_t batch, batches, ce_number;
  void* stream;
};

struct DescrV1 {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    CollV1 coll;
    P2pV1 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
  };
};
struct DescrV2 {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    CollV2 coll;
    P2pV2 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
  };
};
struct DescrV3 {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    CollV3 coll;
    P2pV2 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelChV3 kernel;
    NetEvent net;
  };
};
struct DescrV4 {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    CollV4 coll;
    P2pV4 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelChV4 kernel;
    NetEvent net;
  };
};
struct DescrV5 {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    CollApi coll_api;
    CollV5 coll;
    P2pV5 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelChV4 kernel;
    NetEvent net;
  };
};
struct DescrV6 {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    CollApi coll_api;
    CollV5 coll;
    P2pV5 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelChV4 kernel;
    NetEvent net;
    CeColl ce;
  };
};

// v1 to v3: {bytes, steps} of proxy steps; from v4 on {bytes} or the GPU's timer.
union StateArgs {
  std::size_t bytes;
  std::uint64_t timer;
  void* data;
  int appended;
};

template <class Descr>
struct ProfilerUnnamed {  // v1 to v3
  const char* name;
  Rc (*init)(void** context, int* mask);
  Rc (*start)(void* context, void** handle, Descr* descr);
  Rc (*stop)(void* handle);
  Rc (*record)(void* handle, int state, StateArgs* args);
  Rc (*finalize)(void* context);
};
struct ProfilerV4 {
  const char* name;
  Rc (*init)(void** context, int* mask, const char* comm_name, std::uint64_t comm, int nodes, int ranks,
             int rank, Logger log);
  Rc (*start)(void* context, void** handle, DescrV4* descr);
  Rc (*stop)(void* handle);
  Rc (*record)(void* handle, int state, StateArgs* args);
  Rc (*finalize)(void* context);
};
template <class Descr>
struct ProfilerNamed {  // v5, v6
  const char* name;
  Rc (*init)(void** context, std::uint64_t comm, int* mask, const char* comm_name, int nodes, int ranks,
             int rank, Logger log);
  Rc (*start)(void* context, void** handle, Descr* descr);
  Rc (*stop)(void* handle);
  Rc (*record)(void* handle, int state, StateArgs* args);
  Rc (*finalize)(void* context);
};

// The layouts of NCCL 2.30's headers on 64-bit Linux.
static_assert(sizeof(DescrV1) == 120 && offsetof(DescrV1, coll.count) == 72 &&
              offsetof(DescrV1, coll.protocol) == 107);
static_assert(offsetof(DescrV1, p2p.peer) == 72 && offsetof(DescrV1, proxy_op.is_send) == 44);
static_assert(sizeof(DescrV2) == 128 && offsetof(DescrV2, coll.count) == 72 &&
              offsetof(DescrV2, coll.protocol) == 120);
static_assert(offsetof(DescrV2, p2p.peer) == 72 && offsetof(DescrV2, proxy_op.is_send) == 44);
static_assert(sizeof(DescrV3) == 120 && offsetof(DescrV3, coll.count) == 72 &&
              offsetof(DescrV3, coll.protocol) == 112);
static_assert(offsetof(DescrV3, p2p.peer) == 72 && offsetof(DescrV3, proxy_op.is_send) == 44);
static_assert(sizeof(DescrV4) == 104 && offsetof(DescrV4, coll.count) == 56 &&
              offsetof(DescrV4, coll.protocol) == 96);
static_assert(offsetof(DescrV4, p2p.peer) == 56 && offsetof(DescrV4, kernel.timer) == 32);
static_assert(sizeof(DescrV5) == 112 && offsetof(DescrV5, coll.count) == 56 &&
              offsetof(DescrV5, coll.protocol) == 96);
static_assert(offsetof(DescrV5, p2p.peer) == 56 && offsetof(DescrV5, kernel.timer) == 32);
static_assert(sizeof(DescrV6) == 112 && offsetof(DescrV6, coll.count) == 56 &&
              offsetof(DescrV6, ce.datatype) == 72);
static_assert(sizeof(StateArgs) == 8 && sizeof(ProfilerV4) == 48 && sizeof(ProfilerNamed<DescrV5>) == 48);

}  // namespace topotune::plugins
