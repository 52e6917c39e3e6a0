// NCCL without GPUs, on the driver of tests/cuda/fake: each rank leaves what it sends in a file of a folder
// that the unique id names, and reads what it needs, so that ranks may be threads of one call or processes.
// FAKE_NCCL_FAULT: "wrong" (one element of each result), "error" (collectives fail), "remote" (an error of
// another rank is found later), "old" (2.18: no fp8), "die" and "hang" (while communicators are made).
// FAKE_NCCL_PATIENCE: seconds to wait for other ranks (20). FAKE_NCCL_SLOW_RANK=R: rank R comes 300 us late.
// FAKE_NCCL_NODES: what plugins are told (1).
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "coll/values.h"
#include "plugins.h"

extern "C" void fake_cuda_enqueue(void* stream, void (*work)(void*), void* context, void (*release)(void*));

namespace {

namespace fs = std::filesystem;
namespace coll = topotune::coll;
using Rc = int;
using Bytes = std::vector<char>;

std::string fault() {
  const char* text = std::getenv("FAKE_NCCL_FAULT");
  return text == nullptr ? "" : text;
}

struct UniqueId {
  char internal[128];
};

struct Comm {
  fs::path folder;
  int rank = 0, ranks = 0;
  unsigned long operations = 0;
  std::vector<unsigned long> sent, received;  // by peer
  fake::Plugins plugins;
};

std::string last_error;

void put(const fs::path& file, const void* data, std::size_t bytes) {
  const auto draft = file.string() + ".draft";
  std::ofstream(draft, std::ios::binary)
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  fs::rename(draft, file);
}

// False when nothing came in time.
bool take(const fs::path& file, Bytes& out) {
  static bool gave_up = false;
  const char* patience = std::getenv("FAKE_NCCL_PATIENCE");
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(patience == nullptr ? 20 : std::atoi(patience));
  while (!fs::exists(file)) {
    if (gave_up || std::chrono::steady_clock::now() > end)
      return gave_up = true, last_error = "no data from " + file.string(), false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  std::ifstream in(file, std::ios::binary);
  out.assign(std::istreambuf_iterator<char>(in), {});
  return true;
}

// Two halves of a call: all local ranks send before any of them waits.
struct Work {
  std::function<void()> send, receive;
  void* stream;
};
std::vector<Work> pending;
int depth = 0;

void run_all(void* context) {
  const auto& works = *static_cast<std::vector<Work>*>(context);
  for (const auto& work : works) work.send();
  for (const auto& work : works) work.receive();
}

void release_all(void* context) { delete static_cast<std::vector<Work>*>(context); }

Rc flush() {
  if (pending.empty()) return 0;
  void* const stream = pending.back().stream;
  fake_cuda_enqueue(stream, run_all, new std::vector<Work>(std::move(pending)), release_all);
  pending.clear();
  return 0;
}

Rc add(Work work) {
  if (fault() == "error") return last_error = "fake NCCL fails as it was told", 2;
  // The streams of the fake driver begin with their time.
  double* const time = static_cast<double*>(work.stream);
  *time += 10e-6;
  pending.push_back(std::move(work));
  return depth == 0 ? flush() : 0;
}

template <class T>
T reduce_native(int op, T a, T b) {
  switch (op) {
    case 1:
      return static_cast<T>(a * b);
    case 2:
      return a > b ? a : b;
    case 3:
      return a < b ? a : b;
    default:
      return static_cast<T>(a + b);
  }
}

template <class T>
void reduce_all(char* out, const std::vector<Bytes>& all, std::size_t first, std::size_t count, int op) {
  for (std::size_t i = 0; i < count; ++i) {
    T sum;
    std::memcpy(&sum, all[0].data() + (first + i) * sizeof(T), sizeof(T));
    for (std::size_t r = 1; r < all.size(); ++r) {
      T next;
      std::memcpy(&next, all[r].data() + (first + i) * sizeof(T), sizeof(T));
      sum = reduce_native(op, sum, next);
    }
    if (op == 4) sum = static_cast<T>(sum / static_cast<T>(all.size()));
    std::memcpy(out + i * sizeof(T), &sum, sizeof(T));
  }
}

// Small floating point types, whose values are small whole numbers here.
void reduce_small(char* out, const std::vector<Bytes>& all, std::size_t first, std::size_t count, int type,
                  int op) {
  const auto size = coll::element_bytes(static_cast<std::uint32_t>(type));
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::size_t r = 0; r < all.size(); ++r) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, all[r].data() + (first + i) * size, size);
      const double next = coll::decode(static_cast<std::uint32_t>(type), bits);
      sum = r == 0 ? next : reduce_native(op, sum, next);
    }
    if (op == 4) sum /= static_cast<double>(all.size());
    const auto bits = coll::encode(static_cast<std::uint32_t>(type), static_cast<std::uint64_t>(sum));
    std::memcpy(out + i * size, &bits, size);
  }
}

void reduce(char* out, const std::vector<Bytes>& all, std::size_t first, std::size_t count, int type,
            int op) {
  switch (type) {
    case 0:
      return reduce_all<std::int8_t>(out, all, first, count, op);
    case 1:
      return reduce_all<std::uint8_t>(out, all, first, count, op);
    case 2:
      return reduce_all<std::int32_t>(out, all, first, count, op);
    case 3:
      return reduce_all<std::uint32_t>(out, all, first, count, op);
    case 4:
      return reduce_all<std::int64_t>(out, all, first, count, op);
    case 5:
      return reduce_all<std::uint64_t>(out, all, first, count, op);
    case 7:
      return reduce_all<float>(out, all, first, count, op);
    case 8:
      return reduce_all<double>(out, all, first, count, op);
    default:
      return reduce_small(out, all, first, count, type, op);
  }
}

fs::path file_of(const Comm& comm, unsigned long operation, int rank) {
  return comm.folder / (std::to_string(operation) + "." + std::to_string(rank));
}

// NCCL's own line of a choice: LL up to 16 KiB, then Simple; rank 0 only.
void log_choice(const Comm& comm, const char* name, std::size_t bytes) {
  const char* file = std::getenv("NCCL_DEBUG_FILE");
  if (file == nullptr || comm.rank != 0) return;
  std::ofstream(file, std::ios::app) << "vm:1:1 [0] NCCL INFO " << name << ": " << bytes
                                     << " Bytes -> Algo RING proto " << (bytes <= 16384 ? "LL" : "SIMPLE")
                                     << " channel{Lo..Hi}={0..1}\n";
}

// One collective: `finish` gets what all ranks sent.
Rc collective(Comm* comm, int function, const void* send, std::size_t bytes, void* recv, void* stream,
              std::function<void(char* out, const std::vector<Bytes>& all)> finish,
              const char* name = nullptr) {
  if (name != nullptr) log_choice(*comm, name, bytes);
  const auto whole = function == 2 ? bytes * static_cast<std::size_t>(comm->ranks) : bytes;
  const bool paced = comm->plugins.tuner != nullptr || comm->plugins.profiler != nullptr;
  const double pace = paced ? fake::decide(comm->plugins, function, whole) : 0;
  const auto operation = std::make_shared<unsigned long>(0);
  const auto give = [=] {
    *operation = comm->operations++;
    const char* slow = std::getenv("FAKE_NCCL_SLOW_RANK");
    if (slow != nullptr && std::atoi(slow) == comm->rank)
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    put(file_of(*comm, *operation, comm->rank), send, bytes);
    if (comm->rank == 0) fake::spin(pace);
    if (*operation >= 2) fs::remove(file_of(*comm, *operation - 2, comm->rank));
  };
  const auto take_all = [=] {
    std::vector<Bytes> all(static_cast<std::size_t>(comm->ranks));
    for (int r = 0; r < comm->ranks; ++r)
      if (!take(file_of(*comm, *operation, r), all[static_cast<std::size_t>(r)])) return;
    auto* const out = static_cast<char*>(recv);
    finish(out, all);
    if (fault() == "wrong" && comm->rank == comm->ranks - 1) out[0] = static_cast<char>(out[0] ^ 1);
  };
  return add({give, take_all, stream});
}

std::size_t bytes_of(std::size_t count, int type) {
  return count * coll::element_bytes(static_cast<std::uint32_t>(type));
}

}  // namespace

extern "C" {
Rc ncclGetVersion(int* version) { return *version = fault() == "old" ? 21805 : 22809, 0; }
const char* ncclGetErrorString(Rc rc) {
  return rc == 2 ? "unhandled system error" : rc == 6 ? "remote process exited" : "fake error";
}
const char* ncclGetLastError(Comm*) { return last_error.c_str(); }
Rc ncclGetUniqueId(UniqueId* id) {
  std::string folder = (fs::temp_directory_path() / "fake_nccl.XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 2;
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->internal, folder.c_str(), folder.size());
  return 0;
}
Rc make_comm(Comm** comm, int ranks, const UniqueId& id, int rank, int channels) {
  if (fault() == "die") std::abort();
  while (fault() == "hang") std::this_thread::sleep_for(std::chrono::milliseconds(100));
  auto made = std::make_unique<Comm>();
  made->folder = id.internal;
  made->rank = rank, made->ranks = ranks;
  made->sent.resize(static_cast<std::size_t>(ranks));
  made->received.resize(static_cast<std::size_t>(ranks));
  fake::start(made->plugins, std::hash<std::string>{}(id.internal), rank, ranks, channels);
  *comm = made.release();
  return 0;
}
Rc ncclCommInitRank(Comm** comm, int ranks, UniqueId id, int rank) {
  return make_comm(comm, ranks, id, rank, 24);
}
// A configuration as of 2.14: minCTAs is the fifth number behind the size.
Rc ncclCommInitRankConfig(Comm** comm, int ranks, UniqueId id, int rank, void* config) {
  int least = 0;
  std::memcpy(&least, static_cast<char*>(config) + 24, sizeof least);
  return make_comm(comm, ranks, id, rank, least > 0 ? least : 24);
}
// The last rank to go takes the folder with it.
Rc ncclCommDestroy(Comm* comm) {
  while (fault() == "hang-at-end") std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::error_code ignored;
  put(comm->folder / ("end." + std::to_string(comm->rank)), "", 0);
  bool all = true;
  for (int r = 0; r < comm->ranks; ++r)
    all = all && fs::exists(comm->folder / ("end." + std::to_string(r)), ignored);
  if (all) fs::remove_all(comm->folder, ignored);
  fake::finish(comm->plugins);
  delete comm;
  return 0;
}
Rc ncclCommAbort(Comm* comm) { return ncclCommDestroy(comm); }
Rc ncclCommGetAsyncError(Comm*, Rc* state) { return *state = fault() == "remote" ? 6 : 0, 0; }
Rc ncclGroupStart() { return ++depth, 0; }
Rc ncclGroupEnd() { return --depth > 0 ? 0 : flush(); }

Rc ncclAllReduce(const void* send, void* recv, std::size_t count, int type, int op, Comm* comm,
                 void* stream) {
  return collective(
      comm, 4, send, bytes_of(count, type), recv, stream,
      [=](char* out, const auto& all) { reduce(out, all, 0, count, type, op); }, "AllReduce");
}
Rc ncclReduce(const void* send, void* recv, std::size_t count, int type, int op, int root, Comm* comm,
              void* stream) {
  return collective(comm, 1, send, bytes_of(count, type), recv, stream, [=](char* out, const auto& all) {
    if (comm->rank == root) reduce(out, all, 0, count, type, op);
  });
}
Rc ncclBroadcast(const void* send, void* recv, std::size_t count, int type, int root, Comm* comm,
                 void* stream) {
  return collective(comm, 0, send, bytes_of(count, type), recv, stream, [=](char* out, const auto& all) {
    const auto& data = all[static_cast<std::size_t>(root)];
    std::memcpy(out, data.data(), data.size());
  });
}
Rc ncclAllGather(const void* send, void* recv, std::size_t count, int type, Comm* comm, void* stream) {
  return collective(comm, 2, send, bytes_of(count, type), recv, stream, [](char* out, const auto& all) {
    for (std::size_t r = 0; r < all.size(); ++r)
      std::memcpy(out + r * all[r].size(), all[r].data(), all[r].size());
  });
}
Rc ncclReduceScatter(const void* send, void* recv, std::size_t count, int type, int op, Comm* comm,
                     void* stream) {
  const auto n = static_cast<std::size_t>(comm->ranks), rank = static_cast<std::size_t>(comm->rank);
  return collective(comm, 3, send, bytes_of(count * n, type), recv, stream,
                    [=](char* out, const auto& all) { reduce(out, all, rank * count, count, type, op); });
}
Rc ncclSend(const void* send, std::size_t count, int type, int peer, Comm* comm, void* stream) {
  const auto give = [=] {
    const auto number = comm->sent[static_cast<std::size_t>(peer)]++;
    put(comm->folder /
            ("p" + std::to_string(comm->rank) + "." + std::to_string(peer) + "." + std::to_string(number)),
        send, bytes_of(count, type));
  };
  return add({give, [] {}, stream});
}
Rc ncclRecv(void* recv, std::size_t count, int type, int peer, Comm* comm, void* stream) {
  const auto get = [=] {
    const auto number = comm->received[static_cast<std::size_t>(peer)]++;
    const auto file = comm->folder / ("p" + std::to_string(peer) + "." + std::to_string(comm->rank) + "." +
                                      std::to_string(number));
    Bytes data;
    if (!take(file, data)) return;
    std::memcpy(recv, data.data(), std::min(data.size(), bytes_of(count, type)));
    fs::remove(file);
  };
  return add({[] {}, get, stream});
}
}
