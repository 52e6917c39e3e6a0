#include "measure/numa.h"

#include <algorithm>

#include "measure/node_memory.h"

namespace topotune::measure {

namespace {

using model::Measurement;

struct Node {
  int id = 0;
  CpuSet cpus;
  bool memory = true;
  std::map<int, int> distances;
};

// Nodes of the topology; a machine that tells of none is one node with all CPUs of this process.
std::vector<Node> nodes_of(const model::Topology& topology) {
  const CpuSet allowed = allowed_cpus();
  std::vector<Node> nodes;
  for (const auto& node : topology.numa)
    nodes.push_back(
        {node.id, node.cpus.value_or(CpuSet()) & allowed, node.memory_bytes.value_or(1) > 0, node.distances});
  if (nodes.empty()) nodes.push_back({0, allowed, true, {}});
  return nodes;
}

Measurement result(const char* name, const char* unit, int cpu_node, int memory_node, std::size_t bytes) {
  Measurement m;
  m.name = name;
  m.unit = unit;
  m.params = {{"cpu_node", std::int64_t{cpu_node}},
              {"memory_node", std::int64_t{memory_node}},
              {"bytes", static_cast<std::int64_t>(bytes)}};
  return m;
}

class Numa {
 public:
  Numa(Session& session, const model::Topology& topology, const NumaOptions& options)
      : session_(session), options_(options), nodes_(nodes_of(topology)) {}

  void run() {
    const auto with_memory = std::ranges::count_if(nodes_, &Node::memory);
    session_.plan(2 * static_cast<std::size_t>(with_memory));
    for (const auto& memory : nodes_) {
      if (!memory.memory) continue;
      latencies(memory);
      session_.end_part();
      bandwidths(memory);
      session_.end_part();
    }
    if (nodes_.size() < 2) waive_remote();
    for (auto& j : judge_distances(cells_)) session_.judge(j.severity, j.subject, j.text);
  }

 private:
  Result<NodeMemory> allocated(std::size_t bytes, int node) {
    const Session::Timed timed(session_, &model::RunTimes::allocation);
    return NodeMemory::make(bytes, node);
  }

  void latencies(const Node& memory) {
    session_.step(fmt::format("numa.latency: chain in node {}", memory.id));
    auto block = allocated(options_.latency_bytes, memory.id);
    if (!block) {
      session_.fail(result("numa.latency", "seconds", memory.id, memory.id, options_.latency_bytes),
                    block.error().text);
      return;
    }
    CpuChain chain(*block, 1);
    for (const auto& cpu : nodes_) {
      if (cpu.cpus.empty() || session_.stopped()) continue;
      CpuSet one;
      one.add(cpu.cpus.to_vector().front());
      const Pinned pinned(one);
      auto m = result("numa.latency", "seconds", cpu.id, memory.id, block->size());
      m.extra = {{"pages", block->pages()}, {"cpu", std::int64_t{cpu.cpus.to_vector().front()}}};
      auto policy = session_.policy();
      policy.noise.ci = 0.02;
      policy.noise.spread = 0.25;  // other work on the memory controllers
      const auto done =
          session_.sampled(m, policy, [&]() -> Result<double> { return chain.chase(1u << 15); });
      if (done) finish_latency(*done, cpu, memory, chain, pinned.holds());
    }
  }

  void finish_latency(Measurement m, const Node& cpu, const Node& memory, CpuChain& chain, bool pinned) {
    {
      const Session::Timed timed(session_, &model::RunTimes::verification);
      m.verified = chain.closes();
    }
    m.verified_how = m.verified ? "the chain of pointers closed after every line was read"
                                : "the chain of pointers did not close";
    if (!m.verified) m.status = model::MeasureStatus::failed, m.why = m.verified_how;
    if (!pinned && m.status == model::MeasureStatus::ok)
      m.status = model::MeasureStatus::noisy, m.why = "the thread could not be held on its CPU";
    if (m.median) {
      const auto d = memory.distances.find(cpu.id);
      cells_.push_back({cpu.id, memory.id, *m.median,
                        d == memory.distances.end() ? std::nullopt : std::optional(d->second)});
      if (const auto local = local_of(cpu.id)) m.extra.push_back({"ratio_to_local", *m.median / *local});
    }
    session_.add(std::move(m));
  }

  std::optional<double> local_of(int node) const {
    const auto found = std::ranges::find_if(
        cells_, [&](const auto& c) { return c.cpu_node == node && c.memory_node == node; });
    return found == cells_.end() ? std::nullopt : std::optional(found->seconds);
  }

  void bandwidths(const Node& memory) {
    if (session_.stopped()) return;
    session_.step(fmt::format("numa.read: memory of node {}", memory.id));
    const auto block = allocated(options_.bandwidth_bytes, memory.id);
    if (!block) {
      session_.fail(result("numa.read", "gbytes_per_s", memory.id, memory.id, options_.bandwidth_bytes),
                    block.error().text);
      return;
    }
    for (const auto& cpu : nodes_) {
      auto cpus = cpu.cpus.to_vector();
      if (cpus.empty()) continue;
      if (cpus.size() > static_cast<std::size_t>(options_.max_threads))
        cpus.resize(static_cast<std::size_t>(options_.max_threads));
      bandwidth("numa.read", *block, cpu, memory, cpus, read_bandwidth);
      bandwidth("numa.copy", *block, cpu, memory, cpus, copy_bandwidth);
    }
  }

  template <class Measure>
  void bandwidth(const char* name, const NodeMemory& block, const Node& cpu, const Node& memory,
                 const std::vector<int>& cpus, const Measure& measure) {
    if (session_.stopped()) return;
    fill_words(block);
    auto m = result(name, "gbytes_per_s", cpu.id, memory.id, block.size());
    m.extra = {{"threads", static_cast<std::int64_t>(cpus.size())}, {"pages", block.pages()}};
    m.verified = true;  // a wrong sum or copy is an error
    m.verified_how = "what was read or copied was compared with what was written";
    auto policy = session_.policy();
    policy.noise.ci = 0.03;
    policy.max_seconds *= 5;
    policy.noise.spread = 0.3;
    session_.measure(std::move(m), policy, [&] { return measure(block, cpus, 1); });
  }

  void waive_remote() {
    Measurement m;
    m.name = "numa.remote";
    m.unit = "ratio";
    session_.waive(std::move(m), "one NUMA node: every access is local");
  }

  Session& session_;
  const NumaOptions& options_;
  std::vector<Node> nodes_;
  std::vector<NodeLatency> cells_;
};

}  // namespace

std::vector<model::Judgement> judge_distances(const std::vector<NodeLatency>& cells) {
  std::vector<model::Judgement> out;
  for (const auto& near : cells) {
    for (const auto& far : cells) {
      if (near.cpu_node != far.cpu_node || !near.distance || !far.distance || *near.distance >= *far.distance)
        continue;
      if (near.seconds <= 1.2 * far.seconds) continue;
      out.push_back(
          {model::Severity::warn, fmt::format("node {}", near.cpu_node),
           fmt::format("memory of node {} takes {:.1f} ns, of node {} {:.1f} ns, but the machine's distances "
                       "say {} and {}: the firmware's SLIT table is wrong, or the nearer memory is busy",
                       near.memory_node, near.seconds * 1e9, far.memory_node, far.seconds * 1e9,
                       *near.distance, *far.distance)});
    }
  }
  return out;
}

void run_numa(Session& session, const model::Topology& topology, const NumaOptions& options) {
  Numa(session, topology, options).run();
  session.idle();
}

}  // namespace topotune::measure
