#include "plugins/agreement.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>

namespace topotune::plugins {

namespace {

std::string reason(const std::string& what) { return what + ": " + std::strerror(errno); }

std::string prefix() { return "topotune-tuner-" + std::to_string(::geteuid()) + "-"; }

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

// A file larger than the process may write is answered with a signal that ends it.
bool may_write(std::size_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes;
}

}  // namespace

struct Agreement::Members {
  std::mutex mutex;
  Agreement* first = nullptr;

  Members() {
    ::pthread_atfork([] { members.mutex.lock(); }, [] { members.mutex.unlock(); },
                     [] {
                       for (auto* a = members.first; a != nullptr; a = a->next_) a->let_go(), a->unmap();
                       members.mutex.unlock();
                     });
  }
  void add(Agreement* a) {
    const std::lock_guard hold(mutex);
    a->next_ = first, first = a;
  }
  void remove(const Agreement* a) {
    const std::lock_guard hold(mutex);
    for (auto** at = &first; *at != nullptr; at = &(*at)->next_)
      if (*at == a) return void(*at = a->next_);
  }
  // What another one coming in means for those that are in already: where all came, the lock is of no more
  // use; where the same GPU had the same name before, that was another attempt.
  void make_way(const Agreement& coming) {
    const std::lock_guard hold(mutex);
    for (auto* a = first; a != nullptr; a = a->next_) {
      if (a == &coming || a->shared_ == nullptr) continue;
      if (coming.device_ >= 0 && a->device_ == coming.device_ && a->path_ == coming.path_) a->end_as(kVoid);
      if (a->is_complete()) a->let_go();
    }
  }
};
Agreement::Members Agreement::members;

Agreement::~Agreement() {
  members.remove(this);
  leave();
}

void Agreement::let_go() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void Agreement::unmap() {
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
  shared_ = nullptr;
}

void Agreement::leave() {
  if (shared_ != nullptr) end_as(kVoid);
  unmap();
  // The last one that leaves takes the file along, where not all came.
  struct stat status {};
  if (fd_ >= 0 && lock(fd_) && ::flock(fd_, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd_, &status) == 0 &&
      status.st_nlink > 0)
    ::unlink(path_.c_str());
  let_go();
}

bool Agreement::refuse(std::string& wrong, const std::string& why) {
  wrong = why;
  let_go();
  return false;
}

// True: this file is the one; false: it was unlinked meanwhile, or is of another attempt, or `wrong` says
// why.
bool Agreement::take(std::string& wrong) {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct stat status {};
  if (fd_ < 0) return refuse(wrong, reason(path_));
  if (::fstat(fd_, &status) != 0 || !ours(status)) return refuse(wrong, path_ + ": not this user's file");
  if (!lock(fd_)) return refuse(wrong, reason(path_));
  if (::fstat(fd_, &status) != 0 || status.st_nlink == 0) return false;
  const bool first = first_in(fd_), empty = status.st_size == 0;
  if (first && !empty) return ::unlink(path_.c_str()), false;  // left behind
  if (first) {
    errno = ::posix_fallocate(fd_, 0, sizeof(Shared));
    if (errno != 0) return refuse(wrong, reason(path_));
  } else if (status.st_size != sizeof(Shared)) {
    return refuse(wrong, path_ + ": somebody holds it who is no rank");
  }
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) return refuse(wrong, reason(path_));
  shared_ = static_cast<Shared*>(memory);  // zero at first: the kernel gives zeroes
  const auto state = shared_->state.load();
  const bool same = shared_->entered == 0 || (shared_->expected == expected_ && shared_->entered < expected_);
  if (same && (state == kOpen || state == kDifferent)) return true;
  ::unlink(path_.c_str());
  return false;
}

std::string Agreement::enter(const std::string& folder, std::uint64_t comm_id, std::uint64_t hash,
                             unsigned expected, int device) {
  char name[24];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(comm_id));
  path_ = folder + "/" + prefix() + name;
  expected_ = expected, device_ = device;
  if (!may_write(sizeof(Shared)))
    return path_ + ": no file of " + std::to_string(sizeof(Shared)) + " bytes (ulimit -f)";
  members.make_way(*this);
  std::string wrong;
  for (int turn = 0; !take(wrong); ++turn) {
    leave();
    if (!wrong.empty()) return wrong;
    if (turn == 100) return path_ + ": comes and goes";
  }
  const std::uint64_t mine = hash == 0 ? 1 : hash;
  if (shared_->entered == 0) shared_->hash = mine, shared_->expected = expected;
  if (hash == 0 || shared_->hash != mine) end_as(kDifferent);
  if (++shared_->entered == expected) ::unlink(path_.c_str());
  unlock(fd_);
  members.add(this);
  return "";
}

bool Agreement::is_complete() const { return shared_->entered.load() == expected_; }

void Agreement::end_as(State state) const {
  std::uint32_t open = kOpen;
  shared_->state.compare_exchange_strong(open, state);
}

std::uint32_t Agreement::settle() const {
  end_as(is_complete() ? kUsed : kMissing);
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
