#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "cuda/nvml.h"
#include "measure/expected.h"
#include "measure/session.h"

namespace topotune::cuda {

struct SuiteOptions {
  std::vector<std::string> gpus;     // ids; empty: all
  std::set<std::string> parts;       // of a suite; empty: its default
  std::size_t bytes = 512u << 20;    // of a bandwidth cell; less where the GPU has not so much memory free
  std::vector<int> sms;              // budget curve; empty: a default
  std::optional<KernelCopy> kernel;  // instead of the choice by size; blocks 0: all multiprocessors
  bool screen = false;               // O(n) pairs instead of all
  double sample_seconds = 0.004;     // copies of one sample
};

// What a suite works with. Everything outlives it.
struct Bench {
  measure::Session& session;
  const Machine& machine;
  const measure::ExpectedValues& expected;
  const Nvml* nvml = nullptr;  // null: not there
  const SuiteOptions& options;
};

// The names of the parts of `bench p2p`, in the order in which they run.
const std::vector<std::string>& p2p_parts();
void run_p2p(const Bench& bench);

// A NUMA node with memory.
struct HostNode {
  int node = 0;
  CpuSet cpus;  // may be empty
};
void run_host(const Bench& bench, const std::vector<HostNode>& nodes);

// The GPUs that options choose, in order; an error names one that is not there.
Result<std::vector<const Gpu*>> chosen_gpus(const Bench& bench);

}  // namespace topotune::cuda
