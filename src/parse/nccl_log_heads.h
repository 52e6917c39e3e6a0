#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace topotune::parse::log {

// What a line begins with ("host:pid:tid [dev"), seen before: such a line need not be taken apart again.
// Everything that counting a repeated collective needs is here, in three cache lines.
struct alignas(64) Head {
  static constexpr std::size_t kLongest = 96, kLongestEnd = 64;

  std::int32_t site = -1;
  std::int32_t instance = -1;  // the communicator that `end` names; -1: none yet
  std::uint32_t epoch = 0;     // State::epoch when `end` was read
  std::int32_t shape = -1;     // of the last call
  std::uint8_t length = 0, end_length = 0;
  bool plain =
      false;  // its calls are counted and nothing else: not the timeline's rank, no numbers to compare
  bool dirty = false;  // the site has not been told of the last call
  char text_[kLongest] = {};
  char end_[kLongestEnd] = {};  // how its last call ended: "0x… [nranks=8] stream 0x…"

  bool is(std::string_view head) const {
    return head.size() == length && std::memcmp(text_, head.data(), length) == 0;
  }
  bool ends(std::string_view end) const {
    return end.size() == end_length && std::memcmp(end_, end.data(), end_length) == 0;
  }
  void set_end(std::string_view end) {
    end_length = static_cast<std::uint8_t>(end.size());
    std::memcpy(end_, end.data(), end.size());
  }
};
static_assert(sizeof(Head) == 192);

// Heads by their text. Open addressing; full at kMost heads, later ones are taken apart every time.
class HeadCache {
 public:
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

  // Where the head with this hash may be, or -1; asks the memory for it. `at()` still has to be compared.
  int guess(std::uint64_t hash) const {
    if (slots_.empty()) return -1;
    for (auto at = hash & mask_;; at = (at + 1) & mask_) {
      const auto& slot = slots_[at];
      if (slot.index < 0) return -1;
      if (slot.hash != static_cast<std::uint32_t>(hash >> 32U)) continue;
      const auto* head = reinterpret_cast<const char*>(&heads_[static_cast<std::size_t>(slot.index)]);
      __builtin_prefetch(head);
      __builtin_prefetch(head + 64);
      __builtin_prefetch(head + 128);
      return slot.index;
    }
  }
  void fetch(std::uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & mask_]);
  }

  // The head, or -1.
  int find(std::string_view head, std::uint64_t hash) const {
    if (slots_.empty()) return -1;
    for (auto at = hash & mask_;; at = (at + 1) & mask_) {
      const auto& slot = slots_[at];
      if (slot.index < 0) return -1;
      if (slot.hash == static_cast<std::uint32_t>(hash >> 32U) && this->at(slot.index).is(head))
        return slot.index;
    }
  }

  const Head& at(int index) const { return heads_[static_cast<std::size_t>(index)]; }
  Head& at(int index) { return heads_[static_cast<std::size_t>(index)]; }

  void add(std::string_view text, int site) {
    if (heads_.size() >= kMost || text.size() > Head::kLongest) return;
    const auto hash = hash_of(text);
    if (find(text, hash) >= 0) return;
    if (heads_.size() * 2 >= slots_.size()) grow();
    Head made;
    made.site = site;
    made.length = static_cast<std::uint8_t>(text.size());
    std::memcpy(made.text_, text.data(), text.size());
    heads_.push_back(made);
    put({static_cast<std::uint32_t>(hash >> 32U), static_cast<std::int32_t>(heads_.size() - 1)}, hash);
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 18U;
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t index = -1;
  };

  void put(const Slot& slot, std::uint64_t hash) {
    auto at = hash & mask_;
    while (slots_[at].index >= 0) at = (at + 1) & mask_;
    slots_[at] = slot;
  }

  void grow() {
    slots_.assign(slots_.empty() ? 1024 : slots_.size() * 2, Slot{});
    mask_ = slots_.size() - 1;
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      const auto hash = hash_of({heads_[i].text_, heads_[i].length});
      put({static_cast<std::uint32_t>(hash >> 32U), static_cast<std::int32_t>(i)}, hash);
    }
  }

  std::vector<Slot> slots_;
  std::vector<Head> heads_;
  std::size_t mask_ = 0;
};

}  // namespace topotune::parse::log
