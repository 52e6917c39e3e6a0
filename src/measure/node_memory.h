#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cpuset.h"
#include "base/result.h"

namespace topotune::measure {

// Memory bound to a NUMA node, touched, in huge pages where the kernel gives them.
class NodeMemory {
 public:
  // node: nothing leaves the placement to the kernel. Errors: the size, the node, or memory that ended up
  // elsewhere.
  static Result<NodeMemory> make(std::size_t bytes, std::optional<int> node);
  NodeMemory() = default;
  NodeMemory(NodeMemory&& other) noexcept { swap(other); }
  NodeMemory& operator=(NodeMemory&& other) noexcept { return swap(other), *this; }
  ~NodeMemory();
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  // "2 MiB pages", "transparent huge pages", "4 KiB pages" and how much of it.
  const std::string& pages() const { return pages_; }
  // The node that the pages are on by the kernel's own word (move_pages); nothing when it does not tell.
  std::optional<int> node() const { return node_; }

 private:
  void swap(NodeMemory& other) noexcept;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::string pages_;
  std::optional<int> node_;
};

// Holds the calling thread on some CPUs; the earlier set comes back at the end.
class Pinned {
 public:
  explicit Pinned(const CpuSet& cpus);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  bool holds() const { return holds_; }

 private:
  CpuSet before_;
  bool holds_ = false;
};

CpuSet allowed_cpus();

// A closed chain of pointers through every cache line of the memory, in random order (one cycle), so that no
// prefetcher knows the next one. The lines are pushed out of the caches afterwards.
class CpuChain {
 public:
  CpuChain(NodeMemory& memory, std::uint64_t seed);
  // Follows `loads` pointers on from where it was. Seconds of this thread's time a load.
  double chase(std::uint64_t loads);
  std::uint64_t lines() const { return lines_; }
  // Follows the rest of the cycle: true when it comes back to the start after exactly lines() loads in all.
  bool closes();

 private:
  void** start_ = nullptr;
  void** at_ = nullptr;
  std::uint64_t lines_ = 0, done_ = 0;
};

// Reads all of the memory by one thread on each CPU, `times` times over. GB/s; an error when what was read is
// not what was written (fill_words before).
Result<double> read_bandwidth(const NodeMemory& memory, const std::vector<int>& cpus, int times);
// Copies the first half to the second; counts both the bytes read and those written.
Result<double> copy_bandwidth(const NodeMemory& memory, const std::vector<int>& cpus, int times);
// Word i holds i.
void fill_words(const NodeMemory& memory);

}  // namespace topotune::measure
