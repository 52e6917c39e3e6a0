#pragma once

#include <string>

#include "base/result.h"

namespace topotune::host {

// A library opened at run time. It stays loaded until the process ends: drivers' libraries start threads.
class SharedLibrary {
 public:
  // not_found when the loader finds no such file; unsupported when it found one that cannot be loaded.
  static Result<SharedLibrary> open(const char* name);
  void* symbol(const char* name) const;  // null: not in this library

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace topotune::host
