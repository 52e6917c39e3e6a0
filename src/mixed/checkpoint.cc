#include "mixed/checkpoint.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "coll/host_source.h"
#include "host/fd.h"

namespace topotune::mixed {

namespace {

// A file in `folder` that has no name from here on.
Result<host::Fd> open_nameless(const std::string& folder) {
  auto name = folder + "/topotune-checkpoint-XXXXXX";
  host::Fd fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd.good())
    return tl::unexpected(Error{Errc::io,
                                fmt::format("checkpoint in {}: {}", folder, std::strerror(errno)),
                                {},
                                {},
                                {},
                                "--checkpoint-dir takes a folder that can be written to"});
  ::unlink(name.c_str());
  return fd;
}

Result<void> write_all(int fd, std::span<const std::byte> bytes, const std::string& folder) {
  while (!bytes.empty()) {
    const auto n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return tl::unexpected(Error{Errc::io,
                                  fmt::format("checkpoint in {}: {}", folder, std::strerror(errno)),
                                  {},
                                  {},
                                  {},
                                  "--scale makes checkpoints smaller, --checkpoint-dir puts them elsewhere"});
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

// One source and its thread.
class Worker {
 public:
  Worker(std::unique_ptr<coll::ByteSource> source, std::string folder)
      : source_(std::move(source)), folder_(std::move(folder)), thread_([this] { work(); }) {}
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void start(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      wanted_ = bytes;
      busy_ = true;
    }
    changed_.notify_all();
  }
  Result<bool> ended() {
    if (busy_) return false;
    const std::lock_guard lock(mutex_);
    return error_ ? Result<bool>(tl::unexpected(*error_)) : Result<bool>(true);
  }
  coll::ByteSource& source() { return *source_; }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return quit_ || busy_; });
      if (quit_) return;
      const auto bytes = wanted_;
      lock.unlock();
      const auto ok = save(bytes);
      lock.lock();
      if (!ok && !error_) error_ = ok.error();
      busy_ = false;
    }
  }

  Result<void> save(std::size_t bytes) {
    host::Fd file;
    if (!folder_.empty()) {
      auto opened = open_nameless(folder_);
      if (!opened) return tl::unexpected(opened.error());
      file = std::move(*opened);
    }
    for (std::size_t at = 0; at < bytes && !quit_; at += coll::ByteSource::kPiece) {
      const auto piece = source_->next(std::min(coll::ByteSource::kPiece, bytes - at));
      if (!piece) return tl::unexpected(piece.error());
      if (!file.good()) continue;
      if (auto ok = write_all(file.get(), *piece, folder_); !ok) return ok;
    }
    if (file.good() && ::fdatasync(file.get()) != 0)
      return fail(Errc::io, "checkpoint in {}: {}", folder_, std::strerror(errno));
    return {};
  }

  std::unique_ptr<coll::ByteSource> source_;
  std::string folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t wanted_ = 0;
  std::optional<Error> error_;
  std::atomic<bool> busy_ = false, quit_ = false;
  std::thread thread_;
};

class CheckpointLane : public coll::Lane {
 public:
  CheckpointLane(std::vector<std::unique_ptr<coll::ByteSource>> sources, const std::string& folder) {
    for (auto& source : sources) workers_.push_back(std::make_unique<Worker>(std::move(source), folder));
  }
  Result<void> start(std::size_t bytes) override {
    for (auto& worker : workers_) worker->start(bytes);
    return {};
  }
  Result<bool> ended() override {
    for (auto& worker : workers_) {
      const auto done = worker->ended();
      if (!done || !*done) return done;
    }
    return true;
  }
  Result<coll::Checked> verify(std::size_t bytes) override {
    coll::Checked checked;
    for (auto& worker : workers_) {
      const auto piece = worker->source().next(std::min(bytes, coll::ByteSource::kPiece));
      if (!piece) return tl::unexpected(piece.error());
      const auto right = coll::right_bytes(*piece);
      checked.checked += piece->size();
      checked.wrong += piece->size() - right;
      if (right < piece->size() && checked.first.empty())
        checked.first = fmt::format("checkpoint: byte {} of {} differs", right, piece->size());
    }
    return checked;
  }

 private:
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

Result<std::unique_ptr<coll::Lane>> make_checkpoint(std::vector<std::unique_ptr<coll::ByteSource>> sources,
                                                    const std::string& folder) {
  if (!folder.empty())
    if (auto probe = open_nameless(folder); !probe) return tl::unexpected(probe.error());
  return std::unique_ptr<coll::Lane>(std::make_unique<CheckpointLane>(std::move(sources), folder));
}

Result<void> has_room(const std::string& folder, std::size_t bytes) {
  struct statvfs room {};
  if (::statvfs(folder.c_str(), &room) != 0)
    return fail(Errc::not_found, "checkpoint in {}: {}", folder, std::strerror(errno));
  const auto free = static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize);
  if (free >= static_cast<double>(bytes)) return {};
  return tl::unexpected(Error{Errc::io,
                              fmt::format("checkpoint in {}: {:.1f} GB are free, {:.1f} GB are needed",
                                          folder, free * 1e-9, static_cast<double>(bytes) * 1e-9),
                              {},
                              {},
                              {},
                              "--scale makes checkpoints smaller, --checkpoint-dir puts them elsewhere"});
}

}  // namespace topotune::mixed
