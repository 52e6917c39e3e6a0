#include "measure/watchdog.h"

#include <chrono>
#include <utility>

namespace topotune::measure {

Watchdog::Watchdog(OnHang on_hang) : on_hang_(std::move(on_hang)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::begin(const std::string& step, double limit_seconds) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  limit_ = limit_seconds;
  deadline_ = from_now();
  changed_.notify_all();
}

void Watchdog::alive() {
  const std::lock_guard lock(mutex_);
  deadline_ = from_now();
}

std::chrono::steady_clock::time_point Watchdog::from_now() const {
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                std::chrono::duration<double>(limit_));
}

void Watchdog::end() {
  const std::lock_guard lock(mutex_);
  step_.reset();
  changed_.notify_all();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!quit_) {
    if (!step_) {
      changed_.wait(lock);
      continue;
    }
    const auto until = deadline_;
    changed_.wait_until(lock, until);
    if (quit_ || !step_ || std::chrono::steady_clock::now() < deadline_) continue;
    const auto step = *std::exchange(step_, std::nullopt);
    const double limit = limit_;
    lock.unlock();
    on_hang_(step, limit);
    lock.lock();
  }
}

}  // namespace topotune::measure
