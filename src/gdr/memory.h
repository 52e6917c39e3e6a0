#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cuda/device.h"
#include "gdr/verbs.h"

namespace topotune::gdr {

// Memory that NICs read and write, and how its owner looks at it.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* address() const = 0;
  virtual std::string owner() const = 0;  // "host", "GPU0"
  virtual Result<void> write(std::size_t offset, std::span<const unsigned char> data) = 0;
  virtual Result<void> read(std::size_t offset, std::span<unsigned char> data) const = 0;
  // A descriptor of the memory for other drivers, valid as long as the memory; -1: not needed (the host's).
  virtual Tried<int> dma_buf() = 0;
};

// Near a node where that is known; in whole pages.
Result<std::unique_ptr<Memory>> host_memory(std::size_t bytes, std::optional<int> node);
Result<std::unique_ptr<Memory>> gpu_memory(const cuda::Machine& machine, const cuda::Gpu& gpu,
                                           std::size_t bytes);

// How memory was registered.
struct Registration {
  std::string method;            // "address", "dma-buf", "peermem"
  std::optional<Fault> dma_buf;  // why not by DMA-BUF, where that was tried first
};
// DMA-BUF first where the memory is a GPU's, then by address (nvidia-peermem).
Tried<Registration> register_memory(const End& end, Memory& memory, std::size_t bytes);

}  // namespace topotune::gdr
