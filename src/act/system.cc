#include "act/system.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "host/fd.h"
#include "host/files.h"

extern char** environ;

namespace topotune::act {

namespace {

tl::unexpected<Error> failed(const std::string& path, int number) {
  return tl::unexpected(host::error_of(number, path));
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

// 0, or the errno.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

int sync_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int number = ::fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
  ::close(fd);
  return number;
}

}  // namespace

// Below a root every symbolic link is resolved inside it; links in a circle lead nowhere.
std::string System::real(const std::string& path) const {
  if (root_.empty()) return path;
  const auto inside = host::resolve(root_, path, false);
  return inside ? *inside : root_ + "/.unreachable/" + kUnfinished;
}

bool System::exists(const std::string& path) const {
  struct stat status {};
  return ::lstat(real(path).c_str(), &status) == 0;
}

Result<std::string> System::read(const std::string& path) const { return host::read_file(real(path), path); }

Result<std::optional<FileState>> System::file(const std::string& path) const {
  struct stat status {};
  const auto at = real(path);
  if (::lstat(at.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<FileState>();
    return failed(path, errno);
  }
  if (!S_ISREG(status.st_mode)) return fail(Errc::unsupported, "{}: not a regular file", path);
  auto bytes = host::read_file(at, path);
  if (!bytes) return tl::unexpected(bytes.error());
  return std::optional<FileState>(
      FileState{std::move(*bytes), status.st_mode & 07777U, status.st_uid, status.st_gid});
}

// Opening for writing shows missing rights and read-only file systems; nothing is written.
Result<bool> System::can_write(const std::string& path) const {
  const host::Fd fd(::open(real(path).c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) return failed(path, errno);
  return true;
}

Result<bool> System::can_create(const std::string& path) const {
  auto folder = parent_of(path);
  while (!exists(folder) && folder != "/") folder = parent_of(folder);
  if (::faccessat(AT_FDCWD, real(folder).c_str(), W_OK | X_OK, AT_EACCESS) != 0) return failed(folder, errno);
  return true;
}

Result<bool> System::write_value(const std::string& path, std::string_view value) {
  point();
  const host::Fd fd(::open(real(path).c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (fd.get() < 0) return failed(path, errno);
  point();
  const std::string text = std::string(value) + "\n";
  ssize_t count = 0;
  do count = ::write(fd.get(), text.data(), text.size());
  while (count < 0 && errno == EINTR);
  const int number = errno;
  point();
  if (count != static_cast<ssize_t>(text.size())) return failed(path, count < 0 ? number : EIO);
  return true;
}

Result<bool> System::replace_file(const std::string& path, const FileState& state) {
  const auto at = real(path), beside = at + kUnfinished;
  point();
  ::unlink(beside.c_str());
  int number = 0;
  {
    const host::Fd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fd.get() < 0) return failed(path, errno);
    point();
    number = write_all(fd.get(), state.bytes);
    point();
    if (number == 0 && ::fchown(fd.get(), state.uid, state.gid) != 0 && errno != EPERM) number = errno;
    if (number == 0 && ::fchmod(fd.get(), state.mode) != 0) number = errno;
    if (number == 0 && ::fsync(fd.get()) != 0) number = errno;
  }
  point();
  if (number == 0 && ::rename(beside.c_str(), at.c_str()) != 0) number = errno;
  point();
  if (number == 0) number = sync_folder(parent_of(at));
  if (number != 0) {
    ::unlink(beside.c_str());
    return failed(path, number);
  }
  return true;
}

Result<bool> System::remove_file(const std::string& path) {
  point();
  if (::unlink(real(path).c_str()) != 0 && errno != ENOENT && errno != ENOTDIR) return failed(path, errno);
  point();
  return true;
}

std::vector<std::string> System::missing_folders(const std::string& path) const {
  std::vector<std::string> out;
  for (auto folder = parent_of(path); folder != "/" && !exists(folder); folder = parent_of(folder))
    out.insert(out.begin(), folder);
  return out;
}

Result<std::vector<std::string>> System::make_folders(const std::string& path) {
  auto missing = missing_folders(path);
  for (const auto& folder : missing) {
    point();
    if (::mkdir(real(folder).c_str(), 0755) != 0 && errno != EEXIST) return failed(folder, errno);
    point();
  }
  return missing;
}

Result<bool> System::remove_folder(const std::string& path) {
  point();
  if (::rmdir(real(path).c_str()) != 0 && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
    return failed(path, errno);
  point();
  return true;
}

Result<bool> System::write_word(const std::string& path, std::size_t offset, std::uint16_t value) {
  const host::Fd fd(::open(real(path).c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.get() < 0) return failed(path, errno);
  const std::array<unsigned char, 2> bytes{static_cast<unsigned char>(value & 0xffU),
                                           static_cast<unsigned char>(value >> 8)};
  point();
  if (::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)) != 2)
    return failed(path, errno);
  point();
  return true;
}

Result<bool> System::run(const std::vector<std::string>& command) {
  if (!root_.empty())
    return fail(Errc::unsupported, "{}: no command is run for a machine below a folder",
                fmt::join(command, " "));
  std::vector<std::string> copy = command;
  std::vector<char*> words;
  for (auto& word : copy) words.push_back(word.data());
  words.push_back(nullptr);
  point();
  pid_t pid = -1;
  if (const int number = ::posix_spawnp(&pid, words[0], nullptr, nullptr, words.data(), environ); number != 0)
    return failed(command[0], number);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  point();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  return fail(Errc::io, "{}: ended with status {}", fmt::join(command, " "),
              WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace topotune::act
