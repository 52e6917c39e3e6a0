#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device.h"
#include "gdr/expected.h"
#include "measure/session.h"
#include "model/machine.h"

namespace topotune::gdr {

struct SuiteOptions {
  std::vector<std::size_t> sizes{65536, std::size_t{1} << 20, std::size_t{8} << 20};  // of bandwidths
  bool host = true, gpu = true;
  std::vector<std::string> nics;  // devices; empty: all with an active port
  std::vector<std::string> gpus;  // ids; empty: all
  bool all_pairs = false;         // every ordered pair of ports instead of each with itself and the next
  int window = 32;
  double limit_seconds = 30;  // of one transfer
};

// What the suite works with. Everything outlives it.
struct Bench {
  measure::Session& session;
  const model::Machine& machine;
  const cuda::Machine* gpus = nullptr;  // null: gpus_why says why
  std::string gpus_why;
  const SuiteOptions& options;
};

// NIC memory to NIC memory by RDMA write and read, in one process: each port with itself and with its
// neighbour, in host memory, and in the memory of each GPU.
void run_gdr(const Bench& bench);

// Active ports of the chosen devices, in the machine's order.
std::vector<const model::RdmaPort*> ports_of(const model::Machine& machine,
                                             const std::vector<std::string>& nics);
// Each with itself, then with its neighbour in a ring (or with every other one), of one link layer.
using Ends = std::pair<const model::RdmaPort*, const model::RdmaPort*>;
std::vector<Ends> ends_of(const std::vector<const model::RdmaPort*>& ports, bool all_pairs);
// The entry of the GID table by which a port is addressed; -1: by its LID. RoCE v2 with an IPv4 address
// before other RoCE v2 before others.
int gid_index_of(const model::RdmaPort& port);

// GPU memory that the NIC moves at under 70 % of what it does with host memory (rule GDR05).
std::vector<model::Judgement> judge_gpu_memory(const std::vector<model::Measurement>& results);

}  // namespace topotune::gdr
