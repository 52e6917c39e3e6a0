#include "plugins/agreement.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace topotune::plugins {

namespace {

std::string reason(const std::string& what) { return what + ": " + std::strerror(errno); }

// A file of ours that nobody else can have put there.
bool ours(const struct stat& status) { return S_ISREG(status.st_mode) && status.st_uid == ::geteuid(); }

// One rank at a time comes or goes: a lock of this open file alone, for the moments that it takes.
bool lock(int fd) {
  struct flock whole {};
  whole.l_type = F_WRLCK, whole.l_whence = SEEK_SET;
  for (int turn = 0; turn < 2000; ++turn) {
    if (::fcntl(fd, F_OFD_SETLK, &whole) == 0) return true;
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) return false;
    const timespec moment{0, 1'000'000};
    ::nanosleep(&moment, nullptr);
  }
  return false;
}

void unlock(int fd) {
  struct flock whole {};
  whole.l_type = F_UNLCK, whole.l_whence = SEEK_SET;
  ::fcntl(fd, F_OFD_SETLK, &whole);
}

// Whether nobody else is in; from then on this rank is.
bool first_in(int fd) {
  const bool first = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  ::flock(fd, LOCK_SH | LOCK_NB);
  return first;
}

}  // namespace

Agreement::~Agreement() { leave(); }

void Agreement::leave() {
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
  // The last one that leaves takes the file along, where not all came.
  struct stat status {};
  if (fd_ >= 0 && lock(fd_) && ::flock(fd_, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd_, &status) == 0 &&
      status.st_nlink > 0)
    ::unlink(path_.c_str());
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1, shared_ = nullptr;
}

// True: this file is the one; false: it was unlinked meanwhile, or all are in it already, or `wrong` says
// why.
bool Agreement::take(std::string& wrong) {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct stat status {};
  if (fd_ < 0) return wrong = reason(path_), false;
  if (::fstat(fd_, &status) != 0 || !ours(status)) {
    ::close(fd_), fd_ = -1;
    return wrong = path_ + ": not this user's file", false;
  }
  if (!lock(fd_)) return wrong = reason(path_), false;
  if (::fstat(fd_, &status) != 0 || status.st_nlink == 0) return false;
  if (first_in(fd_) && ::ftruncate(fd_, 0) == 0) {
    errno = ::posix_fallocate(fd_, 0, sizeof(Shared));
    if (errno != 0) return wrong = reason(path_), false;
  }
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) return wrong = reason(path_), false;
  shared_ = static_cast<Shared*>(memory);  // zero at first: the kernel gives zeroes
  return shared_->entered < expected_;
}

std::string Agreement::enter(const std::string& folder, std::uint64_t comm_id, std::uint64_t hash,
                             unsigned expected) {
  char name[80];
  std::snprintf(name, sizeof name, "/topotune-tuner-%u-%016llx", static_cast<unsigned>(::geteuid()),
                static_cast<unsigned long long>(comm_id));
  path_ = folder + name;
  expected_ = expected;
  std::string wrong;
  for (int turn = 0; !take(wrong); ++turn) {
    leave();
    if (!wrong.empty()) return wrong;
    if (turn == 100) return path_ + ": comes and goes";
  }
  const std::uint64_t mine = hash == 0 ? 1 : hash;
  if (shared_->entered == 0) shared_->hash = mine;
  if (hash == 0 || shared_->hash != mine) shared_->different = 1;
  if (++shared_->entered == expected) ::unlink(path_.c_str());
  unlock(fd_);
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
