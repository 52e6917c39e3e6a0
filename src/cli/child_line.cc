#include "cli/child_line.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/text.h"
#include "cli/bench_frame.h"
#include "measure/runner.h"

namespace topotune::cli {

namespace {

// The last line that says anything.
std::string last_line(const std::string& text) {
  std::string out;
  for (const auto line : lines(text))
    if (!trim(line).empty()) out = printable(trim(line).substr(0, 300));
  return out;
}

[[noreturn]] void become(const std::string& line, const std::string& output) {
  ::setpgid(0, 0);
  std::signal(SIGINT, SIG_DFL), std::signal(SIGTERM, SIG_DFL);
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const int none = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (file >= 0) ::dup2(file, STDOUT_FILENO), ::dup2(file, STDERR_FILENO);
  if (none >= 0) ::dup2(none, STDIN_FILENO);
  ::execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}

}  // namespace

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

Result<Ended> run_line(const std::string& line, const std::string& output, double limit_seconds) {
  constexpr double kPatience = 2;  // launchers pass the first signal on; results are written then
  const auto child = ::fork();
  if (child < 0) return fail(Errc::io, "fork: {}", std::strerror(errno));
  if (child == 0) become(line, output);
  ::setpgid(child, child);
  double end = measure::monotonic_seconds() + limit_seconds;
  std::optional<Error> why;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const bool late = measure::monotonic_seconds() > end;
    if (why) {
      if (late) ::kill(-child, SIGKILL);
      continue;
    }
    if (!late && !interrupted()) continue;
    why =
        interrupted()
            ? Error{Errc::io, "interrupted", {}, {}, {}, {}}
            : Error{Errc::timed_out, fmt::format("did not end within {:g} s", limit_seconds), {}, {}, {}, {}};
    ::kill(-child, SIGTERM);
    end = measure::monotonic_seconds() + kPatience;
  }
  ::kill(-child, SIGKILL);  // whom it left behind
  if (why) return tl::unexpected(std::move(*why));
  return Ended{WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
               last_line(text_of(output))};
}

}  // namespace topotune::cli
