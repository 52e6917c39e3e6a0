#include "cli/job_nodes.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"

namespace topotune::cli {

namespace {

using Words = std::vector<std::string>;

std::string name_of(const std::string& program) { return program.substr(program.rfind('/') + 1); }

template <std::size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& list) {
  return std::ranges::find(list, word) != list.end();
}

// By a scheduler's own number of nodes.
std::optional<bool> several_by(const launch::Environment& environment, const char* name) {
  const auto nodes = parse_int<int>(environment(name).value_or(""));
  return nodes ? std::optional(*nodes > 1) : std::nullopt;
}

// The first --nnodes (or a shorter form of it) in torchrun's words before the script's, or its variable;
// "1:1" is one node, too.
bool several_of_torchrun(const Words& words, const launch::Environment& environment) {
  auto nodes = environment("PET_NNODES").value_or("1");
  const auto end = std::ranges::find_if(words, [](const auto& w) { return w.ends_with(".py"); });
  const auto at = std::find_if(words.begin(), end, [](const auto& w) { return w.starts_with("--nn"); });
  if (at != end) {
    const auto equals = at->find('=');
    nodes = equals != std::string::npos ? at->substr(equals + 1) : at + 1 != words.end() ? at[1] : "";
  }
  return nodes != "1" && nodes != "1:1";
}

// Whatever names hosts, in words or by a scheduler, is not looked into.
bool names_hosts(const launch::Environment& environment) {
  constexpr std::array kNames{"PBS_NODEFILE",
                              "PE_HOSTFILE",
                              "LSB_HOSTS",
                              "LSB_MCPU_HOSTS",
                              "LSB_DJOB_HOSTFILE",
                              "COBALT_NODEFILE",
                              "OAR_NODEFILE",
                              "FLUX_URI",
                              "HYDRA_HOST_FILE",
                              "OMPI_MCA_orte_default_hostfile",
                              "PRTE_MCA_prte_default_hostfile"};
  return std::ranges::any_of(kNames, [&](const char* name) { return environment(name).has_value(); });
}

// A script that was started without a launcher is the whole job, unless something speaks of several processes
// or nodes.
std::optional<bool> several_of_script(const launch::Environment& environment) {
  if (names_hosts(environment)) return std::nullopt;
  for (const char* name : {"SLURM_JOB_NUM_NODES", "SLURM_NNODES", "FLUX_JOB_NNODES", "WORLD_SIZE", "PMI_SIZE",
                           "NNODES", "PET_NNODES"})
    if (const auto value = environment(name); value && *value != "1") return std::nullopt;
  return false;
}

// srun's own words end at the first that is neither an option nor the number of one.
std::optional<bool> several_of_srun(const Words& words, const launch::Environment& environment) {
  constexpr std::array<std::string_view, 6> kCounts{
      "-n", "--ntasks", "-c", "--cpus-per-task", "--ntasks-per-node", "-G"};
  for (std::size_t i = 1; i < words.size() && words[i].starts_with("-"); ++i) {
    const auto& w = words[i];
    if (w == "-N" || w == "--nodes")
      return i + 1 < words.size() && words[i + 1] == "1" ? std::optional(false) : std::nullopt;
    if (w.starts_with("-N") || w.starts_with("--nodes="))
      return w == "-N1" || w == "--nodes=1" ? std::optional(false) : std::nullopt;
    if (one_of(w, kCounts)) ++i;
  }
  return several_by(environment, "SLURM_JOB_NUM_NODES");
}

std::optional<bool> several_of_mpirun(const Words& words, const launch::Environment& environment) {
  if (names_hosts(environment)) return std::nullopt;
  if (environment("SLURM_JOB_ID")) return several_by(environment, "SLURM_JOB_NUM_NODES");
  constexpr std::array<std::string_view, 5> kShort{"-H", "-f", "-rf", "-app", "-configfile"};
  for (const auto& w : words)
    if (one_of(w, kShort) || w.find("host") != std::string::npos || w.find("machine") != std::string::npos ||
        w.find("rankfile") != std::string::npos)
      return std::nullopt;
  return false;
}

}  // namespace

JobNodes nodes_of(const std::optional<launch::Rank>& rank, const Words& command,
                  const launch::Environment& environment) {
  constexpr std::array<std::string_view, 6> kMpirun{"mpirun",  "mpiexec", "mpiexec.hydra",
                                                    "orterun", "prterun", "mpirun_rsh"};
  if (rank) {
    if (rank->size && rank->local_size) return {*rank->size > *rank->local_size, {}};
    return {rank->launcher == "Flux" ? several_by(environment, "FLUX_JOB_NNODES") : std::nullopt, {}};
  }
  if (command.empty()) return {};
  const auto name = name_of(command.front());
  const bool module = name.starts_with("python") && command.size() > 2 && command[1] == "-m" &&
                      (command[2] == "torch.distributed.run" || command[2] == "torch.distributed.launch");
  if (name == "torchrun" || module) return {several_of_torchrun(command, environment), {}};
  if (name.starts_with("python") && command.size() > 1) {
    const auto script = name_of(command[1]);
    if (script == "torchrun")
      return {several_of_torchrun({command.begin() + 1, command.end()}, environment), {}};
    if (script.ends_with(".py")) return {several_of_script(environment), {}};
  }
  if (name == "srun") return {several_of_srun(command, environment), {}};
  if (!one_of(name, kMpirun)) return {};
  const auto several = several_of_mpirun(command, environment);
  return {several, several.value_or(true) ? name : ""};
}

}  // namespace topotune::cli
