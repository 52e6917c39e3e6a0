#include "plugins/profiler.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "plugins/memory.h"
#include "plugins/profiler_api.h"
#include "plugins/ticks.h"
#include "tune/hash.h"

namespace topotune::plugins {

namespace {

Ticks ticks;
pthread_once_t ticks_measured = PTHREAD_ONCE_INIT;

// A variable's number; another value is named in `refused`, and `fallback` holds.
long number_in(const char* name, long fallback, long least, long most, char (&refused)[160]) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end == '\0' && value >= least && value <= most) return value;
  std::snprintf(refused, sizeof refused, "%s is no number from %ld to %ld: %ld is used", name, least, most,
                fallback);
  return fallback;
}

// Where a process's number means that process: folders may be shared with other containers and hosts.
unsigned place_hash() {
  char place[96] = {};
  ::gethostname(place, 63);
  struct stat status {};
  const auto length = std::strlen(place);
  if (::stat("/proc/self/ns/pid", &status) == 0)
    std::snprintf(place + length, sizeof place - length, "%llu",
                  static_cast<unsigned long long>(status.st_ino));
  return static_cast<unsigned>(tune::hash_of(place) >> 32);
}

// NCCL itself needs room there, and fails a job that finds none: half of the folder is left to it, or enough.
bool leaves_room(const char* folder, std::size_t bytes) {
  constexpr std::uint64_t kEnough = 256 << 20;
  struct statvfs status {};
  if (::statvfs(folder, &status) != 0) return true;  // opening says why
  const auto size = std::uint64_t{status.f_blocks} * status.f_frsize;
  const auto left = std::uint64_t{status.f_bavail} * status.f_frsize;
  return size == 0 || left >= bytes + std::min(kEnough, size / 2);
}

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

// 0, or why a file of this size cannot be. Its memory is taken now: a full /dev/shm must not kill the job
// later.
int take_memory(int fd, std::size_t bytes) {
  if (!may_write(bytes)) return EFBIG;
  int code = EINTR;  // a timer of the job's
  for (int turn = 0; turn < 100 && code == EINTR; ++turn)
    code = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  return code;
}

// A file of this size, mapped; null with errno otherwise.
void* mapped_file(const char* path, std::size_t bytes) {
  const int fd = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  int code = take_memory(fd, bytes);
  if (code == 0) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) code = errno;
  }
  ::close(fd);
  if (memory != MAP_FAILED) return memory;
  ::unlink(path);
  return errno = code, nullptr;
}

std::atomic<unsigned> files{0};

}  // namespace

ProfilerSettings ProfilerSettings::from_environment() {
  ProfilerSettings out;
  if (const char* folder = std::getenv("TOPOTUNE_PROFILER_DIR"); folder != nullptr && *folder != '\0')
    out.folder = folder;
  const auto number = [&](const char* name, long fallback, long least, long most) {
    return static_cast<std::uint32_t>(number_in(name, fallback, least, most, out.refused));
  };
  out.records = std::bit_ceil(number("TOPOTUNE_PROFILER_RECORDS", 4096, 16, kMostRecords));
  out.kernels = number("TOPOTUNE_PROFILER_KERNELS", 0, 0, 1) == 1;
  out.mask = static_cast<int>(number("TOPOTUNE_PROFILER_MASK", 0, 0, 32767));
  return out;
}

int events_of(const ProfilerSettings& settings, const CommFacts& facts) {
  if (settings.mask != 0) return settings.mask;
  std::uint64_t events = kColl | kP2p;
  if (facts.nodes > 1) events |= kProxyOp | kProxyStep;
  if (settings.kernels) events |= kKernelCh;
  if (facts.abi >= 6) events |= kCeColl;
  return static_cast<int>(events);
}

bool Profile::open(const ProfilerSettings& settings, const CommFacts& facts, Reason& why) {
  ::pthread_once(&ticks_measured, [] { ticks.measure(); });
  const auto ranks = static_cast<std::uint32_t>(std::clamp<int>(facts.ranks, 0, kMostRanks));
  const auto header_bytes = profile_header_bytes(ranks);
  const auto bytes = header_bytes + std::size_t{settings.records} * sizeof(ProfileRecord);
  char path[PATH_MAX];
  const int length =
      std::snprintf(path, sizeof path, "%s/topotune-profile-%u-%d-%u-%llu-%08x.ttprof", settings.folder,
                    ::geteuid(), ::getpid(), files.fetch_add(1),
                    static_cast<unsigned long long>(now_ns(CLOCK_REALTIME) / 1000), place_hash());
  if (!leaves_room(settings.folder, bytes)) {
    std::snprintf(why, sizeof why, "%.200s: too little room beside what NCCL needs", settings.folder);
    return false;
  }
  errno = ENAMETOOLONG;
  void* memory = length < PATH_MAX ? mapped_file(path, bytes) : nullptr;
  if (memory == nullptr) {
    std::snprintf(why, sizeof why, "%.240s: %s", path, std::strerror(errno));
    return false;
  }
  auto* header = static_cast<ProfileHeader*>(memory);
  header->version = kProfileVersion;
  header->header_bytes = static_cast<std::uint32_t>(header_bytes);
  header->record_bytes = sizeof(ProfileRecord), header->records = settings.records;
  header->ranks = ranks, header->nodes = static_cast<std::uint32_t>(std::max(facts.nodes, 0));
  header->rank = static_cast<std::uint32_t>(facts.rank), header->abi = static_cast<std::uint32_t>(facts.abi);
  header->comm_id = facts.comm, header->pid = static_cast<std::uint64_t>(::getpid());
  header->began_ns = ticks.now(), header->began_unix_ns = now_ns(CLOCK_REALTIME);
  char host[64] = {};
  ::gethostname(host, sizeof host - 1);
  copy_name(header->host, host);
  copy_name(header->comm_name, facts.name);
  header->base_mask = header->mask = static_cast<std::uint32_t>(events_of(settings, facts));
  header->sample = (header->mask & kKernelCh) != 0 ? 1 : 0;
  ring_ = reinterpret_cast<ProfileRecord*>(static_cast<char*>(memory) + header_bytes);
  last_ = settings.records - 1;
  __atomic_store_n(&header->magic, kProfileMagic, __ATOMIC_RELEASE);  // from here on it can be read
  header_.store(header, std::memory_order_release);
  return true;
}

void Profile::forget() {
  auto* h = header_.exchange(nullptr);
  if (h != nullptr)
    ::munmap(
        h, static_cast<std::size_t>(reinterpret_cast<char*>(ring_ + last_ + 1) - reinterpret_cast<char*>(h)));
  next_ = total_ = 0;
  names.forget();
}

// The memory stays: events of proxy threads may still come in, but no new ones.
bool Profile::close() {
  auto* h = header();
  if (h->pid != static_cast<std::uint64_t>(::getpid()))
    return false;  // a child of fork(): it is its parent's
  if (h->closed.exchange(1, std::memory_order_relaxed) != 0) return false;
  const auto used = std::min<std::uint64_t>(h->next.load(std::memory_order_relaxed), h->records);
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<std::uintptr_t>(ring_ + used) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(ring_ + h->records) / page * page;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_REMOVE);
  return true;
}

void Profile::name(std::uint64_t comm, int rank) {
  auto* h = header();
  __atomic_store_n(&h->comm_id, comm, __ATOMIC_RELAXED);
  __atomic_store_n(&h->rank, static_cast<std::uint32_t>(rank), __ATOMIC_RELAXED);
}

void Profile::expect() const {
  const auto* h = header();
  const auto& r = record(next_.load(std::memory_order_relaxed) + 1);
  const auto function = total_.load(std::memory_order_relaxed) / kProfileSizes;
  const auto size = total_.load(std::memory_order_relaxed) % kProfileSizes;
  __builtin_prefetch(&h->next, 1);
  __builtin_prefetch(&h->totals[function][size], 1);
  __builtin_prefetch(&r, 1);
  __builtin_prefetch(&r.kernels, 1);
}

void Profile::count(ProfileHeader& h, const Event& event) {
  if (event.function >= kProfileFunctionCount) return;
  const auto size =
      event.bytes == 0 ? 0 : std::min<std::size_t>(std::bit_width(event.bytes) - 1, kProfileSizes - 1);
  auto& total = h.totals[event.function][size];
  total.calls.fetch_add(1, std::memory_order_relaxed);
  total.bytes.fetch_add(event.bytes, std::memory_order_relaxed);
  total_.store(static_cast<std::uint32_t>(event.function * kProfileSizes + size), std::memory_order_relaxed);
}

std::uint64_t Profile::begin(const Event& event) {
  const auto start = ticks.now();
  auto* h = header();
  if (h->closed.load(std::memory_order_relaxed) != 0)
    return 0;  // its records may be gone, and no room for new
  // What is locked waits for all stores before it: it comes before those to the record, which few have in
  // their cache.
  const auto number = h->next.fetch_add(1, std::memory_order_relaxed) + 1;
  count(*h, event);
  next_.store(static_cast<std::uint32_t>(number), std::memory_order_relaxed);
  auto& r = record(number);
  // Each store is one of release: none of them is seen before the 0.
  r.sequence.store(0, std::memory_order_relaxed);
  __atomic_store_n(&r.start_ns, start, __ATOMIC_RELEASE);
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
  return number;
}

// An event whose place was taken by a later one is left alone.
void Profile::end(std::uint64_t number) const {
  auto& r = record(number);
  if (r.sequence.load(std::memory_order_relaxed) != number) return;
  __atomic_store_n(&r.stop_ns, ticks.now(), __ATOMIC_RELAXED);
}

void Profile::kernel(std::uint64_t number, std::uint64_t timer, bool stop) const {
  auto& r = record(number);
  if (timer == 0 || r.sequence.load(std::memory_order_relaxed) != number) return;
  if (stop) {
    r.stopped.fetch_add(1, std::memory_order_relaxed);  // first: a stop without it is of an older plugin
    raise(r.gpu_stop_ns, timer);
  } else {
    lower(r.gpu_start_ns, timer);
    r.kernels.fetch_add(1, std::memory_order_relaxed);
  }
}

void Profile::sent(std::uint32_t peer, std::uint64_t bytes) const {
  auto* h = header();
  if (peer < h->ranks)
    reinterpret_cast<std::atomic<std::uint64_t>*>(h + 1)[peer].fetch_add(bytes, std::memory_order_relaxed);
}

namespace {

// When something happened in the file last, seconds since 1970: a ring that is used again and again does not
// change the file's own time.
std::time_t newest_event(const char* path, const struct stat& status) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return status.st_mtime;
  ProfileHeader head{};
  std::uint64_t last = 0;
  if (::pread(fd, static_cast<void*>(&head), sizeof head, 0) == sizeof head && head.magic == kProfileMagic &&
      head.record_bytes == sizeof(ProfileRecord) &&
      head.header_bytes + std::uint64_t{head.records} * sizeof(ProfileRecord) <=
          static_cast<std::uint64_t>(status.st_size))
    last = head.began_ns;
  char piece[64 * sizeof(ProfileRecord)];
  for (std::uint64_t done = 0; last != 0 && done < head.records;) {
    const auto got = ::pread(fd, piece, sizeof piece,
                             static_cast<off_t>(head.header_bytes + done * sizeof(ProfileRecord)));
    const auto count = got < 0 ? 0 : static_cast<std::size_t>(got) / sizeof(ProfileRecord);
    if (count == 0) break;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t start = 0;
      std::memcpy(&start, piece + i * sizeof(ProfileRecord) + offsetof(ProfileRecord, start_ns),
                  sizeof start);
      last = std::max(last, start);
    }
    done += count;
  }
  ::close(fd);
  if (last == 0) return status.st_mtime;
  const auto seconds = (head.began_unix_ns + (last - head.began_ns)) / 1'000'000'000;
  return std::max(status.st_mtime, static_cast<std::time_t>(seconds));
}

}  // namespace

void remove_stale(const char* folder) {
  char mine[48], here[32], path[PATH_MAX];
  const auto length =
      static_cast<std::size_t>(std::snprintf(mine, sizeof mine, "topotune-profile-%u-", ::geteuid()));
  std::snprintf(here, sizeof here, "-%08x.ttprof", place_hash());
  DIR* dir = ::opendir(folder);
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(mine) || !name.ends_with(".ttprof")) continue;
    // Whether a process of another container lives cannot be seen from here.
    const bool known = name.ends_with(here);
    const long age = known ? 3600 : 7 * 24 * 3600;
    const long pid = std::strtol(entry->d_name + length, nullptr, 10);
    struct stat status {};
    if (std::snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= PATH_MAX) continue;
    if (known && (pid <= 1 || ::kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH)) continue;
    if (::lstat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) continue;
    if (std::time(nullptr) - status.st_mtime <= age) continue;
    if (std::time(nullptr) - newest_event(path, status) > age) ::unlink(path);
  }
  ::closedir(dir);
}

}  // namespace topotune::plugins
