#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace topotune::plan {

// How ranks share the CPUs of a NUMA node: all of them together, or whole cores for each rank alone.
enum class BindingPolicy { node, share };

// What carries the data between ranks.
enum class Transport { nccl, ucx, nccl_over_ucx };

// What is known of the job. Nothing: not said. docs/plan.md lists the keys.
struct Job {
  std::optional<std::string> framework;  // pytorch, jax, megatron, ...: any word
  std::optional<std::string> launcher;   // mpirun, srun, torchrun, kubernetes, docker
  std::optional<double> parameters;      // of the model
  std::optional<int> gpus, nodes, gpus_per_node;
  std::optional<int> tensor_parallel, pipeline_parallel, data_parallel, expert_parallel;
  std::optional<std::uint64_t> message_min, message_max;  // bytes
  std::optional<int> dscp;                                // 0..63: the lossless class of the fabric
  std::optional<std::string> interface;                   // netdev that joins the nodes for bootstrap
  std::optional<int> mtu;                                 // of the Ethernet fabric, every hop
  std::optional<double> port_gbits;                       // of the switch's host ports
  std::optional<double> cable_m;                          // longest cable between host and switch
  std::optional<double> rate_limit_gbits;                 // share of one NIC for this tenant
  std::optional<int> workers;                             // loader processes of a rank
  BindingPolicy binding = BindingPolicy::node;
  Transport transport = Transport::nccl;
  bool irq_spread = false;  // move NIC interrupts even where none was found wrong
  std::vector<std::pair<std::string, std::string>> said;  // key, value as given, in order
};

// One key. The error is exact: "nodes: 0 is not a number from 1 to 1000000".
Result<bool> set_job(Job& job, std::string_view key, std::string_view value);

// A job file: lines "key = value" or "key: value" with `#` comments, or one JSON object of plain values.
// Errors carry the line. A key that stands twice is an error.
Result<Job> parse_job(std::string_view text);

// What cannot be true together. `machine_gpus`: GPUs of the machine the plan is for; nothing: not known.
Result<bool> validate_job(const Job& job, std::optional<int> machine_gpus);

// Ranks of one node: said, or worked out from gpus and nodes.
std::optional<int> ranks_per_node(const Job& job);
bool multi_node(const Job& job);

}  // namespace topotune::plan
