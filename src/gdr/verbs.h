#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "gdr/module_api.h"

namespace topotune::gdr {

// A step that failed. `step` is one of: "devices", "open", "queue pair", "ibv_reg_mr", "ibv_reg_dmabuf_mr",
// "connect", "post", "completion" of the verbs module; "dma-buf export", "GPU memory" of CUDA. `number`:
// errno, for "completion" the status of the work completion, for CUDA's steps its result.
struct Fault {
  std::string step;
  int number = 0;
  std::string text;
};
// "ibv_reg_dmabuf_mr: Operation not supported (errno 95)".
std::string words_of(const Fault& fault);
template <class T>
using Tried = tl::expected<T, Fault>;

enum class Op { write, read };
const char* name_of(Op op);

// One end of a reliable connection, closed at the end of its life.
class End {
 public:
  End(const TopotuneVerbs& module, void* handle) : module_(&module), handle_(handle, module.close) {}
  // dmabuf_fd -1: by the address.
  Tried<void> register_memory(void* address, std::size_t bytes, int dmabuf_fd) const;
  Tried<void> connect(const End& other) const;

  // What is moved: `bytes` from the first half of the source's memory (at 0) to the target's (at to_offset).
  struct Move {
    Op op = Op::write;
    std::size_t bytes = 0, to_offset = 0;
    std::uint64_t count = 1;
    int window = 1;
  };
  // Seconds until the last completion. This end writes to the other, or reads from it.
  Tried<double> transfer(const End& other, const Move& move, double limit_seconds) const;

 private:
  const TopotuneVerbs* module_;
  std::unique_ptr<void, void (*)(void*)> handle_;
};

class Verbs {
 public:
  // not_found: no module; unsupported: libibverbs is not here, or another version of the module.
  static Result<Verbs> open();
  Tried<std::vector<std::string>> devices() const;
  Tried<End> end(const std::string& device, int port, int gid_index) const;

 private:
  explicit Verbs(const TopotuneVerbs& module) : module_(&module) {}
  const TopotuneVerbs* module_;
};

}  // namespace topotune::gdr
