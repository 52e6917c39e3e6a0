#include "plugins/event_mask.h"

#include <sched.h>

#include <algorithm>
#include <iterator>

#include "plugins/profiler_api.h"

namespace topotune::plugins {

void EventMask::lock() {
  while (busy_.test_and_set(std::memory_order_acquire)) ::sched_yield();
}

void EventMask::apply() const {
  const int value = paused() ? events_ & static_cast<int>(kKernelCh) : events_;
  for (const auto& word : words_)
    if (word.at != nullptr) __atomic_store_n(word.at, value, __ATOMIC_RELAXED);
}

EventMask::Word* EventMask::find(const int* word) {
  const auto place = std::ranges::find(words_, word, &Word::at);
  return place == std::end(words_) ? nullptr : place;
}

void EventMask::join(int* word, int events) {
  lock();
  ++members_;
  events_ |= events;
  Word* place = word == nullptr ? nullptr : find(word);
  if (word != nullptr && place == nullptr) place = find(nullptr);
  if (place != nullptr) place->at = word, ++place->members;
  apply();
  busy_.clear(std::memory_order_release);
}

void EventMask::leave(const int* word) {
  lock();
  if (auto* place = word == nullptr ? nullptr : find(word); place != nullptr && --place->members == 0)
    place->at = nullptr;
  if (--members_ == 0) events_ &= static_cast<int>(kKernelCh);
  busy_.clear(std::memory_order_release);
}

void EventMask::pause(bool paused) {
  lock();
  paused_.store(paused, std::memory_order_relaxed);
  apply();
  busy_.clear(std::memory_order_release);
}

}  // namespace topotune::plugins
