#include "plugins/agreement.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "plugins/memory.h"

namespace topotune::plugins {

namespace {

std::string reason(const std::string& what) { return what + ": " + std::strerror(errno); }

std::string prefix() { return "topotune-tuner-" + std::to_string(::geteuid()) + "-"; }

// A file of ours that nobody else can have put there.
bool ours(const struct stat& status) { return S_ISREG(status.st_mode) && status.st_uid == ::geteuid(); }

// One rank at a time comes or goes: a lock of this open file alone, for the moments that it takes.
bool lock(int fd, int turns = 2000) {
  struct flock whole {};
  whole.l_type = F_WRLCK, whole.l_whence = SEEK_SET;
  for (int turn = 0; turn < turns; ++turn) {
    if (::fcntl(fd, F_OFD_SETLK, &whole) == 0) return true;
    if ((errno != EAGAIN && errno != EACCES && errno != EINTR) || turn + 1 == turns) return false;
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

void Agreement::leave() {
  if (shared_ == nullptr) return;
  if (process_ == ::getpid()) {
    end_as(kVoid);
    ::munmap(shared_, sizeof(Shared));
    remove_file(false);  // the last one takes it along
  }
  shared_ = nullptr;
}

// Our file, if it is still there under its name, which changes under its lock alone.
void Agreement::remove_file(bool held_by_others) const {
  const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  struct stat status {};
  if (fd >= 0 && ::fstat(fd, &status) == 0 && status.st_ino == file_ && lock(fd, held_by_others ? 1 : 2000) &&
      (held_by_others || ::flock(fd, LOCK_EX | LOCK_NB) == 0) && ::fstat(fd, &status) == 0 &&
      status.st_nlink > 0)
    ::unlink(path_.c_str());
  if (fd >= 0) ::close(fd);
}

// The file is `fd`; again: it was unlinked meanwhile, or is of another attempt; no: `wrong` says why.
Agreement::Taken Agreement::take(int fd, std::string& wrong) {
  const auto refuse = [&](const std::string& why) { return wrong = why, Taken::no; };
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !ours(status)) return refuse(path_ + ": not this user's file");
  if (!lock(fd)) return refuse(reason(path_));
  if (::fstat(fd, &status) != 0 || status.st_nlink == 0) return Taken::again;
  const bool first = first_in(fd), empty = status.st_size == 0;
  if (first && !empty) return ::unlink(path_.c_str()), Taken::again;  // left behind
  if (first) {
    errno = ::posix_fallocate(fd, 0, sizeof(Shared));
    if (errno != 0) return refuse(reason(path_));
  } else if (status.st_size != sizeof(Shared)) {
    return refuse(path_ + ": somebody holds it who is no rank");
  }
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return refuse(reason(path_));
  ::madvise(memory, sizeof(Shared), MADV_DONTFORK);  // a child would keep the lock after its parent
  shared_ = static_cast<Shared*>(memory);            // zero at first: the kernel gives zeroes
  file_ = status.st_ino, process_ = ::getpid();
  const auto state = shared_->state.load();
  const bool same = shared_->entered == 0 || (shared_->expected == expected_ && shared_->entered < expected_);
  if (same && (state == kOpen || state == kDifferent)) return Taken::yes;
  ::unlink(path_.c_str());
  end_as(kVoid);
  ::munmap(memory, sizeof(Shared));
  shared_ = nullptr;
  return Taken::again;
}

std::string Agreement::enter(const std::string& folder, std::uint64_t comm_id, std::uint64_t hash,
                             unsigned expected) {
  char name[24];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(comm_id));
  path_ = folder + "/" + prefix() + name;
  expected_ = expected;
  if (!may_write(sizeof(Shared)))
    return path_ + ": no file of " + std::to_string(sizeof(Shared)) + " bytes (ulimit -f)";
  std::string wrong;
  for (int turn = 0; turn < 100; ++turn) {
    const int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return reason(path_);
    const auto taken = take(fd, wrong);
    if (taken == Taken::yes) {
      const std::uint64_t mine = hash == 0 ? 1 : hash;
      if (shared_->entered == 0) shared_->hash = mine, shared_->expected = expected;
      if (hash == 0 || shared_->hash != mine) end_as(kDifferent);
      ++shared_->entered;
      unlock(fd);
    }
    ::close(fd);
    if (taken == Taken::yes) return "";
    if (taken == Taken::no) return wrong;
  }
  return path_ + ": comes and goes";
}

bool Agreement::end_as(State state) const {
  std::uint32_t open = kOpen;
  return shared_->state.compare_exchange_strong(open, state);
}

// Whoever comes from now on is of another communicator.
std::uint32_t Agreement::settle() const {
  if (end_as(shared_->entered.load() == expected_ ? kUsed : kMissing)) remove_file(true);
  return shared_->state.load();
}

std::string Agreement::why_not() const {
  const auto state = shared_ == nullptr ? kMissing : shared_->state.load();
  switch (state) {
    case kUsed:
      return "";
    case kDifferent:
      return "the ranks of this node do not have the same table";
    case kVoid:
      return "a rank of this node is gone, or began anew";
    default:
      return std::to_string(shared_ == nullptr ? 0 : shared_->entered.load()) + " of this node's " +
             std::to_string(expected_) + " ranks agreed on this table";
  }
}

void remove_left_agreements(const std::string& folder) {
  constexpr std::time_t kHour = 3600;
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) return;
  const auto mine = prefix();
  while (const dirent* entry = ::readdir(dir)) {
    if (std::strncmp(entry->d_name, mine.c_str(), mine.size()) != 0) continue;
    const int fd = ::openat(::dirfd(dir), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat status {};
    if (fd >= 0 && ::fstat(fd, &status) == 0 && ours(status) &&
        std::time(nullptr) - status.st_mtime > kHour && lock(fd) && ::flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        ::fstat(fd, &status) == 0 && status.st_nlink > 0)
      ::unlinkat(::dirfd(dir), entry->d_name, 0);
    if (fd >= 0) ::close(fd);
  }
  ::closedir(dir);
}

}  // namespace topotune::plugins
