#include "measure/node_memory.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <thread>
#include <utility>

#include "measure/runner.h"
#include "measure/statistics.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace topotune::measure {

namespace {

constexpr std::size_t kHuge = 2u << 20;
constexpr std::size_t kLine = 64;
constexpr int kBind = 2;       // MPOL_BIND (linux/mempolicy.h)
constexpr int kCollapse = 25;  // MADV_COLLAPSE (Linux 6.1, asm-generic/mman-common.h)

Result<void> bind(void* data, std::size_t bytes, int node) {
  std::vector<unsigned long> mask(static_cast<std::size_t>(node) / 64 + 1);
  mask.back() |= 1ul << (node % 64);
  const long rc = ::syscall(SYS_mbind, data, bytes, kBind, mask.data(), mask.size() * 64 + 1, 0);
  if (rc == 0) return {};
  // A kernel without NUMA has one node, which needs no binding.
  if (errno == ENOSYS && node == 0) return {};
  return fail(Errc::io, "memory of node {}: {}", node, std::strerror(errno));
}

// The node of a page, as move_pages(2) tells it without moving.
std::optional<int> node_of(void* page) {
  int status = -1;
  if (::syscall(SYS_move_pages, 0, 1ul, &page, nullptr, &status, 0) != 0 || status < 0) return std::nullopt;
  return status;
}

// KiB of the mapping that are in transparent huge pages (/proc/self/smaps).
std::size_t huge_kib_of(const void* data) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(data));
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ') && line.find(':') > line.find(' ')) inside = line.starts_with(wanted);
    if (inside && line.starts_with("AnonHugePages:")) return std::stoull(line.substr(14));
  }
  return 0;
}

void* map(std::size_t bytes, int extra) {
  void* const data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

}  // namespace

Result<NodeMemory> NodeMemory::make(std::size_t bytes, std::optional<int> node) {
  NodeMemory memory;
  memory.bytes_ = (bytes + kHuge - 1) / kHuge * kHuge;
  void* data = map(memory.bytes_, MAP_HUGETLB);
  const bool reserved = data != nullptr;
  if (!reserved) data = map(memory.bytes_, 0);
  if (data == nullptr)
    return fail(Errc::too_large, "{} MiB of memory: {}", memory.bytes_ >> 20, std::strerror(errno));
  memory.data_ = static_cast<std::byte*>(data);
  if (!reserved) ::madvise(data, memory.bytes_, MADV_HUGEPAGE);
  if (node) {
    if (auto ok = bind(data, memory.bytes_, *node); !ok) return tl::unexpected(ok.error());
  }
  for (std::size_t i = 0; i < memory.bytes_; i += 4096) memory.data_[i] = std::byte{1};
  memory.node_ = node_of(data);
  if (node && memory.node_ && *memory.node_ != *node)
    return fail(Errc::io, "memory asked of node {} came from node {}", *node, *memory.node_);
  // Memory in pieces gives fewer huge pages at the first touch than the kernel can still make.
  if (!reserved && huge_kib_of(data) * 1024 < memory.bytes_) ::madvise(data, memory.bytes_, kCollapse);
  const auto huge = huge_kib_of(data);
  memory.pages_ = reserved   ? "reserved 2 MiB pages"
                  : huge > 0 ? fmt::format("transparent huge pages ({} %)", huge * 1024 * 100 / memory.bytes_)
                             : "4 KiB pages";
  return memory;
}

NodeMemory::~NodeMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

void NodeMemory::swap(NodeMemory& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(pages_, other.pages_);
  std::swap(node_, other.node_);
}

namespace {

constexpr std::size_t kMaskWords = CpuSet::kMaxCpu / 64;

bool set_affinity(const CpuSet& cpus) {
  std::vector<unsigned long> mask(kMaskWords);
  for (const int cpu : cpus.to_vector()) mask[static_cast<std::size_t>(cpu) / 64] |= 1ul << (cpu % 64);
  return ::syscall(SYS_sched_setaffinity, 0, mask.size() * sizeof(unsigned long), mask.data()) == 0;
}

}  // namespace

CpuSet allowed_cpus() {
  std::vector<unsigned long> mask(kMaskWords);
  CpuSet cpus;
  const long bytes = ::syscall(SYS_sched_getaffinity, 0, mask.size() * sizeof(unsigned long), mask.data());
  for (long i = 0; i < bytes * 8; ++i) {
    if ((mask[static_cast<std::size_t>(i) / 64] >> (i % 64) & 1) != 0) cpus.add(static_cast<int>(i));
  }
  return cpus;
}

Pinned::Pinned(const CpuSet& cpus) : before_(allowed_cpus()) {
  holds_ = !(cpus & before_).empty() && set_affinity(cpus & before_);
}

Pinned::~Pinned() {
  if (holds_) set_affinity(before_);
}

CpuChain::CpuChain(NodeMemory& memory, std::uint64_t seed) : lines_(memory.size() / kLine) {
  // Sattolo's shuffle: one cycle through all lines.
  std::vector<std::uint32_t> next(lines_);
  for (std::uint64_t i = 0; i < lines_; ++i) next[i] = static_cast<std::uint32_t>(i);
  Random random(seed);
  for (std::uint64_t i = lines_ - 1; i > 0; --i) std::swap(next[i], next[random.below(i)]);
  std::byte* const base = memory.data();
  for (std::uint64_t i = 0; i < lines_; ++i)
    *reinterpret_cast<void**>(base + i * kLine) = base + std::uint64_t{next[i]} * kLine;
#if defined(__x86_64__)
  for (std::uint64_t i = 0; i < lines_; ++i) _mm_clflush(base + i * kLine);
  _mm_mfence();
#endif
  start_ = at_ = reinterpret_cast<void**>(base);
}

namespace {

// Of this thread: turns that other programs had on the CPU do not count.
double thread_seconds() {
  std::timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

double CpuChain::chase(std::uint64_t loads) {
  void** p = at_;
  const double start = thread_seconds();
  for (std::uint64_t i = 0; i < loads; ++i) p = static_cast<void**>(*const_cast<void* const volatile*>(p));
  const double seconds = thread_seconds() - start;
  at_ = p;
  done_ += loads;
  return seconds / static_cast<double>(loads);
}

bool CpuChain::closes() {
  const auto left = lines_ - done_ % lines_;
  void** p = at_;
  for (std::uint64_t i = 0; i < left; ++i) {
    p = static_cast<void**>(*p);
    if (p == start_ && i + 1 < left) return false;  // a short cut
  }
  at_ = p;
  done_ += left;
  return p == start_;
}

void fill_words(const NodeMemory& memory) {
  auto* const words = reinterpret_cast<std::uint64_t*>(memory.data());
  for (std::size_t i = 0; i < memory.size() / 8; ++i) words[i] = i;
}

namespace {

struct Slice {
  std::size_t first = 0, count = 0;  // words
};

Slice slice_of(std::size_t words, std::size_t index, std::size_t parts) {
  const std::size_t each = words / parts / 8 * 8;
  return {index * each, index + 1 == parts ? words - index * each : each};
}

// Eight sums, so that no addition waits for the one before.
std::uint64_t sum_of(const std::uint64_t* p, std::size_t count) {
  std::uint64_t s[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) s[k] += p[i + k];
  }
  for (; i < count; ++i) s[0] += p[i];
  return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

// Runs `work(index)` on a thread held on each CPU, started together. Seconds from the start to the last one's
// end.
template <class Work>
double run_threads(const std::vector<int>& cpus, const Work& work) {
  std::atomic<std::size_t> ready{0};
  std::atomic<bool> go{false};
  std::vector<double> ends(cpus.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    threads.emplace_back([&, i] {
      CpuSet one;
      one.add(cpus[i]);
      const Pinned pinned(one);
      ++ready;
      while (!go) std::this_thread::yield();
      work(i);
      ends[i] = monotonic_seconds();
    });
  }
  while (ready < cpus.size()) std::this_thread::yield();
  const double start = monotonic_seconds();
  go = true;
  for (auto& thread : threads) thread.join();
  return *std::ranges::max_element(ends) - start;
}

}  // namespace

Result<double> read_bandwidth(const NodeMemory& memory, const std::vector<int>& cpus, int times) {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(memory.data());
  const std::size_t count = memory.size() / 8;
  std::atomic<std::uint64_t> sum{0};
  const double seconds = run_threads(cpus, [&](std::size_t i) {
    const auto slice = slice_of(count, i, cpus.size());
    for (int t = 0; t < times; ++t) sum += sum_of(words + slice.first, slice.count);
  });
  const std::uint64_t once = count % 2 == 0 ? count / 2 * (count - 1) : (count - 1) / 2 * count;
  if (sum != once * static_cast<std::uint64_t>(times))
    return fail(Errc::io, "verification failed: the sum of what was read is wrong");
  return static_cast<double>(memory.size()) * times / seconds / 1e9;
}

Result<double> copy_bandwidth(const NodeMemory& memory, const std::vector<int>& cpus, int times) {
  auto* const words = reinterpret_cast<std::uint64_t*>(memory.data());
  const std::size_t half = memory.size() / 16;
  const double seconds = run_threads(cpus, [&](std::size_t i) {
    const auto slice = slice_of(half, i, cpus.size());
    for (int t = 0; t < times; ++t)
      std::memcpy(words + half + slice.first, words + slice.first, slice.count * 8);
  });
  if (std::memcmp(words, words + half, half * 8) != 0)
    return fail(Errc::io, "verification failed: the copy differs from its source");
  return static_cast<double>(half) * 16 * times / seconds / 1e9;
}

}  // namespace topotune::measure
