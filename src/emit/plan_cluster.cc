// Forms for schedulers and launchers: Slurm, Open MPI, Kubernetes.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "emit/plan_files.h"

namespace topotune::emit {

namespace {

using model::ActionKind;

int nodes_of(const model::Plan& plan) { return parse_int<int>(said(plan, "nodes").value_or("")).value_or(1); }
std::size_t ranks_of(const model::Plan& plan) {
  const auto ranks = parse_int<std::size_t>(said(plan, "gpus_per_node").value_or(""));
  return std::min(ranks.value_or(plan.bindings.size()), plan.bindings.size());
}
// More nodes than this are not written out one by one.
constexpr int kMostNodes = 4096;

// Slurm reads NAME=value lines from a task prolog's output ("export NAME=value", "unset NAME"; slurm.conf(5)
// TaskProlog).
std::optional<std::string> slurm_prolog(const model::Plan& plan) {
  std::string out;
  for (const auto& action : plan.actions) {
    if (action.kind != ActionKind::env) continue;
    out += action.value ? fmt::format("printf '%s\\n' {}\n",
                                      shell_word("export " + action.target + "=" + *action.value))
                        : fmt::format("printf '%s\\n' {}\n", shell_word("unset " + action.target));
  }
  if (out.empty()) return std::nullopt;
  return "#!/bin/sh\n" +
         form_head(plan,
                   "TaskProlog of slurm.conf: what it prints changes the task's environment; binding: srun "
                   "... topotune run -- CMD") +
         out;
}

// Cores= are numbers of cores as slurmd counts them (gres.conf(5)), which the CPU numbers of the system do
// not tell.
std::optional<std::string> gres_conf(const model::Plan& plan) {
  if (plan.bindings.empty()) return std::nullopt;
  std::string out =
      "# No Cores=: Slurm counts cores in its own order (slurmd -C; lstopo --logical), the CPUs below are "
      "the "
      "system's numbers\n";
  for (std::size_t i = 0; i < plan.bindings.size(); ++i) {
    const auto& binding = plan.bindings[i];
    out += fmt::format("Name=gpu File=/dev/nvidia{}  # {}{}", i, binding.gpu,
                       binding.bdf ? " " + *binding.bdf : "");
    if (!binding.cpus.empty()) out += ", CPUs " + binding.cpus.to_list();
    out += '\n';
  }
  return form_head(plan, "gres.conf; AutoDetect=nvml does the same where NVML knows the CPUs") + out;
}

// One switch: what a single node can know. A fabric's tree comes from its subnet manager.
std::optional<std::string> topology_conf(const model::Plan& plan) {
  if (nodes_of(plan) < 2 || nodes_of(plan) > kMostNodes) return std::nullopt;
  return form_head(
             plan,
             "topology.conf (TopologyPlugin=topology/tree); put the real names, one line a leaf switch") +
         fmt::format("SwitchName=leaf0 Nodes=node[0-{}]\n", nodes_of(plan) - 1);
}

// The CPU numbers are the system's: Open MPI takes them for logical ones unless told otherwise (mpirun(1)).
std::optional<std::string> rankfile(const model::Plan& plan) {
  if (plan.bindings.empty() || plan.bindings.front().cpus.empty()) return std::nullopt;
  if (nodes_of(plan) > kMostNodes) return std::nullopt;
  std::string out;
  const auto ranks = ranks_of(plan);
  for (int node = 0; node < nodes_of(plan); ++node)
    for (std::size_t i = 0; i < ranks; ++i)
      out += fmt::format("rank {}=+n{} slot={}\n", static_cast<std::size_t>(node) * ranks + i, node,
                         plan.bindings[i].cpus.to_list());
  return form_head(
             plan,
             "Open MPI 4: mpirun --rankfile FILE --mca rmaps_rank_file_physical 1 --mca "
             "rmaps_base_mapping_policy \"\" --use-hwthread-cpus; +nN is the N-th node of the allocation; "
             "Open MPI 5 reads logical numbers only: there mpirun --bind-to none topotune run -- CMD") +
         out;
}

std::optional<std::string> hostfile(const model::Plan& plan) {
  if (plan.bindings.empty() || nodes_of(plan) > kMostNodes) return std::nullopt;
  std::string out;
  for (int node = 0; node < nodes_of(plan); ++node)
    out += fmt::format("node{} slots={}\n", node, ranks_of(plan));
  return form_head(plan,
                   "Open MPI hostfile: put the real names; the order of the lines is the order of the ring "
                   "between nodes") +
         out;
}

std::string yaml_env(const model::Plan& plan, std::string_view indent) {
  std::string out;
  for (const auto& action : plan.actions)
    if (action.kind == ActionKind::env && action.value)
      out += fmt::format("{}- name: {}\n{}  value: {}\n", indent, action.target, indent,
                         yaml_word(*action.value));
  return out.empty() ? "" : fmt::format("{}env:\n{}", indent, out);
}

std::string pod_spec(const model::Plan& plan, std::string_view indent) {
  const auto line = [&](std::string_view text) { return fmt::format("{}{}\n", indent, text); };
  const bool rdma = std::ranges::any_of(plan.bindings, [](const auto& b) { return !b.nic_names.empty(); });
  std::size_t cpus = 0;
  for (const auto& binding : plan.bindings) cpus += static_cast<std::size_t>(binding.share.count());
  std::string out =
      line("containers:") + line("- name: train") + line("  image: IMAGE") +
      line("  command: [\"topotune\", \"run\", \"--per-gpu\", \"--\", \"CMD\"]") +
      yaml_env(plan, std::string(indent) + "  ") + line("  securityContext:") +
      line(fmt::format("    capabilities: {{add: [\"SYS_NICE\"{}]}}", rdma ? ", \"IPC_LOCK\"" : "")) +
      line("  resources:") + line("    limits:") +
      line(fmt::format("      nvidia.com/gpu: {}", ranks_of(plan)));
  if (rdma) out += line("      rdma/hca: 1  # the name is the RDMA device plugin's");
  if (cpus > 0)
    out += line(fmt::format("      cpu: {}", cpus)) +
           line("      memory: MEMORY  # limits equal to requests: class Guaranteed, whole CPUs");
  out += line("  volumeMounts:") + line("  - {name: shm, mountPath: /dev/shm}") + line("volumes:") +
         line("- name: shm") + line("  emptyDir: {medium: Memory, sizeLimit: 8Gi}");
  return out;
}

std::string kubernetes_notes() {
  return "# kubelet: cpuManagerPolicy: static, topologyManagerPolicy: restricted, topologyManagerScope: "
         "pod.\n"
         "# single-numa-node refuses a pod that needs the GPUs of both sockets; restricted takes as few "
         "nodes as can be.\n"
         "# Ranks of one host in different pods share neither /dev/shm nor NVLink P2P: one pod a host.\n";
}

std::optional<std::string> kubernetes(const model::Plan& plan) {
  if (plan.bindings.empty()) return std::nullopt;
  return form_head(plan, "a Pod; IMAGE, CMD and MEMORY are yours") + kubernetes_notes() +
         "apiVersion: v1\nkind: Pod\nmetadata:\n  name: train\nspec:\n  restartPolicy: Never\n" +
         pod_spec(plan, "  ");
}

std::optional<std::string> mpijob(const model::Plan& plan) {
  if (plan.bindings.empty()) return std::nullopt;
  const auto nodes = nodes_of(plan);
  std::string worker = pod_spec(plan, "          ");
  const auto run = worker.find("  command: ");
  worker.erase(worker.rfind('\n', run) + 1, worker.find('\n', run) - worker.rfind('\n', run));
  return form_head(plan, "an MPIJob (kubeflow.org/v2beta1); IMAGE, CMD and MEMORY are yours") +
         kubernetes_notes() +
         fmt::format(
             "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata:\n  name: train\nspec:\n  "
             "slotsPerWorker: {}\n  mpiReplicaSpecs:\n    Launcher:\n      replicas: 1\n      template:\n    "
             "    spec:\n"
             "          containers:\n          - name: launcher\n            image: IMAGE\n            "
             "command: "
             "[\"mpirun\", \"-np\", \"{}\", \"--bind-to\", \"none\", \"topotune\", \"run\", \"--\", "
             "\"CMD\"]\n"
             "    Worker:\n      replicas: {}\n      template:\n        spec:\n",
             ranks_of(plan), ranks_of(plan) * static_cast<std::size_t>(nodes), nodes) +
         worker;
}

constexpr PlanForm kForms[] = {{"slurm-prolog", "a TaskProlog: prints the variables for Slurm", slurm_prolog},
                               {"gres.conf", "GPUs and their CPUs for Slurm", gres_conf},
                               {"topology.conf", "a leaf switch for Slurm's topology/tree", topology_conf},
                               {"rankfile", "CPUs of each rank for Open MPI", rankfile},
                               {"hostfile", "nodes and slots for Open MPI", hostfile},
                               {"kubernetes", "a Pod, with notes on the Topology Manager", kubernetes},
                               {"mpijob", "an MPIJob", mpijob}};

}  // namespace

std::span<const PlanForm> plan_cluster_forms() { return kForms; }

}  // namespace topotune::emit
