#pragma once

#include <atomic>

namespace topotune::plugins {

// Which events NCCL makes: one word of NCCL for all communicators of the process. NCCL reads it without a
// lock whenever an operation is enqueued and keeps what it read for all events of that operation, so that it
// may change at any time, but for the kernels' bit: NCCL 2.27 to 2.30 count kernels on the host by other
// rules for captured operations with the bit than for those without, and a count that is off never comes up
// to the GPU's: the proxy thread looks for it without end and ncclCommDestroy waits for that thread.
class EventMask {
 public:
  // A communicator that wants these events. `word` is NCCL's, and stays; null: none.
  void join(int* word, int events);
  // One that joined with this word has ended. With the last of them that NCCL may go, and its word with it.
  void leave(const int* word);
  // Nothing (but kernels, where they are timed) from the next operations on, or again what is wanted.
  void pause(bool paused);
  bool paused() const { return paused_.load(std::memory_order_relaxed); }

 private:
  void lock();
  void apply() const;  // when locked

  static constexpr int kWords = 4;  // more than one: several NCCLs in one process
  std::atomic<bool> paused_{false};
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  struct Word {
    int* at = nullptr;
    unsigned members = 0;
  };
  Word* find(const int* word);
  Word words_[kWords];
  int events_ = 0;
  unsigned members_ = 0;
};

}  // namespace topotune::plugins
