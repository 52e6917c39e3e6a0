#include "base/cpuset.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/text.h"

namespace topotune {

void CpuSet::add(int cpu) {
  if (cpu < 0 || cpu >= kMaxCpu) return;
  const auto word = static_cast<std::size_t>(cpu) / 64;
  if (words_.size() <= word) words_.resize(word + 1);
  words_[word] |= std::uint64_t{1} << (cpu % 64);
}

void CpuSet::add_range(int first, int last) {
  for (int cpu = std::max(first, 0); cpu <= std::min(last, kMaxCpu - 1); ++cpu) add(cpu);
}

bool CpuSet::contains(int cpu) const {
  const auto word = static_cast<std::size_t>(cpu) / 64;
  return cpu >= 0 && word < words_.size() && (words_[word] >> (cpu % 64) & 1);
}

bool CpuSet::empty() const { return count() == 0; }

int CpuSet::count() const {
  int n = 0;
  for (const auto word : words_) n += std::popcount(word);
  return n;
}

std::vector<int> CpuSet::to_vector() const {
  std::vector<int> out;
  for (std::size_t w = 0; w < words_.size(); ++w) {
    for (auto word = words_[w]; word != 0; word &= word - 1)
      out.push_back(static_cast<int>(w * 64) + std::countr_zero(word));
  }
  return out;
}

std::string CpuSet::to_list() const {
  std::string out;
  const auto cpus = to_vector();
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t j = i;
    while (j + 1 < cpus.size() && cpus[j + 1] == cpus[j] + 1) ++j;
    if (!out.empty()) out += ',';
    out += i == j ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[j]);
    i = j + 1;
  }
  return out;
}

CpuSet CpuSet::operator&(const CpuSet& other) const {
  CpuSet out;
  out.words_.resize(std::min(words_.size(), other.words_.size()));
  for (std::size_t i = 0; i < out.words_.size(); ++i) out.words_[i] = words_[i] & other.words_[i];
  return out;
}

CpuSet CpuSet::operator|(const CpuSet& other) const {
  CpuSet out = words_.size() >= other.words_.size() ? *this : other;
  const CpuSet& shorter = words_.size() >= other.words_.size() ? other : *this;
  for (std::size_t i = 0; i < shorter.words_.size(); ++i) out.words_[i] |= shorter.words_[i];
  return out;
}

CpuSet CpuSet::operator-(const CpuSet& other) const {
  CpuSet out = *this;
  for (std::size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i) out.words_[i] &= ~other.words_[i];
  return out;
}

bool CpuSet::intersects(const CpuSet& other) const { return !(*this & other).empty(); }
bool CpuSet::is_subset_of(const CpuSet& other) const { return (*this - other).empty(); }
bool CpuSet::operator==(const CpuSet& other) const { return is_subset_of(other) && other.is_subset_of(*this); }

std::optional<CpuSet> parse_cpu_list(std::string_view text) {
  CpuSet out;
  text = trim(text);
  if (text.empty()) return out;
  for (const auto field : split(text, ',')) {
    const auto part = trim(field);
    const auto dash = part.find('-');
    const auto first = parse_int<int>(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_int<int>(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= CpuSet::kMaxCpu) return std::nullopt;
    out.add_range(*first, *last);
  }
  return out;
}

std::optional<CpuSet> parse_cpu_mask(std::string_view text) {
  CpuSet out;
  auto fields = split(trim(text), ',');
  if (fields.size() > CpuSet::kMaxCpu / 32) return std::nullopt;
  std::ranges::reverse(fields);
  int base = 0;
  for (auto field : fields) {
    field = trim(field);
    if (field.starts_with("0x") || field.starts_with("0X")) field.remove_prefix(2);
    if (field.size() > 8 && fields.size() > 1) return std::nullopt;
    if (field.size() > CpuSet::kMaxCpu / 4 || !std::ranges::all_of(field, is_hex_digit)) return std::nullopt;
    for (std::size_t k = 0; k < field.size(); ++k) {
      const auto digit = *parse_int<int>(field.substr(field.size() - 1 - k, 1), 16);
      for (int bit = 0; bit < 4; ++bit) {
        if (digit >> bit & 1) out.add(base + static_cast<int>(k) * 4 + bit);
      }
    }
    base += 32;
  }
  return trim(text).empty() ? std::nullopt : std::optional(out);
}

}  // namespace topotune
