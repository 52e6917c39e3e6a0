#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace topotune::host {

// Hands the bytes of a file, pipe or "-" (standard input) to `take`, piece by piece; gzip and zstd,
// recognised by their first bytes, are unpacked on the way. The memory used does not grow with the input. A
// compressed file that is cut gives what can be had and then an error. With `follow`, the end of an
// uncompressed file is waited at until `stop`.
struct StreamOptions {
  bool follow = false;
  std::function<bool()> stop;  // asked while waiting
  std::function<void()> idle;  // called when everything that is there has been read
};
Result<void> read_stream(const std::string& name, const std::function<void(std::string_view)>& take,
                         const StreamOptions& options = {});

}  // namespace topotune::host
