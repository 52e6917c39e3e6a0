#pragma once

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

}  // namespace topotune::plugins
