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
  for (int* word : words_)
    if (word != nullptr) __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

void EventMask::join(int* word, int events) {
  lock();
  ++members_;
  events_ |= events;
  for (int*& place : words_) {
    if (word == nullptr || place == word) break;
    if (place != nullptr) continue;
    place = word;
    break;
  }
  apply();
  busy_.clear(std::memory_order_release);
}

void EventMask::leave() {
  lock();
  if (--members_ == 0) {
    std::fill(std::begin(words_), std::end(words_), nullptr);
    events_ &= static_cast<int>(kKernelCh);
  }
  busy_.clear(std::memory_order_release);
}

void EventMask::pause(bool paused) {
  lock();
  paused_.store(paused, std::memory_order_relaxed);
  apply();
  busy_.clear(std::memory_order_release);
}

}  // namespace topotune::plugins
