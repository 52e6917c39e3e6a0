#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::host {

// The only way to see a machine. Every method is const and changes nothing (rule 2).
// Errors: not_found, denied, unsupported, timed_out, io; `not_captured` from recordings only.
class Host {
 public:
  Host() = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  virtual ~Host() = default;

  // The whole text of a file (at most kMaxRead bytes; longer: too_large). Paths are absolute, "/sys/...".
  virtual Result<std::string> read(std::string_view path) const = 0;
  // Names in a folder, sorted, without "." and "..".
  virtual Result<std::vector<std::string>> list(std::string_view path) const = 0;
  // The text of a symbolic link, as readlink(2) gives it (relative links stay relative).
  virtual Result<std::string> link(std::string_view path) const = 0;
  // Standard output of a program, found on PATH, without a shell; a time limit ends it (timed_out).
  // A status other than 0 is an error with the program's first line of stderr.
  virtual Result<std::string> run(std::span<const std::string> argv) const = 0;
  // A question that no file answers, as text (docs/formats/capture.md lists the probes): "nvml", "hwloc", "statvfs
  // /dev/shm", ...
  virtual Result<std::string> probe(std::string_view name) const = 0;

  static constexpr std::size_t kMaxRead = 16 << 20;
};

}  // namespace topotune::host
