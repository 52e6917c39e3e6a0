#pragma once

#include <optional>
#include <vector>

#include "measure/session.h"
#include "model/topology.h"

namespace topotune::measure {

struct NumaOptions {
  std::size_t latency_bytes = 512u << 20;  // of the chain; no line is read twice, so caches do not count
  std::size_t bandwidth_bytes = 512u << 20;
  int max_threads = 64;  // of the bandwidth, a node
};

// Latency (dependent loads) and bandwidth (all CPUs of a node) between every node with CPUs and every node
// with memory, the ratio to local, and whether the order of the latencies is that of the machine's own
// distances. A machine with one node: the local values, and `numa.remote` waived.
void run_numa(Session& session, const model::Topology& topology, const NumaOptions& options);

// One cell of the latency matrix.
struct NodeLatency {
  int cpu_node = 0, memory_node = 0;
  double seconds = 0;
  std::optional<int> distance;  // the machine's own, 10 is local
};
// What the matrix says against the distances: a nearer node (by the distances) that is slower by more than 20
// %.
std::vector<model::Judgement> judge_distances(const std::vector<NodeLatency>& cells);

}  // namespace topotune::measure
