#pragma once

#include <sys/types.h>

#include <mutex>
#include <set>
#include <string>

#include "host/capture.h"
#include "host/child.h"

namespace topotune::host {

// Reads files, folders and links of this machine (answers as in a capture).
Answer answer_here(Call call, const std::string& path, std::string_view shown);

// The same through a child process that stays: a driver that never comes back costs one answer (timed_out),
// not the program. The folder of such a file is not asked again, and after kMaxHung of them nothing is. Safe
// to use from several threads, which wait for one another.
class Reader {
 public:
  explicit Reader(Milliseconds limit) : limit_(limit) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();

  Answer ask(Call call, const std::string& path);

  static constexpr int kMaxHung = 16;

 private:
  Answer ask_child(Call call, const std::string& path);
  bool start();  // false: no process can be made
  void stop();
  bool hung_below(const std::string& path) const;

  Milliseconds limit_;
  std::mutex mutex_;
  pid_t pid_ = -1;
  Fd socket_;
  std::set<std::string> hung_;  // folders
};

}  // namespace topotune::host
