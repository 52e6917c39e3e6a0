#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace topotune::parse::log {

// Keys and values in one array, open addressing: what is looked up for every line. Nothing is ever removed.
template <class Key, class Value, class Hash>
class Table {
 public:
  // The value of `key`, made when it is new.
  Value& operator[](const Key& key) {
    if (entries_.size() * 2 >= slots_.size()) grow();
    for (auto at = Hash{}(key)&mask_;; at = (at + 1) & mask_) {
      auto& slot = slots_[at];
      if (slot == 0) {
        entries_.emplace_back(key, Value{});
        slot = static_cast<unsigned>(entries_.size());
        return entries_.back().second;
      }
      if (entries_[slot - 1].first == key) return entries_[slot - 1].second;
    }
  }
  std::size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }  // in the order of making
  auto end() const { return entries_.end(); }

 private:
  void grow() {
    slots_.assign(slots_.empty() ? 256 : slots_.size() * 2, 0);
    mask_ = slots_.size() - 1;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      auto at = Hash{}(entries_[i].first) & mask_;
      while (slots_[at] != 0) at = (at + 1) & mask_;
      slots_[at] = static_cast<unsigned>(i + 1);
    }
  }

  std::vector<unsigned> slots_;  // index + 1
  std::vector<std::pair<Key, Value>> entries_;
  std::size_t mask_ = 0;
};

}  // namespace topotune::parse::log
