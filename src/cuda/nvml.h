#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/shared_library.h"
#include "model/measurement.h"

namespace topotune::cuda {

// What the management library tells beside a measurement. Questions that the library or the GPU does not
// answer give nothing. Opened without creating a CUDA context.
class Nvml {
 public:
  static Result<Nvml> open();

  struct GpuName {
    std::string id;   // "GPU0"
    std::string bdf;  // canonical
  };
  // Clocks, temperature, throttle reasons and the processes other than this one.
  model::GpuMoment moment(const GpuName& gpu) const;

  // Data bytes (payload, without protocol) over all NVLinks of the GPU since the driver started to count.
  struct LinkBytes {
    std::uint64_t sent = 0, received = 0;
  };
  std::optional<LinkBytes> link_bytes(const std::string& bdf) const;
  // Whether MIG is on; nothing when the GPU has none.
  std::optional<bool> mig(const std::string& bdf) const;

 private:
  explicit Nvml(const host::SharedLibrary& library) : library_(library) {}
  void* device_of(const std::string& bdf) const;
  host::SharedLibrary library_;
};

// NVML's bits in words: "hardware thermal slowdown, power cap"; bits that only say that the GPU idles or runs
// at the clocks it was set to are left out.
std::string throttle_text(std::uint64_t reasons);
inline constexpr std::uint64_t kHardwareSlowdown = 0x8 | 0x40 | 0x80;
inline constexpr std::uint64_t kAnySlowdown = 0x4 | 0x10 | 0x20 | kHardwareSlowdown;

}  // namespace topotune::cuda
