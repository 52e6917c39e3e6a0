#pragma once

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

// Loads a plugin as NCCL does, and stands in for NCCL's log.
namespace loader {

inline std::mutex lines_mutex;
inline std::vector<std::string> lines;

inline void log(int, unsigned long, const char*, int, const char* format, ...) {
  char text[1024];
  std::va_list list;
  va_start(list, format);
  std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  const std::lock_guard hold(lines_mutex);
  lines.emplace_back(text);
}

inline bool said(const std::string& part) {
  const std::lock_guard hold(lines_mutex);
  for (const auto& line : lines)
    if (line.find(part) != std::string::npos) return true;
  return false;
}

// A library of its own for each test: what it read at its first communicator is forgotten with it.
class Library {
 public:
  explicit Library(const char* path) : handle_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error(::dlerror());
    lines.clear();
  }
  ~Library() { ::dlclose(handle_); }
  Library(const Library&) = delete;
  template <class T>
  T* get(const char* name) const {
    void* symbol = ::dlsym(handle_, name);
    if (symbol == nullptr) throw std::runtime_error(std::string(name) + " is not exported");
    return static_cast<T*>(symbol);
  }
  template <class F>
  F function(const char* name) const {
    return reinterpret_cast<F>(::dlsym(handle_, name));
  }

 private:
  void* handle_;
};

class Variables {
 public:
  void set(const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), 1);
    names_.emplace_back(name);
  }
  ~Variables() {
    for (const auto& name : names_) ::unsetenv(name.c_str());
  }

 private:
  std::vector<std::string> names_;
};

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/topotune-plugins.XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { (void)!std::system(("rm -rf " + path).c_str()); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name, std::ios::binary) << text;
    return path + "/" + name;
  }
};

}  // namespace loader
