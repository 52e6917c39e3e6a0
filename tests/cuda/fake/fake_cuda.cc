// A CUDA driver without a GPU: memory is the host's, streams run at once, and time is counted, not taken. It
// lets the suites run where there is no GPU, healthy or with one fault. FAKE_CUDA_GPUS: how many;
// FAKE_CUDA_FAULT: "corrupt" (one byte of each copy between GPUs arrives wrong), "no-peer", "exclusive",
// "no-dmabuf", "oom" (64 MiB a GPU), "hang" (a stream never ends), "no-kernels", "lost" (copies fail).
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coll/check.h"
#include "cuda/pattern.h"

namespace {

using Rc = int;
using Ptr = unsigned long long;

// A stream holds 1024 entries; what waits behind a closed gate stays in it, and the driver waits for room.
using Graph = std::vector<std::function<void()>>;
struct Stream {
  double time = 0;
  Graph* capture = nullptr;
  const std::uint32_t* gate = nullptr;
  std::uint32_t opens_at = 0;
  int entries = 0;
  bool closed() const { return gate != nullptr && __atomic_load_n(gate, __ATOMIC_ACQUIRE) < opens_at; }
  void add(int count) {
    if (!closed()) entries = 0;
    for (entries += count; entries > 1024 && closed();) ::usleep(200);
  }
};
struct Event {
  double time = 0;
};
struct Context {
  int device;
};

std::string fault() {
  const char* text = std::getenv("FAKE_CUDA_FAULT");
  return text == nullptr ? "" : text;
}
int gpus() {
  const char* text = std::getenv("FAKE_CUDA_GPUS");
  return text == nullptr ? 2 : std::atoi(text);
}

Context contexts[16];
thread_local int current = 0;
std::map<Ptr, std::pair<std::size_t, int>> blocks;  // address -> size, device
std::size_t used[16] = {};

int device_of(Ptr p) {
  const auto next = blocks.upper_bound(p);
  if (next == blocks.begin()) return -1;
  const auto& [start, block] = *std::prev(next);
  return p < start + block.first ? block.second : -1;
}

void* host(Ptr p) { return reinterpret_cast<void*>(p); }

double rate(Ptr a, Ptr b) {
  const int x = device_of(a), y = device_of(b);
  if (x < 0 || y < 0) return 55e9;
  return x == y ? 2000e9 : 395e9;
}

Rc copy(Ptr dst, Ptr src, std::size_t bytes, Stream* stream, double efficiency = 1) {
  if (fault() == "lost") return 719;
  std::memmove(host(dst), host(src), bytes);
  const int x = device_of(dst), y = device_of(src);
  if (fault() == "corrupt" && x >= 0 && y >= 0 && x != y) static_cast<char*>(host(dst))[bytes / 2] ^= 1;
  if (stream != nullptr) stream->time += 2e-6 + static_cast<double>(bytes) / (rate(dst, src) * efficiency);
  return 0;
}

template <class T>
T argument(void** parameters, int i) {
  T value;
  std::memcpy(&value, parameters[i], sizeof value);
  return value;
}

Rc run_check(void** p) {
  const auto data = argument<Ptr>(p, 0);
  const auto count = argument<std::uint64_t>(p, 1);
  const auto seed = argument<std::uint32_t>(p, 2);
  auto* const result = static_cast<unsigned long long*>(host(argument<Ptr>(p, 3)));
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto want = topotune::cuda::pattern_piece(i, seed);
    if (std::memcmp(static_cast<char*>(host(data)) + i * 16, &want, 16) == 0) continue;
    ++result[0];
    if (i < result[1]) result[1] = i;
  }
  return 0;
}

Rc run_pingpong(void** p) {
  const auto rounds = argument<std::uint32_t>(p, 5);
  const auto first = argument<std::uint32_t>(p, 6);
  auto* const cycles = static_cast<std::uint32_t*>(host(argument<Ptr>(p, 8)));
  auto* const timing = static_cast<std::uint64_t*>(host(argument<Ptr>(p, 9)));
  auto* const outcome = static_cast<std::uint32_t*>(host(argument<Ptr>(p, 10)));
  for (std::uint32_t i = 0; first != 0 && i < rounds; ++i) cycles[i] = 2700 + i % 7;
  timing[0] = 1350ull * rounds;
  timing[1] = 2700ull * rounds;
  outcome[0] = rounds;
  outcome[1] = 0;
  return 0;
}

Rc run_coll(const std::string& name, void** p) {
  auto* const data = static_cast<std::byte*>(host(argument<Ptr>(p, 0)));
  const auto slice = argument<topotune::coll::Slice>(p, 1);
  if (name == "tt_coll_fill") return topotune::coll::fill_on_host(data, slice), 0;
  const auto found = topotune::coll::check_on_host(data, slice);
  auto* const result = static_cast<unsigned long long*>(host(argument<Ptr>(p, 2)));
  result[0] += found.wrong;
  if (found.wrong != 0 && found.first < result[1]) result[1] = found.first;
  return 0;
}

struct Function {
  std::string name;
};
std::map<std::string, Function> functions;

}  // namespace

extern "C" {
Rc cuInit(unsigned) { return gpus() == 0 ? 100 : 0; }
Rc cuDriverGetVersion(int* v) { return *v = 13000, 0; }
Rc cuGetErrorName(Rc rc, const char** text) {
  *text = rc == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : rc == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_FAKE";
  return 0;
}
Rc cuGetErrorString(Rc rc, const char** text) {
  *text = rc == 2 ? "out of memory" : "fake error";
  return 0;
}
Rc cuDeviceGetCount(int* n) { return *n = gpus(), 0; }
Rc cuDeviceGet(int* device, int i) { return *device = i, 0; }
Rc cuDeviceGetName(char* text, int size, int) {
  return std::strncpy(text, "Fake GPU", static_cast<std::size_t>(size)), 0;
}
Rc cuDeviceGetPCIBusId(char* text, int size, int device) {
  std::strncpy(text, ("0000:0" + std::to_string(device + 1) + ":00.0").c_str(),
               static_cast<std::size_t>(size));
  return 0;
}
Rc cuDeviceGetAttribute(int* value, int which, int) {
  const std::map<int, int> values{
      {16, 132}, {20, fault() == "exclusive" ? 3 : 0}, {40, 3}, {75, 9}, {76, 0}, {97, 232448}, {116, 1}};
  const auto found = values.find(which);
  return *value = found == values.end() ? 0 : found->second, 0;
}
Rc cuDeviceCanAccessPeer(int* can, int, int) { return *can = fault() == "no-peer" ? 0 : 1, 0; }
Rc cuDevicePrimaryCtxRetain(Context** context, int device) {
  if (fault() == "exclusive" && device == 0) return 46;
  contexts[device].device = device;
  return *context = &contexts[device], 0;
}
Rc cuDevicePrimaryCtxRelease_v2(int) { return 0; }
Rc cuCtxSetCurrent(Context* context) { return current = context->device, 0; }
Rc cuCtxEnablePeerAccess(Context*, unsigned) { return 0; }
Rc cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return *total = fault() == "oom" ? std::size_t{64} << 20 : std::size_t{128} << 30,
         *free = *total - used[current], 0;
}
Rc cuMemAlloc_v2(Ptr* p, std::size_t bytes) {
  if (fault() == "oom" && used[current] + bytes > (64u << 20)) return 2;
  void* const block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  *p = reinterpret_cast<Ptr>(block);
  blocks[*p] = {bytes, current};
  used[current] += bytes;
  return 0;
}
Rc cuMemFree_v2(Ptr p) {
  used[blocks[p].second] -= blocks[p].first;
  blocks.erase(p);
  std::free(host(p));
  return 0;
}
Rc cuMemGetHandleForAddressRange(void* fd, Ptr, std::size_t, int, unsigned long long) {
  if (fault() == "no-dmabuf") return 801;
  return *static_cast<int*>(fd) = ::dup(0), 0;
}
Rc cuMemHostAlloc(void** p, std::size_t bytes, unsigned) { return *p = std::calloc(1, bytes), 0; }
Rc cuMemFreeHost(void* p) { return std::free(p), 0; }
Rc cuMemHostRegister_v2(void*, std::size_t, unsigned) { return 0; }
Rc cuMemHostUnregister(void*) { return 0; }
Rc cuMemHostGetDevicePointer_v2(Ptr* out, void* p, unsigned) { return *out = reinterpret_cast<Ptr>(p), 0; }
Rc cuMemcpyAsync(Ptr dst, Ptr src, std::size_t bytes, Stream* stream) {
  if (bytes <= 65536)
    stream->add(device_of(src) == current ? 2 : 16);  // a small copy from another GPU takes many
  return copy(dst, src, bytes, stream);
}
Rc cuMemcpyHtoD_v2(Ptr dst, const void* src, std::size_t bytes) {
  return std::memcpy(host(dst), src, bytes), 0;
}
Rc cuMemcpyDtoH_v2(void* dst, Ptr src, std::size_t bytes) { return std::memcpy(dst, host(src), bytes), 0; }
Rc cuMemcpyHtoDAsync_v2(Ptr dst, const void* src, std::size_t bytes, Stream* s) {
  return copy(dst, reinterpret_cast<Ptr>(src), bytes, s);
}
Rc cuMemcpyDtoHAsync_v2(void* dst, Ptr src, std::size_t bytes, Stream* s) {
  return copy(reinterpret_cast<Ptr>(dst), src, bytes, s);
}
Rc cuMemcpyPeerAsync(Ptr dst, Context*, Ptr src, Context*, std::size_t bytes, Stream* s) {
  return copy(dst, src, bytes, s);
}
Rc cuMemsetD32Async(Ptr p, unsigned value, std::size_t count, Stream*) {
  for (std::size_t i = 0; i < count; ++i) std::memcpy(static_cast<char*>(host(p)) + i * 4, &value, 4);
  return 0;
}
Rc cuStreamCreate(Stream** s, unsigned) { return *s = new Stream, 0; }
Rc cuStreamDestroy_v2(Stream* s) { return delete s, 0; }
Rc cuStreamSynchronize(Stream* s) {
  while (fault() == "hang" && s->time > 0) ::pause();
  return 0;
}
Rc cuStreamWaitEvent(Stream* s, Event* e, unsigned) { return s->time = std::max(s->time, e->time), 0; }
Rc cuStreamQuery(Stream*) { return fault() == "hang" ? 600 : 0; }
// For other libraries' work: done at once, or when the graph that is being captured is launched.
void fake_cuda_enqueue(Stream* s, void (*work)(void*), void* context, void (*release)(void*)) {
  const auto run = [work, kept = std::shared_ptr<void>(context, release)] { work(kept.get()); };
  if (s->capture != nullptr)
    s->capture->push_back(run);
  else
    run();
}
Rc cuStreamBeginCapture_v2(Stream* s, int) { return s->capture = new Graph, 0; }
Rc cuStreamEndCapture(Stream* s, Graph** graph) { return *graph = s->capture, s->capture = nullptr, 0; }
Rc cuGraphInstantiateWithFlags(Graph** exec, Graph* graph, unsigned long long) {
  return *exec = new Graph(*graph), 0;
}
int fake_cuda_graph_launches = 0;
Rc cuGraphLaunch(Graph* exec, Stream*) {
  ++fake_cuda_graph_launches;
  for (const auto& work : *exec) work();
  return 0;
}
Rc cuGraphExecDestroy(Graph* exec) { return delete exec, 0; }
Rc cuGraphDestroy(Graph* graph) { return delete graph, 0; }
Rc cuStreamWaitValue32_v2(Stream* s, Ptr p, std::uint32_t value, unsigned) {
  return s->gate = static_cast<const std::uint32_t*>(host(p)), s->opens_at = value, s->entries = 0, 0;
}
Rc cuEventCreate(Event** e, unsigned) { return *e = new Event, 0; }
Rc cuEventDestroy_v2(Event* e) { return delete e, 0; }
Rc cuEventRecord(Event* e, Stream* s) { return e->time = s->time, 0; }
Rc cuEventElapsedTime(float* ms, Event* a, Event* b) {
  return *ms = static_cast<float>((b->time - a->time) * 1e3), 0;
}
Rc cuModuleLoadData(void** m, const void*) { return *m = &functions, fault() == "no-kernels" ? 209 : 0; }
Rc cuModuleUnload(void*) { return 0; }
Rc cuModuleGetFunction(Function** f, void*, const char* name) {
  functions[name].name = name;
  return *f = &functions[name], 0;
}
Rc cuFuncSetAttribute(Function*, int, int) { return 0; }
Rc cuLaunchKernel(Function* f, unsigned blocks_x, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  Stream* stream, void** p, void**) {
  if (f->name == "tt_fill") {
    topotune::cuda::fill_pattern_on_host(static_cast<std::byte*>(host(argument<Ptr>(p, 0))),
                                         argument<std::uint64_t>(p, 1) * 16, argument<std::uint32_t>(p, 2));
    return 0;
  }
  if (f->name == "tt_check") return run_check(p);
  if (f->name.starts_with("tt_coll_")) return run_coll(f->name, p);
  if (f->name == "tt_pingpong") return run_pingpong(p);
  if (f->name == "tt_chase") {
    auto at = argument<std::uint64_t>(p, 0);
    const auto count = argument<std::uint64_t>(p, 1);
    for (std::uint64_t i = 0; i < count; ++i) std::memcpy(&at, host(at), 8);
    std::memcpy(host(argument<Ptr>(p, 2)), &at, 8);
    stream->time += 700e-9 * static_cast<double>(count);
    return 0;
  }
  const double share = blocks_x >= 16 ? 0.95 : 0.95 * blocks_x / 16;
  const bool plain = f->name == "tt_copy16";
  const std::uint64_t bytes = plain ? argument<std::uint64_t>(p, 2) * 16 : argument<std::uint64_t>(p, 2);
  const auto repeats = argument<std::uint32_t>(p, plain ? 3 : 5);
  for (std::uint32_t i = 0; i < repeats; ++i) {
    if (const Rc rc = copy(argument<Ptr>(p, 0), argument<Ptr>(p, 1), bytes, stream, share); rc != 0)
      return rc;
  }
  return 0;
}
}
