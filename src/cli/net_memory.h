#pragma once

#include <memory>

#include "base/result.h"
#include "cuda/device.h"
#include "net/module_api.h"

namespace topotune::cli {

// A GPU's memory for the network's buffers, by the CUDA driver.
class GpuMemory {
 public:
  // The GPU of the process that is the `local`-th on its host; processes beyond the number of GPUs share.
  static Result<std::unique_ptr<GpuMemory>> open(int local);
  const TopotuneNetMemory* hooks() const { return &hooks_; }
  const std::string& gpu() const { return gpu_->id; }

 private:
  explicit GpuMemory(std::unique_ptr<cuda::Machine> machine) : machine_(std::move(machine)) {}
  std::unique_ptr<cuda::Machine> machine_;
  const cuda::Gpu* gpu_ = nullptr;
  TopotuneNetMemory hooks_{};
};

}  // namespace topotune::cli
