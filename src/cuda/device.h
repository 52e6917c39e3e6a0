#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/driver.h"

namespace topotune::cuda {

// One GPU that CUDA shows to this process, with its primary context held.
struct Gpu {
  int index = 0;     // CUDA's
  std::string id;    // "GPU0"; topology's name where the address is known there, else CUDA's number
  std::string bdf;   // canonical
  std::string name;  // "NVIDIA H200"
  int sm = 0;        // 90
  int multiprocessors = 0;
  int shared_per_block = 0;  // bytes a block may ask for
  int copy_engines = 0;
  api::Device device = 0;
  api::Context context = nullptr;
  api::Module module = nullptr;  // null: kernels_why says why
  std::string kernels_why;
};

// A GPU that cannot be measured, with the reason.
struct Absent {
  std::string id;
  std::string why;
};

struct Machine {
  Driver driver;
  std::vector<Gpu> gpus;
  std::vector<Absent> absent;

  Result<void> use(const Gpu& gpu) const { return driver.check(driver.f.set_current(gpu.context), gpu.id); }
};

// Opens all GPUs. `id_of` names an address ("" when it knows none). An error when the driver or every GPU is
// missing.
Result<std::unique_ptr<Machine>> open_machine(
    const std::function<std::string(const std::string& bdf)>& id_of);

// Whether kernels of `from` reach memory of `to`; enables it. The reason when not.
Result<void> enable_peer(const Machine& machine, const Gpu& from, const Gpu& to);

// Memory of a GPU, given back at the end.
class Buffer {
 public:
  static Result<Buffer> make(const Machine& machine, const Gpu& gpu, std::size_t bytes);
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept { return swap(other), *this; }
  ~Buffer();
  api::DevicePtr get() const { return pointer_; }
  std::size_t size() const { return bytes_; }
  const Gpu& gpu() const { return *gpu_; }

 private:
  void swap(Buffer& other) noexcept;
  const Machine* machine_ = nullptr;
  const Gpu* gpu_ = nullptr;
  api::DevicePtr pointer_ = 0;
  std::size_t bytes_ = 0;
};

// A stream of a GPU with two events for timing.
class Lane {
 public:
  static Result<Lane> make(const Machine& machine, const Gpu& gpu);
  Lane() = default;
  Lane(Lane&& other) noexcept { swap(other); }
  Lane& operator=(Lane&& other) noexcept { return swap(other), *this; }
  ~Lane();
  api::Stream stream() const { return stream_; }
  const Gpu& gpu() const { return *gpu_; }
  Result<void> start() const;      // records the first event
  Result<void> stop() const;       // records the second
  Result<double> seconds() const;  // between the two; waits for the stream

 private:
  void swap(Lane& other) noexcept;
  const Machine* machine_ = nullptr;
  const Gpu* gpu_ = nullptr;
  api::Stream stream_ = nullptr;
  api::Event start_ = nullptr, stop_ = nullptr;
};

// Work of several streams starts when the gate opens, so that what it costs to enqueue is not measured.
// Without the driver's stream memory operations every gate is open from the start, and is_real() says so.
class Gate {
 public:
  static Result<Gate> make(const Machine& machine);
  Gate() = default;
  Gate(Gate&& other) noexcept { swap(other); }
  Gate& operator=(Gate&& other) noexcept { return swap(other), *this; }
  ~Gate();
  Result<void> hold(const Lane& lane) const;  // work enqueued after this waits
  void open() const;
  void close();
  bool is_real() const { return word_ != nullptr; }

 private:
  void swap(Gate& other) noexcept;
  const Machine* machine_ = nullptr;
  std::uint32_t* word_ = nullptr;
  std::uint32_t round_ = 0;
};

// How copies by kernels are made.
struct KernelCopy {
  bool bulk = false;  // TMA; otherwise 16-byte loads and stores
  int blocks = 0;
  int chunk = 16384, stages = 8, drain = 2;  // of bulk
};

// Launches by name; parameters as the kernel declares them.
Result<void> launch(const Machine& machine, const Gpu& gpu, const char* kernel, int blocks, int threads,
                    int shared_bytes, api::Stream stream, std::span<void*> parameters);
// The copy `repeats` times over by one launch.
Result<void> launch_copy(const Machine& machine, const Lane& lane, const KernelCopy& how, api::DevicePtr dst,
                         api::DevicePtr src, std::size_t bytes, int repeats = 1);
Result<void> fill_pattern(const Machine& machine, const Lane& lane, api::DevicePtr p, std::size_t bytes,
                          std::uint32_t seed);

struct PatternCheck {
  unsigned long long wrong = 0;  // pieces of 16 bytes
  unsigned long long first = 0;  // offset in bytes of the first wrong one
};
// Run by the GPU of the lane on memory at `p`: the owner reads what arrived.
Result<PatternCheck> check_pattern(const Machine& machine, const Lane& lane, api::DevicePtr p,
                                   std::size_t bytes, std::uint32_t seed);

}  // namespace topotune::cuda
