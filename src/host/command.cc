#include "host/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "base/text.h"
#include "host/files.h"
#include "host/host.h"

namespace topotune::host {

namespace {

constexpr std::size_t kMaxStderr = 64 << 10;

struct Pipe {
  Fd read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  return {Fd(ends[0]), Fd(ends[1])};
}

// The environment with LC_ALL=C, as execvpe takes it.
std::vector<std::string> environment() {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("LC_ALL=")) out.emplace_back(text);
  }
  out.emplace_back("LC_ALL=C");
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// In the child; only calls that are allowed after fork.
[[noreturn]] void execute(char* const* argv, char* const* env, int out, int err, int failed) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(number, SIG_DFL);
  ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execvpe(argv[0], argv, env);
  const int number = errno;
  if (::write(failed, &number, sizeof number) != sizeof number) ::_exit(126);
  ::_exit(127);
}

// What comes out of the two pipes. False at the deadline.
struct Output {
  std::string text, errors;
  bool timed_out = false, too_large = false;
};

// Appends what is there; closes the pipe at its end. `limit` bytes are kept, one more is looked at.
void take(Fd& pipe, std::string& out, std::size_t limit) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(pipe.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) return pipe.reset();
  if (out.size() <= limit) out.append(buffer.data(), static_cast<std::size_t>(count));
}

Output collect(Fd& out, Fd& err, const Deadline& deadline) {
  Output got;
  while (out.good() || err.good()) {
    std::array<pollfd, 2> entries{pollfd{out.get(), POLLIN, 0}, pollfd{err.get(), POLLIN, 0}};
    const int ready = ::poll(entries.data(), entries.size(), deadline.left_ms());
    if (ready == 0) got.timed_out = true;
    if (ready == 0 || (ready < 0 && errno != EINTR)) return got;
    if (ready < 0) continue;
    if (entries[0].revents != 0) take(out, got.text, Host::kMaxRead);
    if (entries[1].revents != 0) take(err, got.errors, kMaxStderr);
    got.too_large = got.text.size() > Host::kMaxRead;
    if (got.too_large) return got;
  }
  return got;
}

// The errno of an exec that failed; 0 when it worked, or has not come back yet (a program on a file system
// that hangs).
int exec_error(int fd, const Deadline& deadline) {
  pollfd entry{fd, POLLIN, 0};
  while (::poll(&entry, 1, deadline.left_ms()) < 0 && errno == EINTR) {
  }
  int number = 0;
  const bool told = entry.revents != 0 && ::read(fd, &number, sizeof number) == sizeof number;
  return told ? number : 0;
}

std::string first_line(std::string_view text) {
  for (const auto line : lines(text)) {
    if (!trim(line).empty()) return printable(trim(line));
  }
  return {};
}

Result<std::string> outcome(Output&& got, int status, const std::string& program) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::move(got.text);
  const auto said = first_line(got.errors);
  const auto how = WIFSIGNALED(status) ? fmt::format("ended by signal {}", WTERMSIG(status))
                                       : fmt::format("status {}", WEXITSTATUS(status));
  return fail(Errc::io, "{}: {}{}{}", program, how, said.empty() ? "" : ": ", said);
}

}  // namespace

Result<std::string> run_command(std::span<const std::string> argv, Milliseconds limit) {
  if (argv.empty() || argv.front().empty()) return fail(Errc::usage, "no program named");
  std::vector<std::string> arguments(argv.begin(), argv.end()), settings = environment();
  const auto arguments_c = pointers(arguments);
  const auto settings_c = pointers(settings);
  Pipe out = make_pipe(), err = make_pipe(), failed = make_pipe();
  if (!out.read.good() || !err.read.good() || !failed.read.good())
    return tl::unexpected(error_of(errno, argv.front()));
  const Deadline deadline(limit);
  const pid_t pid = ::fork();
  if (pid < 0) return tl::unexpected(error_of(errno, argv.front()));
  if (pid == 0)
    execute(arguments_c.data(), settings_c.data(), out.write.get(), err.write.get(), failed.write.get());
  for (auto* pipe : {&out, &err, &failed}) pipe->write.reset();
  if (const int number = exec_error(failed.read.get(), deadline); number != 0) {
    await_end(pid, Milliseconds(500));
    if (number == ENOENT) return fail(Errc::not_found, "{}: not found on PATH", argv.front());
    return tl::unexpected(error_of(number, argv.front()));
  }
  auto got = collect(out.read, err.read, deadline);
  std::optional<int> status;
  if (!got.timed_out && !got.too_large) status = await_end(pid, Milliseconds(deadline.left_ms()));
  if (status) return outcome(std::move(got), *status, argv.front());
  dismiss(pid);
  if (got.too_large)
    return fail(Errc::too_large, "{}: output of more than {} bytes", argv.front(), Host::kMaxRead);
  return fail(Errc::timed_out, "{}: not done within {} s", argv.front(),
              static_cast<double>(limit.count()) / 1000);
}

}  // namespace topotune::host
