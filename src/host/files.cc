#include "host/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "host/fd.h"
#include "host/host.h"

namespace topotune::host {

namespace {

constexpr int kMaxLinks = 40;  // as the kernel's MAXSYMLINKS

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

Errc code_of(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return Errc::not_found;
    case EACCES:
    case EPERM:
      return Errc::denied;
    case EINVAL:
    case ENOTSUP:
#if EOPNOTSUPP != ENOTSUP
    case EOPNOTSUPP:
#endif
    case ENODEV:
    case ENXIO:
    case EISDIR:
    case ENOTTY:
    case ENOSYS:
      return Errc::unsupported;
    case ETIMEDOUT:
      return Errc::timed_out;
    case EFBIG:
      return Errc::too_large;
    default:
      return Errc::io;
  }
}

tl::unexpected<Error> failed(int number, std::string_view shown) {
  return tl::unexpected(error_of(number, shown));
}

Result<std::string> read_all(int fd, std::string_view shown) {
  std::string out;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count == 0) return out;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(errno, shown);
    out.append(buffer.data(), static_cast<std::size_t>(count));
    if (out.size() > Host::kMaxRead)
      return fail(Errc::too_large, "{}: longer than {} bytes", shown, Host::kMaxRead);
  }
}

bool is_link(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

// Components still to walk, the next one last.
void push(std::vector<std::string>& todo, std::string_view path) {
  const auto parts = split(path, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!part->empty() && *part != ".") todo.emplace_back(*part);
  }
}

}  // namespace

Error error_of(int number, std::string_view shown) {
  return {code_of(number), fmt::format("{}: {}", shown, std::strerror(number)), {}, {}, {}, {}};
}

Result<std::string> read_file(const std::string& path, std::string_view shown) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return failed(errno, shown);
  if (S_ISDIR(status.st_mode)) return failed(EISDIR, shown);
  if (!S_ISREG(status.st_mode)) return fail(Errc::unsupported, "{}: not a regular file", shown);
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.good()) return failed(errno, shown);
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(Errc::unsupported, "{}: not a regular file", shown);
  }
  return read_all(file.get(), shown);
}

Result<std::vector<std::string>> list_folder(const std::string& path, std::string_view shown) {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
  if (!folder) return failed(errno, shown);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return failed(errno, shown);
  std::ranges::sort(names);
  return names;
}

Result<std::string> read_link(const std::string& path, std::string_view shown) {
  std::string out(4096, '\0');  // PATH_MAX
  const ssize_t count = ::readlink(path.c_str(), out.data(), out.size());
  if (count < 0) return failed(errno, shown);
  out.resize(static_cast<std::size_t>(count));
  return out;
}

Result<std::string> resolve(const std::string& root, std::string_view path, bool keep_last) {
  std::vector<std::string> done, todo;
  push(todo, path);
  const auto here = [&] {
    std::string out = root;
    for (const auto& part : done) out += "/" + part;
    return out;
  };
  for (int links = 0; !todo.empty();) {
    const std::string part = std::move(todo.back());
    todo.pop_back();
    if (part == "..") {
      if (!done.empty()) done.pop_back();
      continue;
    }
    done.push_back(part);
    const std::string at = here();
    if ((todo.empty() && keep_last) || !is_link(at)) continue;
    if (++links > kMaxLinks) return failed(ELOOP, path);
    const auto target = read_link(at, path);
    if (!target) return target;
    done.pop_back();
    if (target->starts_with('/')) done.clear();
    push(todo, *target);
  }
  const std::string out = here();
  return out.empty() ? "/" : out;
}

}  // namespace topotune::host
