#pragma once

#include <atomic>

namespace topotune::plugins {

// Which events NCCL makes: one word of NCCL for all communicators of the process. NCCL reads it without a
// lock whenever an operation is enqueued and keeps what it read for all events of that operation, so that it
// may change at any time.
class EventMask {
 public:
  // A communicator that wants these events. `word` is NCCL's, and stays; null: none.
  void join(int* word, int events);
  // Nothing from the next operations on, or again what is wanted.
  void pause(bool paused);
  bool paused() const { return paused_.load(std::memory_order_relaxed); }

  // Kernels of the next operations are timed, until the communicator that began it ends it, and for no more
  // than 16 events of others. Gives up where somebody else changes the mask just now: nothing of these waits.
  void time_kernels(bool on);
  void count_event() {
    if (left_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      count_down();
  }

 private:
  void count_down();
  void lock();
  void apply() const;  // when locked

  static constexpr int kWords = 4;  // more than one: several NCCLs in one process
  std::atomic<int> left_{0};        // events until kernels are no longer timed
  std::atomic<bool> paused_{false};
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  int* words_[kWords] = {};
  int events_ = 0;
  bool kernels_ = false;
};

}  // namespace topotune::plugins
