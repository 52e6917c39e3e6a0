#include "cli/log_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "host/fd.h"

namespace topotune::cli {

namespace {

// Both ends of what the job writes to.
struct Ends {
  host::Fd ours, jobs;
};

// A terminal when ours is one, so that the job prints as it would without us; else a pipe.
Ends make_ends(bool terminal) {
  if (terminal) {
    host::Fd ours(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    std::array<char, 128> name{};
    if (ours.get() >= 0 && ::grantpt(ours.get()) == 0 && ::unlockpt(ours.get()) == 0 &&
        ::ptsname_r(ours.get(), name.data(), name.size()) == 0) {
      host::Fd jobs(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
      struct termios mode {};
      if (jobs.get() >= 0 && ::tcgetattr(jobs.get(), &mode) == 0) {
        mode.c_oflag &= ~static_cast<tcflag_t>(OPOST);  // line ends stay as the job writes them
        ::tcsetattr(jobs.get(), TCSANOW, &mode);
        struct winsize size {};
        if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) ::ioctl(jobs.get(), TIOCSWINSZ, &size);
        return {std::move(ours), std::move(jobs)};
      }
    }
  }
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  return {host::Fd(ends[0]), host::Fd(ends[1])};
}

[[noreturn]] void become(const RunJob& job, const std::vector<Variable>& debug) {
  for (const auto& name : job.unset) ::unsetenv(name.c_str());
  for (const auto* list : {&debug, &job.set})
    for (const auto& v : *list) ::setenv(v.name.c_str(), v.value.c_str(), 1);
  std::vector<char*> argv;
  for (const auto& word : job.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execvp(argv[0], argv.data());
  const int code = errno;
  fmt::print(stderr, "topotune: {}: cannot start: {}\n", printable(job.command[0]), std::strerror(code));
  ::_exit(code == ENOENT ? 127 : 126);
}

// Copies what can be read now. False: the job closed its end.
bool copy_some(int from, std::FILE* to, std::FILE* kept) {
  std::array<char, 1U << 16U> block;
  const auto got = ::read(from, block.data(), block.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  const auto size = static_cast<std::size_t>(got);
  std::fwrite(block.data(), 1, size, to);
  std::fflush(to);
  if (kept != nullptr) std::fwrite(block.data(), 1, size, kept);
  return got > 0;
}

bool readable(int fd, int milliseconds) {
  struct pollfd one {
    fd, POLLIN, 0
  };
  return ::poll(&one, 1, milliseconds) > 0;
}

// Until the job has ended and what it wrote is read; a process that it left behind is not waited for.
int follow_job(pid_t child, int from, std::FILE* to, std::FILE* kept) {
  bool open = from >= 0;
  int status = 0;
  while (open) {
    if (readable(from, 200)) {
      open = copy_some(from, to, kept);
    } else if (::waitpid(child, &status, WNOHANG) == child) {
      while (readable(from, 0) && copy_some(from, to, kept)) {
      }
      return status;
    }
  }
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::vector<Variable> debug_variables(const ScratchFolder& folder) {
  std::vector<Variable> list{{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", folder.path() + "/nccl.%h.%p.log"}};
  if (std::getenv("NCCL_DEBUG_SUBSYS") == nullptr)
    list.push_back({"NCCL_DEBUG_SUBSYS", "INIT,ENV,NET,GRAPH,TUNING,P2P,SHM,NVLS,COLL,BOOTSTRAP"});
  return list;
}

}  // namespace

Result<RunResult> run_job(const RunJob& job, const ScratchFolder& folder) {
  auto* const to = job.to_stderr ? stderr : stdout;
  std::fflush(to);
  auto ends = make_ends(::isatty(::fileno(to)) != 0);
  const auto start = std::chrono::steady_clock::now();
  const auto child = ::fork();
  if (child < 0)
    return tl::unexpected(
        Error{Errc::io, fmt::format("cannot start a process: {}", std::strerror(errno)), {}, {}, {}, ""});
  if (child == 0) {
    if (ends.jobs.get() >= 0) ::dup2(ends.jobs.get(), STDOUT_FILENO);
    become(job, debug_variables(folder));
  }
  ::signal(SIGINT, SIG_IGN);  // the job gets it too and decides
  ends.jobs.reset();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> kept(
      std::fopen((folder.path() + "/stdout").c_str(), "wb"),
      [](std::FILE* f) { return f == nullptr ? 0 : std::fclose(f); });
  const int status = follow_job(child, ends.ours.get(), to, kept.get());
  ::signal(SIGINT, SIG_DFL);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return RunResult{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), took.count()};
}

namespace {

// What turns a switch back: "0" for NCCL_X_DISABLE, "1" for NCCL_X_ENABLE; "" when nothing does.
std::string_view opposite(std::string_view name) {
  if (name.ends_with("_DISABLE")) return "0";
  if (name.ends_with("_ENABLE")) return "1";
  return "";
}

}  // namespace

RunJob without(const RunJob& job, const std::vector<std::string>& names) {
  RunJob made = job;
  for (const auto& name : names) {
    made.unset.push_back(name);
    bool in_command = false;
    for (std::size_t i = 0; i < made.command.size();) {
      if (!made.command[i].starts_with(name + "=")) {
        ++i;
        continue;
      }
      in_command = true;
      const bool option = i > 0 && (made.command[i - 1] == "-x" || made.command[i - 1] == "--env");
      const auto first = made.command.begin() + static_cast<std::ptrdiff_t>(i) - (option ? 1 : 0);
      made.command.erase(first, first + (option ? 2 : 1));
      i -= option ? 1 : 0;
    }
    const bool ours = std::getenv(name.c_str()) != nullptr;
    if (const auto other = opposite(name); !in_command && !ours && !other.empty())
      made.set.push_back({name, std::string(other)});
  }
  return made;
}

}  // namespace topotune::cli
