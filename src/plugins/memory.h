#pragma once

#include <sys/resource.h>

#include <cstdlib>
#include <exception>

namespace topotune::plugins {

// Whether there is memory at all. True: this thread can throw from here on. What the C++ runtime keeps of a
// thread's exceptions is made when it is first asked for, and the loader ends the process where it finds no
// memory for that.
inline bool memory_is_there() noexcept {
  void* volatile block = std::malloc(64 << 10);
  if (block == nullptr) return false;
  std::free(block);
  return std::uncaught_exceptions() >= 0;
}

// Whether a file may be so large: the kernel answers one beyond RLIMIT_FSIZE with SIGXFSZ, which ends the
// process.
inline bool may_write(std::size_t bytes) noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur;
}

}  // namespace topotune::plugins
