#pragma once

#include <memory>

#include "coll/lane.h"
#include "cuda/device.h"

namespace topotune::cuda {

// Memory of a GPU (at most a gigabyte of it, over and over), copied to pinned host memory by the GPU's copy
// engine on a stream of its own. May be used from one other thread. The machine outlives it.
Result<std::unique_ptr<coll::ByteSource>> device_source(const Machine& machine, const Gpu& gpu,
                                                        std::size_t bytes);

// Free memory of a GPU.
Result<std::size_t> free_bytes(const Machine& machine, const Gpu& gpu);

}  // namespace topotune::cuda
