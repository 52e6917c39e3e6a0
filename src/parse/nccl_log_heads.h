#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace topotune::parse::log {

// Heads of lines ("host:pid:tid [dev") and the sites they name: a line whose head was seen before need not be
// taken apart again. Open addressing; full at kMost heads, later ones are taken apart every time.
class HeadCache {
 public:
  // The site, or -1.
  int find(std::string_view head) const {
    if (slots_.empty()) return -1;
    const auto hash = hash_of(head);
    for (auto at = hash & mask_;; at = (at + 1) & mask_) {
      const auto& slot = slots_[at];
      if (slot.site < 0) return -1;
      if (slot.hash == hash && slot.length == head.size() &&
          std::memcmp(text_.data() + slot.begin, head.data(), head.size()) == 0)
        return slot.site;
    }
  }

  void add(std::string_view head, int site) {
    if (used_ >= kMost || head.size() > 400) return;
    if (used_ * 2 >= slots_.size()) grow();
    put({hash_of(head), text_.size(), static_cast<std::uint32_t>(head.size()), site});
    text_.append(head);
    ++used_;
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 20U;
  struct Slot {
    std::uint64_t hash = 0;
    std::size_t begin = 0;
    std::uint32_t length = 0;
    std::int32_t site = -1;
  };

  static std::uint64_t hash_of(std::string_view text) {
    std::uint64_t h = text.size() * 0x9e3779b97f4a7c15ULL;
    const char* at = text.data();
    std::size_t left = text.size();
    for (; left >= 8; left -= 8, at += 8) {
      std::uint64_t word;
      std::memcpy(&word, at, 8);
      h = (h ^ word) * 0xff51afd7ed558ccdULL;
      h ^= h >> 32U;
    }
    std::uint64_t word = 0;
    std::memcpy(&word, at, left);
    h = (h ^ word) * 0xff51afd7ed558ccdULL;
    return h ^ (h >> 29U);
  }

  void put(const Slot& slot) {
    auto at = slot.hash & mask_;
    while (slots_[at].site >= 0) at = (at + 1) & mask_;
    slots_[at] = slot;
  }

  void grow() {
    auto old = std::move(slots_);
    slots_.assign(old.empty() ? 1024 : old.size() * 2, Slot{});
    mask_ = slots_.size() - 1;
    for (const auto& slot : old)
      if (slot.site >= 0) put(slot);
  }

  std::vector<Slot> slots_;
  std::string text_;
  std::size_t mask_ = 0, used_ = 0;
};

}  // namespace topotune::parse::log
