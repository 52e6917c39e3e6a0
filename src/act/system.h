#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::act {

// A file as undo must put it back.
struct FileState {
  std::string bytes;
  unsigned mode = 0644;
  unsigned uid = 0, gid = 0;
};

// The only code that changes a machine. Paths are absolute; below `root` (a folder that stands for "/") they
// cannot leave it. Errors are exact: "/proc/sys/kernel/numa_balancing: Read-only file system".
class System {
 public:
  explicit System(std::string root = "") : root_(std::move(root)) {}
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  const std::string& root() const { return root_; }
  bool exists(const std::string& path) const;
  Result<std::string> read(const std::string& path) const;
  // Nothing: there is no such file. Only regular files.
  Result<std::optional<FileState>> file(const std::string& path) const;
  // What would fail before anything is written: 0 bytes change.
  Result<bool> can_write(const std::string& path) const;
  Result<bool> can_create(const std::string& path) const;

  Result<bool> write_value(const std::string& path,
                           std::string_view value);  // one write(2), for /proc and /sys
  Result<bool> replace_file(const std::string& path, const FileState& state);  // whole or not at all, on disk
  Result<bool> remove_file(const std::string& path);                           // absent already: good
  Result<std::vector<std::string>> make_folders(
      const std::string& path);                         // those that were made, outermost first
  Result<bool> remove_folder(const std::string& path);  // only when empty
  Result<bool> write_word(const std::string& path, std::size_t offset, std::uint16_t value);
  Result<bool> run(const std::vector<std::string>& command);  // refused below a root
  // Folders above `path` that do not exist, outermost first.
  std::vector<std::string> missing_folders(const std::string& path) const;

  std::string real(const std::string& path) const;  // on this machine

 protected:
  // Called before and after every system call that changes something: where tests let the process die.
  virtual void point() {}
  friend class Journal;

 private:
  std::string root_;
};

inline constexpr const char* kUnfinished = ".topotune-new";  // the name that a file has until it is whole

}  // namespace topotune::act
