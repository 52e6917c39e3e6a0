#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "host/fd.h"

namespace topotune::host {

using Milliseconds = std::chrono::milliseconds;

class Deadline {
 public:
  explicit Deadline(Milliseconds limit) : end_(std::chrono::steady_clock::now() + limit) {}
  int left_ms() const;  // for poll(2); 0 when it is over

 private:
  std::chrono::steady_clock::time_point end_;
};

// A child process that hangs in the kernel cannot be killed, only left alone. It must then hold nothing of
// ours: helpers have their own process group, no terminal, no file of the parent but one, and end with the
// parent.

// In the child after fork: keeps `fd` alone, as number kHelperFd; 0, 1 and 2 become /dev/null.
void become_helper(int fd);
constexpr int kHelperFd = 3;

// Kills the helper's group, waits a moment for its end and gives up then. The wait status where it ended.
std::optional<int> dismiss(pid_t pid);
// As dismiss, for a child that is ending by itself.
std::optional<int> await_end(pid_t pid, Milliseconds patience);

// An answer as one length-prefixed message on a pipe or socket.
bool send_message(int fd, std::string_view bytes);
// Errors: timed_out at the deadline, io at the end of the stream or for a message over 2 x Host::kMaxRead.
// Without text.
Result<std::string> receive_message(int fd, const Deadline& deadline);
std::string pack(const Result<std::string>& answer);
Result<std::string> unpack(std::string_view bytes);

// The result of `work`, done in a child process so that a crash or an endless wait stays there. `shown`
// begins the text of errors: timed_out after `limit`, io when the child died.
Result<std::string> in_child(const std::function<Result<std::string>()>& work, Milliseconds limit,
                             std::string_view shown);

}  // namespace topotune::host
