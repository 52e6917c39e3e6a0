#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace topotune::measure {

// Notices that a step takes longer than it may, and says which. The answer runs on the watchdog's thread,
// once; a step that hangs in a driver cannot be ended from inside, so the answer usually ends the process.
class Watchdog {
 public:
  using OnHang = std::function<void(const std::string& step, double seconds)>;
  explicit Watchdog(OnHang on_hang);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // A step at a time; the next `begin` ends the one before.
  void begin(const std::string& step, double limit_seconds);
  void end();
  // The step has its whole time again, from now on. Wakes no thread.
  void alive();

 private:
  void watch();
  std::chrono::steady_clock::time_point from_now() const;
  OnHang on_hang_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> step_;
  std::chrono::steady_clock::time_point deadline_;
  double limit_ = 0;
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace topotune::measure
