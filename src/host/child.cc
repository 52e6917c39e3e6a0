#include "host/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <thread>

#include "host/files.h"
#include "host/host.h"

namespace topotune::host {

namespace {

constexpr Milliseconds kPatience{500};
constexpr std::size_t kMaxMessage = 2 * Host::kMaxRead;

void close_from(unsigned first) {
  if (::syscall(SYS_close_range, first, ~0U, 0U) == 0) return;
  const long limit = std::min(::sysconf(_SC_OPEN_MAX), 65536L);  // kernels before 5.9
  for (int fd = static_cast<int>(first); fd < limit; ++fd) ::close(fd);
}

// Waits until `fd` can be read. False: the deadline came first.
bool readable(int fd, const Deadline& deadline) {
  pollfd entry{fd, POLLIN, 0};
  for (;;) {
    const int count = ::poll(&entry, 1, deadline.left_ms());
    if (count >= 0 || errno != EINTR) return count != 0;
  }
}

Result<std::string> receive(int fd, std::size_t size, const Deadline& deadline) {
  std::string out;
  std::array<char, 65536> buffer;
  while (out.size() < size) {
    if (!readable(fd, deadline)) return fail(Errc::timed_out, "timed out");
    const ssize_t count = ::read(fd, buffer.data(), std::min(buffer.size(), size - out.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail(Errc::io, "no answer");
    out.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return out;
}

std::string death(std::optional<int> status) {
  if (status && WIFSIGNALED(*status)) return fmt::format("ended by signal {}", WTERMSIG(*status));
  return "ended without an answer";
}

Result<std::string> guarded(const std::function<Result<std::string>()>& work) {
  try {
    return work();
  } catch (const std::exception& e) {
    return fail(Errc::io, "{}", e.what());
  }
}

}  // namespace

int Deadline::left_ms() const {
  const auto left = std::chrono::ceil<Milliseconds>(end_ - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 3'600'000));
}

void become_helper(int fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, SIG_DFL);
  const int kept = ::fcntl(fd, F_DUPFD, kHelperFd + 1);  // out of the way of 0 to 3
  const int null = ::open("/dev/null", O_RDWR);
  for (const int number : {0, 1, 2}) ::dup2(null, number);
  ::dup2(kept, kHelperFd);
  close_from(kHelperFd + 1);
}

std::optional<int> await_end(pid_t pid, Milliseconds patience) {
  const Deadline deadline(patience);
  for (Milliseconds pause{0};; pause = std::min(pause + Milliseconds(1), Milliseconds(10))) {
    int status = 0;
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) return status;
    if ((ended < 0 && errno != EINTR) || deadline.left_ms() == 0) return std::nullopt;
    std::this_thread::sleep_for(pause);
  }
}

std::optional<int> dismiss(pid_t pid) {
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);  // before it had its own group
  return await_end(pid, kPatience);
}

bool send_message(int fd, std::string_view bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::string message(sizeof size, '\0');
  std::memcpy(message.data(), &size, sizeof size);
  message += bytes;
  for (std::string_view rest = message; !rest.empty();) {
    const ssize_t count = ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

Result<std::string> receive_message(int fd, const Deadline& deadline) {
  const auto head = receive(fd, sizeof(std::uint32_t), deadline);
  if (!head) return head;
  std::uint32_t size = 0;
  std::memcpy(&size, head->data(), sizeof size);
  if (size > kMaxMessage) return fail(Errc::io, "message of {} bytes", size);
  return receive(fd, size, deadline);
}

// A byte 0 and the text, or 1 + the error's code, its text, a NUL and its hint.
std::string pack(const Result<std::string>& answer) {
  if (answer) return std::string(1, '\0') + *answer;
  std::string out(1, static_cast<char>(1 + static_cast<int>(answer.error().code)));
  return out + answer.error().text.c_str() + '\0' + answer.error().hint;
}

Result<std::string> unpack(std::string_view bytes) {
  if (bytes.empty()) return fail(Errc::io, "no answer");
  const int code = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  if (code == 0) return std::string(bytes);
  const auto nul = std::min(bytes.find('\0'), bytes.size());
  const auto hint = bytes.substr(std::min(nul + 1, bytes.size()));
  return tl::unexpected(
      Error{static_cast<Errc>(code - 1), std::string(bytes.substr(0, nul)), {}, {}, {}, std::string(hint)});
}

Result<std::string> in_child(const std::function<Result<std::string>()>& work, Milliseconds limit,
                             std::string_view shown) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return tl::unexpected(error_of(errno, shown));
  Fd ours(ends[0]), theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return tl::unexpected(error_of(errno, shown));
  if (pid == 0) {
    become_helper(theirs.get());
    send_message(kHelperFd, pack(guarded(work)));
    ::_exit(0);
  }
  theirs.reset();
  const auto message = receive_message(ours.get(), Deadline(limit));
  if (message) {
    if (!await_end(pid, kPatience)) dismiss(pid);
    return unpack(*message);
  }
  if (message.error().code == Errc::timed_out) {
    dismiss(pid);
    return fail(Errc::timed_out, "{}: no answer within {} s", shown,
                static_cast<double>(limit.count()) / 1000);
  }
  auto status = await_end(pid, kPatience);
  if (!status) status = dismiss(pid);
  return fail(Errc::io, "{}: {}", shown, death(status));
}

}  // namespace topotune::host
