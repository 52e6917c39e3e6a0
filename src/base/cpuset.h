#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topotune {

// A set of CPU (or node) numbers below kMaxCpu.
class CpuSet {
 public:
  static constexpr int kMaxCpu = 65536;

  void add(int cpu);
  void add_range(int first, int last);  // both ends in; out of range numbers are ignored
  bool contains(int cpu) const;
  bool empty() const;
  int count() const;
  std::vector<int> to_vector() const;
  // "0-31,64-95", the kernel's own form; "" for the empty set.
  std::string to_list() const;

  bool intersects(const CpuSet& other) const;
  bool is_subset_of(const CpuSet& other) const;
  CpuSet operator&(const CpuSet& other) const;
  CpuSet operator|(const CpuSet& other) const;
  CpuSet operator-(const CpuSet& other) const;
  bool operator==(const CpuSet& other) const;

 private:
  std::vector<std::uint64_t> words_;
};

// The kernel's list form: "0-31,64-95". Nothing for a reversed range, other characters or numbers >= kMaxCpu.
// An empty text is the empty set.
std::optional<CpuSet> parse_cpu_list(std::string_view text);

// The kernel's mask form: "ffff,ffffffff" (32-bit words, most significant first) and hwloc's "0x0000ffff,0xffffffff"
// (an empty word is 0). Nothing for other characters, or words of more than 8 digits (one single word may be longer).
std::optional<CpuSet> parse_cpu_mask(std::string_view text);

}  // namespace topotune
