#include "gdr/memory.h"

#include <unistd.h>

#include <cstring>

#include "measure/node_memory.h"

namespace topotune::gdr {

namespace {

class HostMemory : public Memory {
 public:
  explicit HostMemory(measure::NodeMemory memory) : memory_(std::move(memory)) {}
  void* address() const override { return memory_.data(); }
  std::string owner() const override { return "host"; }
  Result<void> write(std::size_t offset, std::span<const unsigned char> data) override {
    std::memcpy(memory_.data() + offset, data.data(), data.size());
    return {};
  }
  Result<void> read(std::size_t offset, std::span<unsigned char> data) const override {
    std::memcpy(data.data(), memory_.data() + offset, data.size());
    return {};
  }
  Tried<int> dma_buf() override { return -1; }

 private:
  measure::NodeMemory memory_;
};

class GpuMemory : public Memory {
 public:
  GpuMemory(const cuda::Machine& machine, cuda::Buffer buffer)
      : machine_(machine), buffer_(std::move(buffer)) {}
  ~GpuMemory() override {
    if (fd_ >= 0) ::close(fd_);
  }
  void* address() const override {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(buffer_.get()));
  }
  std::string owner() const override { return buffer_.gpu().id; }
  Result<void> write(std::size_t offset, std::span<const unsigned char> data) override {
    if (auto ok = machine_.use(buffer_.gpu()); !ok) return ok;
    return machine_.driver.check(
        machine_.driver.f.copy_to_device(buffer_.get() + offset, data.data(), data.size()),
        "copy to " + owner());
  }
  Result<void> read(std::size_t offset, std::span<unsigned char> data) const override {
    if (auto ok = machine_.use(buffer_.gpu()); !ok) return ok;
    return machine_.driver.check(
        machine_.driver.f.copy_to_host(data.data(), buffer_.get() + offset, data.size()),
        "copy from " + owner());
  }
  Tried<int> dma_buf() override {
    const auto& f = machine_.driver.f;
    if (fd_ >= 0) return fd_;
    const auto failed = [](int rc, std::string text) {
      return tl::unexpected(Fault{"dma-buf export", rc, std::move(text)});
    };
    if (f.range_handle == nullptr)
      return failed(0,
                    fmt::format("the driver (CUDA {}) is older than 11.7", machine_.driver.version_text()));
    if (!machine_.use(buffer_.gpu())) return failed(0, "the GPU cannot be used");
    const auto rc = f.range_handle(&fd_, buffer_.get(), buffer_.size(), cuda::api::kDmaBufHandle, 0);
    if (rc == cuda::api::kSuccess) return fd_;
    fd_ = -1;
    return failed(rc, "cuMemGetHandleForAddressRange: " + machine_.driver.words_for(rc));
  }

 private:
  const cuda::Machine& machine_;
  cuda::Buffer buffer_;
  int fd_ = -1;
};

}  // namespace

Result<std::unique_ptr<Memory>> host_memory(std::size_t bytes, std::optional<int> node) {
  auto memory = measure::NodeMemory::make(bytes, node);
  if (!memory && node) memory = measure::NodeMemory::make(bytes, std::nullopt);
  if (!memory) return tl::unexpected(memory.error());
  return std::make_unique<HostMemory>(std::move(*memory));
}

Result<std::unique_ptr<Memory>> gpu_memory(const cuda::Machine& machine, const cuda::Gpu& gpu,
                                           std::size_t bytes) {
  // Whole pieces of 2 MiB begin at such an address; an exported range must be of whole pages.
  constexpr std::size_t kPiece = std::size_t{2} << 20;
  auto buffer = cuda::Buffer::make(machine, gpu, (bytes + kPiece - 1) / kPiece * kPiece);
  if (!buffer) return tl::unexpected(buffer.error());
  // Transfers by others are seen by this process's copies in order: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
  unsigned on = 1;
  if (machine.driver.f.pointer_set != nullptr)
    machine.driver.f.pointer_set(&on, cuda::api::kSyncMemops, buffer->get());
  return std::make_unique<GpuMemory>(machine, std::move(*buffer));
}

Tried<Registration> register_memory(const End& end, Memory& memory, std::size_t bytes) {
  Registration out{"address", std::nullopt};
  const auto fd = memory.dma_buf();
  if (fd && *fd < 0) {
    if (auto ok = end.register_memory(memory.address(), bytes, -1); !ok) return tl::unexpected(ok.error());
    return out;
  }
  if (!fd) {
    out.dma_buf = fd.error();
  } else if (auto ok = end.register_memory(memory.address(), bytes, *fd); ok) {
    out.method = "dma-buf";
    return out;
  } else {
    out.dma_buf = ok.error();
  }
  out.method = "peermem";
  auto ok = end.register_memory(memory.address(), bytes, -1);
  if (ok) return out;
  // Both failed: the words of both, the number of the last.
  auto fault = ok.error();
  fault.text = fmt::format("{}; then {}", words_of(*out.dma_buf), fault.text);
  return tl::unexpected(fault);
}

}  // namespace topotune::gdr
