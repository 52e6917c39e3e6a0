#include "plugins/agreement.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace topotune::plugins {

namespace {

std::string reason(const std::string& what) { return what + ": " + std::strerror(errno); }

// A file of ours, of the right size, that nobody else can have put there.
bool ours(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
}

}  // namespace

Agreement::~Agreement() {
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

std::string Agreement::enter(const std::string& folder, std::uint64_t comm_id, std::uint64_t hash,
                             unsigned expected) {
  char name[80];
  std::snprintf(name, sizeof name, "/topotune-tuner-%u-%016llx", static_cast<unsigned>(::geteuid()),
                static_cast<unsigned long long>(comm_id));
  const std::string path = folder + name;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return reason(path);
  std::string wrong;
  if (!ours(fd))
    wrong = path + ": not this user's file";
  else if (::ftruncate(fd, sizeof(Shared)) != 0 || ::posix_fallocate(fd, 0, sizeof(Shared)) != 0)
    wrong = reason(path);
  void* memory = MAP_FAILED;
  if (wrong.empty()) {
    memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) wrong = reason(path);
  }
  ::close(fd);
  if (!wrong.empty()) return wrong;
  shared_ = static_cast<Shared*>(memory);  // zero at first: the kernel gives zeroes
  expected_ = expected;
  const std::uint64_t mine = hash == 0 ? 1 : hash;
  std::uint64_t first = 0;
  if (!shared_->hash.compare_exchange_strong(first, mine) && first != mine) shared_->different = 1;
  if (hash == 0) shared_->different = 1;
  if (shared_->entered.fetch_add(1) + 1 == expected) ::unlink(path.c_str());
  return "";
}

bool Agreement::holds() const {
  return shared_ != nullptr && shared_->different.load(std::memory_order_relaxed) == 0 &&
         shared_->entered.load(std::memory_order_relaxed) == expected_;
}

std::string Agreement::why_not() const {
  if (shared_ == nullptr) return "no shared memory";
  if (shared_->different.load() != 0) return "the ranks of this node do not have the same table";
  const auto entered = shared_->entered.load();
  if (entered != expected_)
    return std::to_string(entered) + " of this node's " + std::to_string(expected_) +
           " ranks have the plugin";
  return "";
}

}  // namespace topotune::plugins
