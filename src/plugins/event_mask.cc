#include "plugins/event_mask.h"

#include <sched.h>

#include "plugins/profiler_api.h"

namespace topotune::plugins {

void EventMask::lock() {
  while (busy_.test_and_set(std::memory_order_acquire)) ::sched_yield();
}

void EventMask::apply() const {
  const int value = paused() ? 0 : events_ | (kernels_ ? static_cast<int>(kKernelCh) : 0);
  for (int* word : words_)
    if (word != nullptr) __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

void EventMask::join(int* word, int events) {
  lock();
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

void EventMask::pause(bool paused) {
  lock();
  paused_.store(paused, std::memory_order_relaxed);
  apply();
  busy_.clear(std::memory_order_release);
}

void EventMask::time_kernels(bool on) {
  if (!on && left_.load(std::memory_order_relaxed) == 0) return;
  if (busy_.test_and_set(std::memory_order_acquire)) return;
  kernels_ = on;
  left_.store(on ? 17 : 0, std::memory_order_relaxed);
  apply();
  busy_.clear(std::memory_order_release);
}

// Counting need not be exact.
void EventMask::count_down() {
  const int left = left_.load(std::memory_order_relaxed);
  if (left > 1)
    left_.store(left - 1, std::memory_order_relaxed);
  else
    time_kernels(false);
}

}  // namespace topotune::plugins
