// Every kernel of the measurements. Loaded through the driver from the fat binary in the program; called by name, so
// each is extern "C" and its parameters are those that launch.cc packs.
#include <cstdint>

#include "coll/values.h"

namespace {

// The pattern: a hash of the place and a seed, so that data of another place or another run is noticed.
__device__ uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

__device__ uint4 pattern(uint64_t place, uint32_t seed) {
  const uint32_t low = mix(static_cast<uint32_t>(place) ^ seed);
  const uint32_t high = mix(static_cast<uint32_t>(place >> 32) + 0x9e3779b9u * seed);
  return make_uint4(low, high ^ low, low + seed, mix(low + high));
}

__device__ uint64_t first_index() { return uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ uint64_t all_threads() { return uint64_t{gridDim.x} * blockDim.x; }

__device__ uint64_t nanoseconds() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

__device__ uint32_t load_acquire(const uint32_t* p) {
  uint32_t v;
#if __CUDA_ARCH__ >= 700
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
#else
  v = *const_cast<const volatile uint32_t*>(p);
#endif
  return v;
}

__device__ void store_relaxed(uint32_t* p, uint32_t v) {
#if __CUDA_ARCH__ >= 700
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
#else
  *const_cast<volatile uint32_t*>(p) = v;
#endif
}

}  // namespace

// Fills count pieces of 16 bytes.
extern "C" __global__ void tt_fill(uint4* p, uint64_t count, uint32_t seed) {
  for (uint64_t i = first_index(); i < count; i += all_threads()) p[i] = pattern(i, seed);
}

// result[0]: pieces that differ; result[1]: the first of them (set to ~0 before).
extern "C" __global__ void tt_check(const uint4* p, uint64_t count, uint32_t seed, unsigned long long* result) {
  for (uint64_t i = first_index(); i < count; i += all_threads()) {
    const uint4 want = pattern(i, seed), have = p[i];
    if (want.x == have.x && want.y == have.y && want.z == have.z && want.w == have.w) continue;
    atomicAdd(result, 1ull);
    atomicMin(result + 1, static_cast<unsigned long long>(i));
  }
}

// 16-byte loads and stores, eight in flight a thread; the whole copy `repeats` times.
extern "C" __global__ void __launch_bounds__(512)
    tt_copy16(uint4* dst, const uint4* src, uint64_t count, uint32_t repeats) {
  const uint64_t step = all_threads();
  for (uint32_t r = 0; r < repeats; ++r) {
    uint64_t i = first_index();
    for (; i + 7 * step < count; i += 8 * step) {
      uint4 v[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) v[k] = src[i + k * step];
#pragma unroll
      for (int k = 0; k < 8; ++k) dst[i + k * step] = v[k];
    }
    for (; i < count; i += step) dst[i] = src[i];
    asm volatile("" ::: "memory");  // every repetition loads again
  }
}

#if __CUDA_ARCH__ >= 900
namespace {

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ void wait_full(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n .reg .pred done;\n"
      "again:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      " @!done bra again;\n}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ void load_bulk(uint32_t to, const char* from, uint32_t bytes, uint32_t barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

__device__ void store_bulk(char* to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// A ring of `stages` chunks in shared memory. `Drain` stores may still be reading theirs when the next load is issued;
// stages - Drain loads are in flight.
template <int Drain>
__device__ void copy_ring(char* dst, const char* src, uint64_t bytes, uint32_t chunk, uint32_t stages,
                          uint32_t repeats) {
  extern __shared__ __align__(128) char ring[];
  __shared__ __align__(8) uint64_t full[64];
  if (threadIdx.x != 0) return;
  for (uint32_t s = 0; s < stages; ++s)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full[s])) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  const uint64_t chunks = (bytes + chunk - 1) / chunk;
  const uint64_t mine = blockIdx.x < chunks ? (chunks - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
  const uint64_t total = mine * repeats;  // this block's chunks over all repetitions
  const auto size = [&](uint64_t place) {
    const uint64_t left = bytes - place * chunk;
    return static_cast<uint32_t>(left < chunk ? left : chunk);
  };
  // The place after this one; from the last back to the first, for the next repetition.
  const auto after = [&](uint64_t place) {
    return place + gridDim.x < chunks ? place + gridDim.x : uint64_t{blockIdx.x};
  };
  uint64_t load_place = blockIdx.x, store_place = blockIdx.x;
  uint32_t load_stage = 0;
  const auto load = [&] {
    load_bulk(shared_address(ring) + load_stage * chunk, src + load_place * chunk, size(load_place),
              shared_address(&full[load_stage]));
    load_place = after(load_place);
    load_stage = load_stage + 1 < stages ? load_stage + 1 : 0;
  };
  const uint32_t ahead = stages - Drain;
  for (uint64_t k = 0; k < ahead && k < total; ++k) load();
  uint32_t stage = 0, parity = 0;
  for (uint64_t k = 0; k < total; ++k) {
    wait_full(shared_address(&full[stage]), parity);
    store_bulk(dst + store_place * chunk, shared_address(ring) + stage * chunk, size(store_place));
    store_place = after(store_place);
    if (++stage == stages) stage = 0, parity ^= 1;
    if (k + ahead >= total) continue;
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Drain) : "memory");
    load();
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

}  // namespace
#define TT_BULK(drain)                                                                                     \
  extern "C" __global__ void __launch_bounds__(32)                                                         \
      tt_bulk##drain(char* dst, const char* src, uint64_t bytes, uint32_t chunk, uint32_t stages,          \
                     uint32_t repeats) {                                                                   \
    copy_ring<drain>(dst, src, bytes, chunk, stages, repeats);                                             \
  }
#else
#define TT_BULK(drain) \
  extern "C" __global__ void tt_bulk##drain(char*, const char*, uint64_t, uint32_t, uint32_t, uint32_t) { __trap(); }
#endif
// The copy engine of the multiprocessors (TMA), one issuing thread a block. Dynamic shared memory: chunk x stages bytes,
// stages <= 64 and more than the drain; chunk a multiple of 16; addresses of 16.
TT_BULK(2)
TT_BULK(4)
TT_BULK(8)

// Follows `count` pointers from `start`; each load needs the one before. Only block `which` of the grid works: with a
// block for each multiprocessor, `which` chooses the one that loads. kind: 0 ld.relaxed.sys, which passes the
// first-level cache; 1 ld.cg, which also does; 2 a plain load, which does not.
extern "C" __global__ void tt_chase(uint64_t start, uint64_t count, uint64_t* end, uint32_t which, uint32_t kind) {
  if (blockIdx.x != which) return;
  uint64_t p = start;
#if __CUDA_ARCH__ >= 700
  if (kind == 0) {
    for (uint64_t i = 0; i < count; ++i)
      asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(p) : "l"(p) : "memory");
  } else if (kind == 1) {
    for (uint64_t i = 0; i < count; ++i)
      asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(p) : "l"(p) : "memory");
  } else {
    for (uint64_t i = 0; i < count; ++i) asm volatile("ld.global.u64 %0, [%1];" : "=l"(p) : "l"(p) : "memory");
  }
#else
  for (uint64_t i = 0; i < count; ++i) p = *reinterpret_cast<const volatile uint64_t*>(p);
#endif
  *end = p;
}

namespace {

struct Side {
  uint32_t* my_flag;
  uint32_t* peer_flag;
  const uint4* inbox;
  uint4* peer_inbox;
  uint32_t pieces;  // of 16 bytes, 0: the flag alone
};

__device__ void put(const Side& side, uint32_t round) {
  for (uint32_t i = threadIdx.x; i < side.pieces; i += 32) side.peer_inbox[i] = pattern(i, round);
  if (side.pieces != 0) __threadfence_system();
  __syncwarp();
  if (threadIdx.x == 0) store_relaxed(side.peer_flag, round);
}

// False when the flag did not come within `patience` clock cycles.
__device__ bool await(const Side& side, uint32_t round, int64_t patience) {
  const int64_t start = clock64();
  bool came = false;
  do {
    came = load_acquire(side.my_flag) >= round;
  } while (!came && clock64() - start < patience);
  return __all_sync(0xffffffffu, came);
}

__device__ uint32_t wrong_pieces(const Side& side, uint32_t round) {
  uint32_t wrong = 0;
  for (uint32_t i = threadIdx.x; i < side.pieces; i += 32) {
    const uint4 want = pattern(i, round);
    const volatile uint32_t* have = reinterpret_cast<const volatile uint32_t*>(side.inbox + i);
    wrong += want.x != have[0] || want.y != have[1] || want.z != have[2] || want.w != have[3];
  }
  return wrong;
}

}  // namespace

// One warp on each of two GPUs. The first puts `pieces` of data and a flag into the other's memory and waits for the
// same to come back. cycles[i]: the round trip in this GPU's clock (first == 1 only). timing: [0] ns and [1] cycles of
// the whole loop, for the length of a cycle. outcome: [0] rounds done, [1] pieces of data that were wrong. Only block
// `which` of the grid plays.
extern "C" __global__ void tt_pingpong(uint32_t* my_flag, uint32_t* peer_flag, const uint4* inbox, uint4* peer_inbox,
                                       uint32_t pieces, uint32_t rounds, uint32_t first, int64_t patience,
                                       uint32_t* cycles, uint64_t* timing, uint32_t* outcome, uint32_t which) {
  if (blockIdx.x != which) return;
  const Side side{my_flag, peer_flag, inbox, peer_inbox, pieces};
  uint32_t round = 1, wrong = 0;
  const uint64_t start_ns = nanoseconds();
  const int64_t start = clock64();
  for (; round <= rounds; ++round) {
    const int64_t t0 = clock64();
    if (first != 0) put(side, round);
    if (!await(side, round, patience)) break;
    if (first == 0) {
      wrong += wrong_pieces(side, round);
      put(side, round);
      continue;
    }
    const int64_t t1 = clock64();
    if (threadIdx.x == 0) cycles[round - 1] = static_cast<uint32_t>(t1 - t0);
    wrong += wrong_pieces(side, round);
  }
  const int64_t end = clock64();
  const uint64_t end_ns = nanoseconds();
  for (int lane = 16; lane > 0; lane /= 2) wrong += __shfl_down_sync(0xffffffffu, wrong, lane);
  if (threadIdx.x != 0) return;
  timing[0] = end_ns - start_ns;
  timing[1] = static_cast<uint64_t>(end - start);
  outcome[0] = round - 1;
  outcome[1] = wrong;
}

namespace {

template <class T>
__device__ void fill_values(T* data, const topotune::coll::Slice& s) {
  for (uint64_t i = first_index(); i < s.count; i += all_threads())
    data[i] = static_cast<T>(topotune::coll::sent_bits(s, s.first + i));
}

template <class T>
__device__ void check_values(const T* data, const topotune::coll::Slice& s, unsigned long long* result) {
  for (uint64_t i = first_index(); i < s.count; i += all_threads()) {
    if (topotune::coll::arrived_right(s, s.first + i, data[i])) continue;
    atomicAdd(result, 1ull);
    atomicMin(result + 1, static_cast<unsigned long long>(i));
  }
}

}  // namespace

// What a rank hands over to a collective, and the comparison of what arrived. result: [0] wrong elements, [1] the
// first one's index in the slice.
extern "C" __global__ void __launch_bounds__(512) tt_coll_fill(void* data, topotune::coll::Slice s) {
  switch (topotune::coll::element_bytes(s.type)) {
    case 1: return fill_values(static_cast<uint8_t*>(data), s);
    case 2: return fill_values(static_cast<uint16_t*>(data), s);
    case 4: return fill_values(static_cast<uint32_t*>(data), s);
    default: return fill_values(static_cast<uint64_t*>(data), s);
  }
}

extern "C" __global__ void __launch_bounds__(512)
    tt_coll_check(const void* data, topotune::coll::Slice s, unsigned long long* result) {
  switch (topotune::coll::element_bytes(s.type)) {
    case 1: return check_values(static_cast<const uint8_t*>(data), s, result);
    case 2: return check_values(static_cast<const uint16_t*>(data), s, result);
    case 4: return check_values(static_cast<const uint32_t*>(data), s, result);
    default: return check_values(static_cast<const uint64_t*>(data), s, result);
  }
}
