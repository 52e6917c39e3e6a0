#include "cuda/device_source.h"

#include <algorithm>

#include "coll/host_source.h"

namespace topotune::cuda {

namespace {

class DeviceSource : public coll::ByteSource {
 public:
  DeviceSource(const Machine& machine, const Gpu& gpu) : machine_(machine), gpu_(gpu) {}
  ~DeviceSource() override {
    machine_.driver.f.set_current(gpu_.context);
    if (staging_ != nullptr) machine_.driver.f.host_free(staging_);
  }

  Result<void> open(std::size_t bytes) {
    const auto& driver = machine_.driver;
    auto ok = machine_.use(gpu_);
    if (ok)
      ok = driver.check(driver.f.host_alloc(&staging_, kPiece, api::kHostPortable), "pinned host memory");
    if (!ok) return ok;
    auto lane = Lane::make(machine_, gpu_);
    if (!lane) return tl::unexpected(lane.error());
    lane_ = std::move(*lane);
    const auto pieces = std::clamp<std::size_t>((bytes + kPiece - 1) / kPiece, 1, 16);
    auto buffer = Buffer::make(machine_, gpu_, pieces * kPiece);
    if (!buffer) return tl::unexpected(buffer.error());
    buffer_ = std::move(*buffer);
    coll::fill_piece({static_cast<std::byte*>(staging_), kPiece});
    for (std::size_t i = 0; i < pieces && ok; ++i)
      ok = driver.check(driver.f.copy_to_device(buffer_.get() + i * kPiece, staging_, kPiece), gpu_.id);
    return ok;
  }

  Result<std::span<const std::byte>> next(std::size_t bytes) override {
    const auto& driver = machine_.driver;
    auto ok = machine_.use(gpu_);
    if (ok)
      ok = driver.check(driver.f.copy_to_host_async(staging_, buffer_.get() + at_, bytes, lane_.stream()),
                        gpu_.id);
    if (ok) ok = driver.check(driver.f.stream_synchronize(lane_.stream()), "copy from " + gpu_.id);
    if (!ok) return tl::unexpected(ok.error());
    at_ = (at_ + kPiece) % buffer_.size();
    return std::span(static_cast<const std::byte*>(staging_), bytes);
  }

 private:
  const Machine& machine_;
  const Gpu& gpu_;
  Lane lane_;
  Buffer buffer_;
  void* staging_ = nullptr;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::unique_ptr<coll::ByteSource>> device_source(const Machine& machine, const Gpu& gpu,
                                                        std::size_t bytes) {
  auto source = std::make_unique<DeviceSource>(machine, gpu);
  if (auto ok = source->open(bytes); !ok) return tl::unexpected(ok.error());
  return std::unique_ptr<coll::ByteSource>(std::move(source));
}

Result<std::size_t> free_bytes(const Machine& machine, const Gpu& gpu) {
  std::size_t free = 0, all = 0;
  auto ok = machine.use(gpu);
  if (ok) ok = machine.driver.check(machine.driver.f.mem_info(&free, &all), gpu.id);
  return ok ? Result<std::size_t>(free) : tl::unexpected(ok.error());
}

}  // namespace topotune::cuda
