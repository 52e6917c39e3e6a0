#include "cli/remote.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/text.h"
#include "base/words.h"
#include "cli/bench_frame.h"
#include "host/fd.h"
#include "host/modules.h"
#include "launch/exchange.h"
#include "peers/tcp.h"

namespace topotune::cli {

namespace {

std::string program() {
  const auto file = host::program_file();
  return file.empty() ? "topotune" : file;
}

bool is_here(const std::string& host) {
  return host == "localhost" || host == "127.0.0.1" || host == peers::host_name();
}

std::string agent_of(const Remote& remote) {
  if (!remote.agent.empty()) return remote.agent;
  const char* chosen = std::getenv("TOPOTUNE_RSH");
  return chosen == nullptr || *chosen == '\0' ? "ssh" : chosen;
}

// A port that is free here is likely to be free there.
int some_port() {
  const auto listener = peers::listen_anywhere();
  if (!listener) return 20000 + ::getpid() % 10000;
  ::close(listener->fd);
  return listener->port;
}

std::vector<std::string> command_for(const Remote& remote, std::size_t rank, const std::string& address) {
  std::vector<std::string> command{program()};
  command.insert(command.end(), remote.words.begin(), remote.words.end());
  for (const auto& word : {std::string("--rank"), std::to_string(rank), std::string("--ranks"),
                           std::to_string(remote.hosts.size()), std::string("--rendezvous"), address})
    command.push_back(word);
  const auto& host = remote.hosts[rank];
  if (is_here(host)) return command;
  std::string line;
  for (const auto& word : command) line += (line.empty() ? "" : " ") + single_quoted(word);
  std::vector<std::string> out;
  const auto agent = agent_of(remote);
  for (const auto word : split(agent, ' '))
    if (!word.empty()) out.emplace_back(word);
  out.push_back(host);
  out.push_back(line);
  return out;
}

// In a process group of its own; standard output into `out` (below 0: thrown away).
pid_t start(const std::vector<std::string>& command, int out) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::setpgid(0, 0);
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDIN_FILENO);
  ::dup2(out >= 0 ? out : null, STDOUT_FILENO);
  std::vector<char*> words;
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  fmt::print(stderr, "topotune: cannot start {}: {}\n", command.front(), std::strerror(errno));
  ::_exit(127);
}

// All that rank 0 writes. An interrupt of this process is passed on: what was measured is still written.
std::string read_all(int fd, const std::vector<pid_t>& pids) {
  std::string out;
  char block[65536];
  pollfd ready{fd, POLLIN, 0};
  for (bool asked = false;;) {
    if (interrupted() && !asked) {
      for (const auto pid : pids) ::kill(-pid, SIGTERM);
      asked = true;
    }
    const int count = ::poll(&ready, 1, 100);
    if (count == 0 || (count < 0 && errno == EINTR)) continue;
    const auto got = count < 0 ? -1 : ::read(fd, block, sizeof block);
    if (got <= 0) return out;
    out.append(block, static_cast<std::size_t>(got));
  }
}

void end_all(std::vector<pid_t>& pids, double limit_seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_seconds);
  while (!pids.empty()) {
    std::erase_if(pids, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
    if (std::chrono::steady_clock::now() > end) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (const auto pid : pids) ::kill(-pid, SIGKILL);
  for (const auto pid : pids) ::waitpid(pid, nullptr, 0);
}

}  // namespace

Result<RemoteDone> run_on_hosts(const Remote& remote) {
  const auto& first = remote.hosts.front();
  const auto address = fmt::format("{}:{}", is_here(first) ? launch::reachable_names() : first, some_port());
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(Errc::io, "pipe: {}", std::strerror(errno));
  std::vector<pid_t> others;
  const pid_t root = start(command_for(remote, 0, address), ends[1]);
  ::close(ends[1]);
  for (std::size_t rank = 1; rank < remote.hosts.size() && root > 0; ++rank) {
    const pid_t pid = start(command_for(remote, rank, address), -1);
    if (pid > 0) others.push_back(pid);
  }
  RemoteDone done;
  auto all = others;
  if (root > 0) all.push_back(root), done.text = read_all(ends[0], all);
  ::close(ends[0]);
  int status = 0;
  if (root <= 0 || ::waitpid(root, &status, 0) != root)
    return fail(Errc::io, "fork: {}", std::strerror(errno));
  done.status = WIFEXITED(status) ? WEXITSTATUS(status) : 2;
  end_all(others, std::min(remote.limit_seconds, 5.0));
  return done;
}

std::vector<std::string> own_words(const std::vector<std::string>& leave_out) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<std::string> out;
  auto left = leave_out;
  const auto words = split(text, '\0');
  for (std::size_t i = 1; i + 1 < words.size() || (i < words.size() && !words[i].empty()); ++i) {
    const std::string word(words[i]);
    if (word == "-o" || word == "--output") {
      ++i;
      continue;
    }
    if (word.starts_with("--output=") || (word.starts_with("-o") && word.size() > 2 && word[1] == 'o'))
      continue;
    const auto found = std::ranges::find(left, word);
    if (found != left.end()) {
      left.erase(found);
      continue;
    }
    out.push_back(word);
  }
  return out;
}

}  // namespace topotune::cli
