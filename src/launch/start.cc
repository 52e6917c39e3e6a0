#include "launch/start.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace topotune::launch {

namespace {

constexpr std::array kPassedOn{SIGINT, SIGTERM, SIGHUP};
constexpr auto kPatience = std::chrono::seconds(10);

sigset_t waited_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int number : kPassedOn) sigaddset(&set, number);
  return set;
}

int status_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

// The children that live, and the first bad status.
class Children {
 public:
  void add(pid_t pid) { pids_.push_back(pid); }
  bool any() const { return !pids_.empty(); }
  int result() const { return result_; }
  void signal(int number) const {
    for (const pid_t pid : pids_) ::kill(pid, number);
  }
  // Takes those that ended. True when one of them ended badly.
  bool collect() {
    bool bad = false;
    for (std::size_t i = 0; i < pids_.size();) {
      int status = 0;
      if (::waitpid(pids_[i], &status, WNOHANG) != pids_[i]) {
        ++i;
        continue;
      }
      pids_.erase(pids_.begin() + static_cast<std::ptrdiff_t>(i));
      if (status_of(status) == 0) continue;
      bad = true;
      if (result_ == 0) result_ = status_of(status);
    }
    return bad;
  }

 private:
  std::vector<pid_t> pids_;
  int result_ = 0;
};

// Until all have ended. The signals of `waited` are blocked.
void wait_for(Children& children, const sigset_t& waited) {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  while (children.any()) {
    const timespec pause{0, 200'000'000};
    const int number = ::sigtimedwait(&waited, nullptr, &pause);
    if (number > 0 && number != SIGCHLD) children.signal(number);
    if (children.collect() && !deadline) {
      children.signal(SIGTERM);
      deadline = std::chrono::steady_clock::now() + kPatience;
    }
    if (deadline && std::chrono::steady_clock::now() > *deadline) children.signal(SIGKILL);
  }
}

}  // namespace

void apply_to_environment(const std::vector<EnvironmentChange>& changes) {
  for (const auto& change : changes) {
    if (change.value)
      ::setenv(change.name.c_str(), change.value->c_str(), 1);
    else
      ::unsetenv(change.name.c_str());
  }
}

Error replace_by(const std::vector<std::string>& command) {
  std::vector<char*> words;
  std::vector<std::string> copy = command;
  for (auto& word : copy) words.push_back(word.data());
  words.push_back(nullptr);
  std::signal(SIGPIPE, SIG_DFL);  // an ignored signal would stay ignored in the command
  ::execvp(words[0], words.data());
  const int number = errno;
  return Error{number == ENOENT ? Errc::not_found : Errc::denied,
               fmt::format("cannot start {}: {}", command[0], std::strerror(number)),
               {},
               {},
               {},
               {}};
}

int run_children(std::size_t count, const std::function<int(std::size_t)>& start) {
  sigset_t before;
  const auto waited = waited_signals();
  ::sigprocmask(SIG_BLOCK, &waited, &before);
  Children children;
  int failed = 0;
  for (std::size_t i = 0; i < count && failed == 0; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::sigprocmask(SIG_SETMASK, &before, nullptr);
      ::_exit(start(i));
    }
    if (pid > 0)
      children.add(pid);
    else
      failed = errno;
  }
  if (failed != 0) children.signal(SIGTERM);
  wait_for(children, waited);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return failed != 0 ? 3 : children.result();
}

}  // namespace topotune::launch
