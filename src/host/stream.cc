#include "host/stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "host/fd.h"
#include "host/files.h"

namespace topotune::host {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18U;
constexpr int kPollMilliseconds = 200;

using Take = std::function<void(std::string_view)>;

// Unpacks what it is given, or passes it on.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  virtual Result<void> feed(std::string_view bytes, const Take& take) = 0;
  virtual bool complete() const { return true; }
};

class Plain : public Unpacker {
 public:
  Result<void> feed(std::string_view bytes, const Take& take) override {
    take(bytes);
    return {};
  }
};

class Gzip : public Unpacker {
 public:
  Gzip() : out_(kBlock) { inflateInit2(&stream_, 15 + 32); }  // 32: gzip or zlib header
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() override { inflateEnd(&stream_); }

  Result<void> feed(std::string_view bytes, const Take& take) override {
    std::vector<Bytef> in(bytes.begin(), bytes.end());
    stream_.next_in = in.data();
    stream_.avail_in = static_cast<uInt>(in.size());
    while (stream_.avail_in > 0) {
      if (ended_) {  // members may follow one another
        inflateReset(&stream_);
        ended_ = false;
      }
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      take({out_.data(), out_.size() - stream_.avail_out});
      ended_ = status == Z_STREAM_END;
      if (status == Z_BUF_ERROR) break;
      if (status != Z_OK && status != Z_STREAM_END) return fail(Errc::malformed, "damaged gzip data");
    }
    return {};
  }
  bool complete() const override { return ended_; }

 private:
  z_stream stream_{};
  std::vector<char> out_;
  bool ended_ = false;
};

class Zstd : public Unpacker {
 public:
  Zstd() : stream_(ZSTD_createDStream()), out_(kBlock) {
    // Windows beyond 128 MiB are refused: they would cost that much memory.
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, 27);
  }
  Result<void> feed(std::string_view bytes, const Take& take) override {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    while (in.pos < in.size) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      const auto left = ZSTD_decompressStream(stream_.get(), &out, &in);
      if (ZSTD_isError(left) != 0)
        return fail(Errc::malformed, "damaged zstd data: {}", ZSTD_getErrorName(left));
      take({out_.data(), out.pos});
      ended_ = left == 0;
    }
    // What is left in the decoder.
    for (std::size_t got = out_.size(); got == out_.size() && !ended_;) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      ZSTD_inBuffer none{nullptr, 0, 0};
      const auto left = ZSTD_decompressStream(stream_.get(), &out, &none);
      if (ZSTD_isError(left) != 0) break;
      got = out.pos;
      take({out_.data(), out.pos});
      ended_ = left == 0;
    }
    return {};
  }
  bool complete() const override { return ended_; }

 private:
  struct Free {
    void operator()(ZSTD_DStream* s) const { ZSTD_freeDStream(s); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  std::vector<char> out_;
  bool ended_ = false;
};

std::unique_ptr<Unpacker> unpacker_for(std::string_view head) {
  if (head.starts_with("\x1f\x8b")) return std::make_unique<Gzip>();
  if (head.starts_with("\x28\xb5\x2f\xfd")) return std::make_unique<Zstd>();
  return std::make_unique<Plain>();
}

bool stopped(const StreamOptions& options) { return options.stop && options.stop(); }

// Waits until a pipe may have bytes, or for a moment until a file may have grown. False: asked to stop.
bool wait_for_more(int fd, bool regular, const StreamOptions& options) {
  struct pollfd ready {
    fd, POLLIN, 0
  };
  if (regular)
    ::usleep(kPollMilliseconds * 1000);
  else if (::poll(&ready, 1, kPollMilliseconds) == 0 && options.idle)
    options.idle();
  return !stopped(options);
}

}  // namespace

Result<void> read_stream(const std::string& name, const Take& take, const StreamOptions& options) {
  const bool standard = name == "-";
  Fd file(standard ? -1 : ::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  const int fd = standard ? STDIN_FILENO : file.get();
  if (fd < 0) return tl::unexpected(error_of(errno, name));
  struct stat about {};
  const bool regular = ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  if (!standard && S_ISDIR(about.st_mode))
    return fail(Errc::unsupported, "is a folder; name the files in it");
  std::vector<char> block(kBlock);
  std::string head;  // until the first bytes tell what it is
  std::unique_ptr<Unpacker> unpacker;
  while (true) {
    if (options.follow && !regular && !wait_for_more(fd, regular, options)) break;
    const auto got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) {
      if (stopped(options)) break;
      continue;
    }
    if (got < 0) return tl::unexpected(error_of(errno, name));
    if (got == 0) {
      if (options.idle) options.idle();
      if (!options.follow || !regular || !wait_for_more(fd, regular, options)) break;
      continue;
    }
    std::string_view bytes(block.data(), static_cast<std::size_t>(got));
    if (!unpacker) {
      head.append(bytes);
      if (head.size() < 4) continue;
      unpacker = unpacker_for(head);
      bytes = head;
    }
    if (auto fed = unpacker->feed(bytes, take); !fed) return fed;
    if (!head.empty()) head = std::string();
  }
  if (!head.empty()) take(head);
  if (unpacker && !unpacker->complete()) return fail(Errc::malformed, "the compressed data is cut off");
  return {};
}

}  // namespace topotune::host
