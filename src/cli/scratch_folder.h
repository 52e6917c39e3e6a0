#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace topotune::cli {

// A folder for files of one run, removed with all that is in it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // The error where none could be made; path() is "" then.
  Result<void> made() const;
  const std::string& path() const { return path_; }
  // Paths of its regular files, sorted.
  std::vector<std::string> files() const;

 private:
  std::string path_;
};

}  // namespace topotune::cli
