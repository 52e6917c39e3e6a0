#include "cli/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace topotune::cli {

namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

// The name of the unfinished file, for the signal handler; empty: none.
std::array<char, 4096> unfinished{};

void remove_unfinished(int number) {
  if (unfinished[0] != '\0') ::unlink(unfinished.data());
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// While it lives, signals remove the unfinished file before they end the program.
class Guard {
 public:
  Guard() {
    for (std::size_t i = 0; i < kSignals.size(); ++i)
      before_[i] = std::signal(kSignals[i], remove_unfinished);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() {
    if (unfinished[0] != '\0') ::unlink(unfinished.data());
    unfinished[0] = '\0';
    for (std::size_t i = 0; i < kSignals.size(); ++i) std::signal(kSignals[i], before_[i]);
  }

 private:
  std::array<void (*)(int), kSignals.size()> before_{};
};

tl::unexpected<Error> failed(const std::string& path, int number) {
  auto error = fail(Errc::io, "cannot write {}: {}", path, std::strerror(number));
  error.value().hint = "is the disk full, or the folder missing?";
  return error;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

Result<bool> write_directly(const std::string& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return failed(path, errno);
  const int number = write_all(fd, bytes) ? 0 : errno;
  if (::close(fd) != 0 || number != 0) return failed(path, number == 0 ? errno : number);
  return true;
}

// The permissions that a new file would have got.
mode_t usual_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

// What a link names, also where nothing is there yet.
std::string linked(const std::string& path) {
  std::error_code error;
  auto out = std::filesystem::path(path);
  for (int i = 0; i < 40 && std::filesystem::is_symlink(out, error); ++i)
    out = out.parent_path() / std::filesystem::read_symlink(out, error);
  return out.string();
}

// 0, or the errno of the step that failed.
int write_beside(const std::string& path, std::string_view bytes) {
  const int fd = ::mkostemp(unfinished.data(), O_CLOEXEC);
  if (fd < 0) {
    unfinished[0] = '\0';
    return errno;
  }
  const bool written = write_all(fd, bytes) && ::fchmod(fd, usual_mode()) == 0 && ::fsync(fd) == 0;
  const int number = written ? 0 : errno;
  if (::close(fd) != 0 || number != 0) return number == 0 ? errno : number;
  if (::rename(unfinished.data(), path.c_str()) != 0) return errno;
  unfinished[0] = '\0';
  return 0;
}

}  // namespace

Result<bool> can_write_file(const std::string& name) {
  const auto path = linked(name);
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return failed(name, EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    if (::access(path.c_str(), W_OK) != 0) return failed(name, errno);
    return true;
  }
  std::string beside = path + ".XXXXXX";
  const int fd = ::mkostemp(beside.data(), O_CLOEXEC);
  if (fd < 0) return failed(name, errno);
  ::close(fd);
  ::unlink(beside.c_str());
  return true;
}

Result<bool> write_whole_file(const std::string& name, std::string_view bytes) {
  const auto path = linked(name);
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return failed(path, EISDIR);
  if (exists && !S_ISREG(status.st_mode)) return write_directly(path, bytes);
  const std::string beside = path + ".XXXXXX";
  if (beside.size() >= unfinished.size()) return failed(path, ENAMETOOLONG);
  const Guard guard;
  std::memcpy(unfinished.data(), beside.c_str(), beside.size() + 1);
  const int number = write_beside(path, bytes);
  if (number != 0) return failed(path, number);
  return true;
}

Result<bool> replace_file(const std::string& path, std::string_view bytes) {
  const std::string beside = path + ".new";
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) {
    auto error = failed(path, errno);
    error.value().code = Errc::unsupported;
    return error;
  }
  int number = write_all(fd, bytes) ? 0 : errno;
  if (::close(fd) != 0 && number == 0) number = errno;
  if (number == 0 && ::rename(beside.c_str(), path.c_str()) != 0) number = errno;
  if (number == 0) return true;
  ::unlink(beside.c_str());
  return failed(path, number);
}

}  // namespace topotune::cli
