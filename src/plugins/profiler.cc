#include "plugins/profiler.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "plugins/profiler_api.h"

namespace topotune::plugins {

namespace {

std::uint64_t now_ns(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

#if defined(__x86_64__)
// CLOCK_MONOTONIC by the processor's time stamp counter, where that runs evenly: a third of the price. Its
// rate is measured for 3 ms by the first communicator of the process (1 part in 10^5).
class Ticks {
 public:
  Ticks() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(0x80000007, &a, &b, &c, &d) == 0 || (d & 1u << 8) == 0) return;
    const std::uint64_t t0 = __rdtsc(), n0 = now_ns(CLOCK_MONOTONIC);
    std::uint64_t t1 = 0, n1 = 0;
    do {
      t1 = __rdtsc(), n1 = now_ns(CLOCK_MONOTONIC);
    } while (n1 - n0 < 3'000'000);
    if (t1 <= t0) return;
    per_tick_ = static_cast<double>(n1 - n0) / static_cast<double>(t1 - t0);
    ticks_ = t1, ns_ = n1;
  }
  std::uint64_t now() const {
    if (per_tick_ == 0) return now_ns(CLOCK_MONOTONIC);
    return ns_ + static_cast<std::uint64_t>(static_cast<double>(__rdtsc() - ticks_) * per_tick_);
  }

 private:
  double per_tick_ = 0;
  std::uint64_t ticks_ = 0, ns_ = 0;
};
#else
struct Ticks {
  std::uint64_t now() const { return now_ns(CLOCK_MONOTONIC); }
};
#endif

const Ticks& ticks() {
  static const Ticks once;
  return once;
}

long number_in(const char* name, long fallback, long least, long most) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  return *end != '\0' || value < least || value > most ? fallback : value;
}

std::string prefix() { return "topotune-profile-" + std::to_string(::geteuid()) + "-"; }

void copy_name(char (&into)[64], const char* from) {
  if (from == nullptr) return;
  std::size_t i = 0;
  for (; i + 1 < sizeof into && from[i] != '\0'; ++i)
    into[i] = from[i] > 0x20 && from[i] < 0x7f ? from[i] : '_';
  into[i] = '\0';
}

void lower(std::atomic<std::uint64_t>& value, std::uint64_t to) {
  auto old = value.load(std::memory_order_relaxed);
  while ((old == 0 || to < old) && !value.compare_exchange_weak(old, to, std::memory_order_relaxed)) {
  }
}

void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) {
  auto old = value.load(std::memory_order_relaxed);
  while (to > old && !value.compare_exchange_weak(old, to, std::memory_order_relaxed)) {
  }
}

// A file of this size, mapped; null with the reason otherwise. Its memory is taken now: a full /dev/shm must
// not kill the job later.
void* mapped_file(const std::string& path, std::size_t bytes, std::string& wrong) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return wrong = path + ": " + std::strerror(errno), nullptr;
  int code = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  void* memory = MAP_FAILED;
  if (code == 0) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) code = errno;
  }
  ::close(fd);
  if (memory != MAP_FAILED) return memory;
  ::unlink(path.c_str());
  return wrong = path + ": " + std::strerror(code), nullptr;
}

std::atomic<unsigned> files{0};

}  // namespace

ProfilerSettings ProfilerSettings::from_environment() {
  ProfilerSettings out;
  if (const char* folder = std::getenv("TOPOTUNE_PROFILER_DIR"); folder != nullptr && *folder != '\0')
    out.folder = folder;
  out.records = std::bit_ceil(
      static_cast<std::uint32_t>(number_in("TOPOTUNE_PROFILER_RECORDS", 4096, 16, kMostRecords)));
  out.sample = static_cast<std::uint32_t>(number_in("TOPOTUNE_PROFILER_SAMPLE", 512, 0, 1 << 20));
  out.mask = static_cast<int>(number_in("TOPOTUNE_PROFILER_MASK", 0, 0, 32767));
  return out;
}

std::string Profile::open(const ProfilerSettings& settings, const CommFacts& facts, int* mask) {
  const auto ranks = static_cast<std::uint32_t>(std::clamp<int>(facts.ranks, 0, kMostRanks));
  const auto header_bytes = profile_header_bytes(ranks);
  const auto bytes = header_bytes + std::size_t{settings.records} * sizeof(ProfileRecord);
  const std::string path = settings.folder + "/" + prefix() + std::to_string(::getpid()) + "-" +
                           std::to_string(files.fetch_add(1)) + "-" +
                           std::to_string(now_ns(CLOCK_REALTIME) / 1000) + ".ttprof";
  std::string wrong;
  void* memory = mapped_file(path, bytes, wrong);
  if (memory == nullptr) return wrong;
  auto* header = static_cast<ProfileHeader*>(memory);
  header->version = kProfileVersion;
  header->header_bytes = static_cast<std::uint32_t>(header_bytes);
  header->record_bytes = sizeof(ProfileRecord), header->records = settings.records;
  header->ranks = ranks, header->nodes = static_cast<std::uint32_t>(std::max(facts.nodes, 0));
  header->rank = static_cast<std::uint32_t>(facts.rank), header->abi = static_cast<std::uint32_t>(facts.abi);
  header->comm_id = facts.comm, header->pid = static_cast<std::uint64_t>(::getpid());
  header->began_ns = ticks().now(), header->began_unix_ns = now_ns(CLOCK_REALTIME);
  char host[64] = {};
  ::gethostname(host, sizeof host - 1);
  copy_name(header->host, host);
  copy_name(header->comm_name, facts.name);
  // Network steps cost something, and there are none within a node.
  const auto base = settings.mask != 0
                        ? settings.mask
                        : static_cast<int>(kColl | kP2p | (facts.nodes > 1 ? kProxyOp | kProxyStep : 0));
  header->base_mask = static_cast<std::uint32_t>(base), header->sample = settings.sample;
  header->mask = static_cast<std::uint32_t>(base);
  sent_ = reinterpret_cast<std::atomic<std::uint64_t>*>(header + 1);
  ring_ = reinterpret_cast<ProfileRecord*>(static_cast<char*>(memory) + header_bytes);
  mask_ = mask;
  header_ = header;
  if (mask != nullptr) __atomic_store_n(mask, base, __ATOMIC_RELAXED);
  __atomic_store_n(&header->magic, kProfileMagic, __ATOMIC_RELEASE);  // from here on it can be read
  return "";
}

// The memory stays: events of proxy threads may still come in.
void Profile::close() {
  if (header_ != nullptr) header_->closed.store(1, std::memory_order_relaxed);
}

void Profile::name(std::uint64_t comm, int rank) {
  __atomic_store_n(&header_->comm_id, comm, __ATOMIC_RELAXED);
  __atomic_store_n(&header_->rank, static_cast<std::uint32_t>(rank), __ATOMIC_RELAXED);
}

ProfileRecord* Profile::record(std::uint64_t number) const {
  return &ring_[(number - 1) & (header_->records - 1)];
}

void Profile::count(const Event& event) {
  if (event.function >= kProfileFunctionCount) return;
  const auto size =
      event.bytes == 0 ? 0 : std::min<std::size_t>(std::bit_width(event.bytes) - 1, kProfileSizes - 1);
  auto& total = header_->totals[event.function][size];
  total.calls.fetch_add(1, std::memory_order_relaxed);
  total.bytes.fetch_add(event.bytes, std::memory_order_relaxed);
}

// Kernels of each n-th event are timed: NCCL looks at the mask at its next group.
void Profile::window(std::uint64_t number) const {
  if (header_->sample == 0 || mask_ == nullptr) return;
  const auto place = number % header_->sample;
  if (place > 1 || header_->paused.load(std::memory_order_relaxed) != 0) return;
  const int base = static_cast<int>(header_->base_mask);
  __atomic_store_n(mask_, place == 0 ? base | static_cast<int>(kKernelCh) : base, __ATOMIC_RELAXED);
}

std::uint64_t Profile::begin(const Event& event) {
  const auto number = header_->next.fetch_add(1, std::memory_order_relaxed) + 1;
  auto& r = *record(number);
  // Each store is one of release: none of them is seen before the 0.
  r.sequence.store(0, std::memory_order_relaxed);
  __atomic_store_n(&r.start_ns, ticks().now(), __ATOMIC_RELEASE);
  __atomic_store_n(&r.stop_ns, 0, __ATOMIC_RELEASE);
  r.gpu_start_ns.store(0, std::memory_order_release);
  r.gpu_stop_ns.store(0, std::memory_order_release);
  r.kernels.store(0, std::memory_order_release);
  __atomic_store_n(&r.bytes, event.bytes, __ATOMIC_RELEASE);
  __atomic_store_n(&r.number, event.number, __ATOMIC_RELEASE);
  const std::uint8_t small[8] = {static_cast<std::uint8_t>(event.kind),
                                 event.function,
                                 event.algorithm,
                                 event.protocol,
                                 event.datatype,
                                 event.channels,
                                 event.warps,
                                 0};
  std::uint64_t word = 0;
  std::memcpy(&word, small, sizeof word);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(&r.kind), word, __ATOMIC_RELEASE);
  __atomic_store_n(&r.peer, event.peer, __ATOMIC_RELEASE);
  r.sequence.store(number, std::memory_order_release);
  count(event);
  window(number);
  return number;
}

// An event whose place was taken by a later one is left alone.
void Profile::end(std::uint64_t number) {
  auto& r = *record(number);
  if (r.sequence.load(std::memory_order_relaxed) != number) return;
  __atomic_store_n(&r.stop_ns, ticks().now(), __ATOMIC_RELAXED);
}

void Profile::kernel(std::uint64_t number, std::uint64_t timer, bool stop) {
  auto& r = *record(number);
  if (timer == 0 || r.sequence.load(std::memory_order_relaxed) != number) return;
  if (stop) {
    raise(r.gpu_stop_ns, timer);
  } else {
    lower(r.gpu_start_ns, timer);
    r.kernels.fetch_add(1, std::memory_order_relaxed);
  }
}

void Profile::sent(std::uint32_t peer, std::uint64_t bytes) {
  if (peer < header_->ranks) sent_[peer].fetch_add(bytes, std::memory_order_relaxed);
}

void remove_stale(const std::string& folder) {
  const std::string mine = prefix();
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name.rfind(mine, 0) != 0 || name.size() < mine.size() + 8) continue;
    const long pid = std::strtol(name.c_str() + mine.size(), nullptr, 10);
    struct stat status {};
    const std::string path = folder + "/" + name;
    if (pid <= 1 || ::kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH) continue;
    if (::lstat(path.c_str(), &status) != 0 || status.st_uid != ::geteuid()) continue;
    if (std::time(nullptr) - status.st_mtime > 3600) ::unlink(path.c_str());
  }
  ::closedir(dir);
}

}  // namespace topotune::plugins
