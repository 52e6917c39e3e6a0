// Binding: numactl, taskset, launchers, affinity in Python.
#include <algorithm>

#include "base/cpuset.h"
#include "base/text.h"
#include "lint/context.h"
#include "parse/config_shell.h"

namespace topotune::lint {

namespace {

using model::Severity;
using parse::Command;
using sv = std::string_view;

// What numactl and taskset in front of a program say.
struct Binding {
  bool present = false, fixed = true;  // fixed: no expansion in the lists
  std::optional<CpuSet> cpu_nodes, memory_nodes, cpus;
  std::size_t memory_word = 0;  // the word that holds --membind
  std::size_t first = 0;        // index of numactl or taskset
};

std::optional<CpuSet> list_of(sv text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '!')) return std::nullopt;
  const auto set = parse_cpu_list(text);
  return set && !set->empty() ? set : std::nullopt;
}

void numactl_option(const Command& command, std::size_t& n, Binding& out) {
  sv word = command.words[n];
  const std::size_t at = n;
  std::string value;
  sv name = word;
  if (const auto equals = word.find('='); word.starts_with("--") && equals != sv::npos) {
    name = word.substr(0, equals);
    value = word.substr(equals + 1);
  } else if (word.size() > 2 && word[1] != '-' && is_one_of(word.substr(0, 2), {"-N", "-m", "-C"})) {
    name = word.substr(0, 2);
    value = word.substr(2);
  } else if (is_one_of(name, {"-N", "-m", "-C", "--cpunodebind", "--membind", "--physcpubind"}) &&
             n + 1 < command.words.size()) {
    value = command.words[++n];
  }
  if (!is_one_of(name, {"-N", "-m", "-C", "--cpunodebind", "--membind", "--physcpubind"})) return;
  if (!command.known[at] || !command.known[n]) out.fixed = false;
  if (is_one_of(name, {"-N", "--cpunodebind"})) out.cpu_nodes = list_of(value);
  if (is_one_of(name, {"-C", "--physcpubind"})) out.cpus = list_of(value);
  if (is_one_of(name, {"-m", "--membind"})) {
    out.memory_nodes = list_of(value);
    out.memory_word = at;
  }
}

Binding binding_of(const Command& command) {
  Binding out;
  const auto& words = command.words;
  for (std::size_t n = 0; n < words.size(); ++n) {
    const sv base = parse::base_name(words[n]);
    if (base == "numactl") {
      if (!out.present) out.first = n;
      out.present = true;
      for (++n; n < words.size() && words[n].starts_with('-') && words[n] != "--"; ++n)
        numactl_option(command, n, out);
      --n;
    } else if (base == "taskset" && n + 1 < words.size()) {
      if (!out.present) out.first = n;
      out.present = true;
      const bool list = is_one_of(words[n + 1], {"-c", "--cpu-list", "-ac"});
      const std::size_t at = list ? n + 2 : n + 1;
      if (at >= words.size() || words[at].starts_with('-')) continue;
      if (!command.known[at])
        out.fixed = false;
      else
        out.cpus = list ? list_of(words[at]) : parse_cpu_mask(words[at]);
      n = at;
    }
  }
  return out;
}

bool runs_nothing(sv program) {
  return is_one_of(
      program, {"echo", "printf", "grep", "which", "man", "cat", "apt", "apt-get", "yum", "dnf", "command"});
}

// The programs that the command starts, one per GPU: 8 for `torchrun --nproc_per_node=8`.
std::optional<int> ranks_of(const Context& context, const Command& command) {
  if (const auto launcher = launcher_of(command))
    return launcher->ranks ? launcher->ranks : context.job.ranks_per_node;
  const std::size_t at = parse::program_index(command.words);
  const sv program = at < command.words.size() ? parse::base_name(command.words[at]) : sv();
  if (program == "srun") {
    const auto own = parse_int<int>(option_value(command, {"--ntasks-per-node"}));
    return own ? own : context.job.ranks_per_node;
  }
  if (program.starts_with("mpi")) return parse_int<int>(option_value(command, {"-np", "-n", "-ppn", "--np"}));
  return std::nullopt;
}

std::vector<std::string> visible_gpus(const Context& context, const Command& command) {
  std::string value;
  for (const auto& [name, text] : command.env)
    if (name == "CUDA_VISIBLE_DEVICES") value = text;
  for (const auto& word : command.words)
    if (word.starts_with("CUDA_VISIBLE_DEVICES=")) value = word.substr(21);
  if (value.empty())
    if (const auto* setting = context.last("CUDA_VISIBLE_DEVICES");
        setting != nullptr && setting->scope.empty() && setting->literal)
      value = setting->value;
  std::vector<std::string> out;
  for (const sv item : split(value, ','))
    if (!trim(item).empty()) out.emplace_back(trim(item));
  return out;
}

bool numbers(const std::vector<std::string>& gpus) {
  return !gpus.empty() &&
         std::ranges::all_of(gpus, [](const auto& one) { return parse_int<int>(one).has_value(); });
}

// --- NUMA01, NUMA03
// --------------------------------------------------------------------------------------------

void strict_memory(Context& context, const Command& command, const Binding& binding) {
  if (!binding.memory_nodes || !binding.fixed) return;
  const bool several_ranks = ranks_of(context, command).value_or(1) > 1;
  const bool remote = binding.cpu_nodes ? !binding.memory_nodes->is_subset_of(*binding.cpu_nodes)
                                        : binding.memory_nodes->count() > 1 && !several_ranks;
  if (!remote) return;
  const std::string near = binding.cpu_nodes ? binding.cpu_nodes->to_list() : std::string("N");
  Found& found = context.add("NUMA01", command, fmt::format("--preferred={}, or no memory policy", near));
  found.finding.title =
      fmt::format("--membind={} allows memory of a remote node", binding.memory_nodes->to_list());
  found.finding.remedy = fmt::format("--preferred={}, or no memory option: the first touch is local", near);
  if (binding.cpu_nodes && binding.cpu_nodes->count() == 1)
    context.replace_word(found, command, binding.memory_word, fmt::format("--preferred={}", near));
}

void all_on_one_node(Context& context, const Command& command, const Binding& binding) {
  const bool one_node = binding.cpu_nodes && binding.cpu_nodes->count() == 1;
  if ((!one_node && !binding.cpus) || !binding.fixed) return;
  if (binding.cpu_nodes && !one_node) return;
  const auto ranks = ranks_of(context, command);
  const auto gpus = visible_gpus(context, command);
  // Boards of up to four GPUs may hang on one node; eight do on none.
  const int used = gpus.empty() ? ranks.value_or(0) : static_cast<int>(gpus.size());
  if (!ranks || *ranks < 8 || used < 8) return;
  if (!one_node && binding.cpus->count() >= *ranks * 8) return;  // wide enough to span both sockets
  Found& found = context.add("NUMA03", command, "each rank on its GPU's node");
  found.finding.title = fmt::format("All {} ranks are bound to {}", *ranks,
                                    one_node ? fmt::format("NUMA node {}", binding.cpu_nodes->to_list())
                                             : fmt::format("CPUs {}", binding.cpus->to_list()));
}

// --- NUMA04
// ----------------------------------------------------------------------------------------------------

bool does_nothing(sv program) {
  return program.empty() ||
         is_one_of(program, {"true", ":", "echo", "sleep", "bash", "sh", "exit", "pwd", "date", "hostname"});
}

bool trains(const Context& context) {
  const auto& imports = context.input.facts.imports;
  return imports.count("torch") > 0 || context.job.starts_training;
}

// The words that name a process by its own pid: taskset -p mask $$.
bool by_pid(const Command& command) {
  for (std::size_t n = 0; n + 1 < command.words.size(); ++n)
    if (parse::base_name(command.words[n]) == "taskset")
      for (std::size_t m = n + 1; m < command.words.size() && command.words[m].starts_with('-'); ++m)
        if (command.words[m] == "--pid" ||
            (command.words[m][1] != '-' && command.words[m].find('p') != std::string::npos))
          return true;
  return false;
}

void child_is_bound(Context& context, const Command& command, const Binding& binding) {
  if (command.caller.empty() || !binding.present || context.input.facts.replaces_itself || by_pid(command))
    return;
  const std::size_t at = parse::program_index(command.words);
  const sv program = at < command.words.size() ? parse::base_name(command.words[at]) : sv();
  const bool option_only = has_word(command, "--hardware") || has_word(command, "-H") ||
                           has_word(command, "--show") || has_word(command, "-s");
  if (option_only && at >= command.words.size()) return;
  bool itself = false;
  const sv own = parse::base_name(context.input.name);
  for (std::size_t n = at; n < command.words.size(); ++n)
    itself = itself || parse::base_name(command.words[n]) == own ||
             command.words[n].find("__file__") != std::string::npos;
  const bool python = program.starts_with("python");
  const bool in_worker = !command.function.empty() && does_nothing(program);
  if (!does_nothing(program) && !itself && !in_worker &&
      !(python && command.caller == "os.system" && trains(context)))
    return;
  Found& found = context.add("NUMA04", command, "os.sched_setaffinity(0, cpus)");
  found.finding.title = fmt::format("{}(\"numactl ...\") does not bind this process", command.caller);
  found.finding.remedy =
      "os.sched_setaffinity(0, cpus) before the framework is imported (in a data-loader worker: in "
      "worker_init_fn, "
      "with the rank's node), or bind in the launcher";
}

// --- NUMA05
// ----------------------------------------------------------------------------------------------------

void small_mask_python(Context& context) {
  const auto& facts = context.input.facts;
  if (facts.masks.empty()) return;
  for (const auto& mask : facts.masks) {
    int workers = -1;
    for (const auto& loader : facts.loaders)
      if (!loader.own_mask) workers = std::max(workers, loader.workers);
    if (workers < 0 || mask.cpus >= 2 + workers) continue;
    const std::string need =
        fmt::format("{} CPUs or more: 1 + {} workers + NCCL's proxy thread", 2 + workers, workers);
    Found& found =
        context.add("NUMA05", mask.at, "sched_setaffinity", need, fmt::format("{} CPUs", mask.cpus));
    found.finding.title = fmt::format("{} CPUs for a rank with {} data-loader workers", mask.cpus, workers);
  }
}

void small_mask_command(Context& context, const Command& command, const Binding& binding) {
  const auto workers = parse_int<int>(
      option_value(command, {"--num_workers", "--num-workers", "--workers", "--dataloader-workers",
                             "--dataloader_num_workers", "--dataloader-num-workers"}));
  if (!workers) return;
  const int ranks = std::max(1, ranks_of(context, command).value_or(1));
  std::optional<int> cpus;
  if (binding.cpus && binding.fixed)
    cpus = binding.cpus->count();
  else if (!binding.present && context.job.cpus_per_task)
    cpus = *context.job.cpus_per_task;
  const bool task_is_rank = !binding.cpus && !launcher_of(command);
  const int per_rank = cpus ? *cpus / (task_is_rank ? 1 : ranks) : 0;
  if (!cpus || per_rank >= 2 + *workers) return;
  Found& found = context.add(
      "NUMA05", command,
      fmt::format("{} CPUs a rank: 1 + {} workers + NCCL's proxy thread", 2 + *workers, *workers));
  found.finding.observed = fmt::format("{} CPUs for {} rank{}", *cpus, ranks, ranks == 1 ? "" : "s");
  found.finding.title = fmt::format("{} CPUs for a rank with {} data-loader workers", per_rank, *workers);
}

// --- NUMA09
// ----------------------------------------------------------------------------------------------------

struct Half {
  const Command* command = nullptr;
  std::string port, script;
  std::vector<std::string> arguments, gpus;
};

std::optional<Half> half_of(const Context& context, const Command& command) {
  Half out;
  out.command = &command;
  const bool own =
      std::ranges::any_of(command.env, [](const auto& one) { return one.first == "CUDA_VISIBLE_DEVICES"; }) ||
      std::ranges::any_of(command.words,
                          [](const auto& word) { return word.starts_with("CUDA_VISIBLE_DEVICES="); });
  if (!own) return std::nullopt;
  out.gpus = visible_gpus(context, command);
  if (out.gpus.empty()) return std::nullopt;
  if (const auto launcher = launcher_of(command)) {
    if (launcher->nodes.value_or(1) != 1 || launcher->script.empty()) return std::nullopt;
    out.port = launcher->standalone ? fmt::format("line {}", command.at.line) : launcher->port;
    out.script = launcher->script;
    out.arguments = launcher->script_arguments;
    return out;
  }
  const std::size_t at = parse::program_index(command.words);
  if (at >= command.words.size() || !parse::base_name(command.words[at]).starts_with("python") ||
      out.gpus.size() < 2)
    return std::nullopt;
  std::size_t n = at + 1;
  while (n < command.words.size() && command.words[n].starts_with("-u")) ++n;
  if (n >= command.words.size() || !command.words[n].ends_with(".py") || !command.background)
    return std::nullopt;
  out.port = fmt::format("line {}", command.at.line);  // no rendezvous at all
  out.script = command.words[n];
  out.arguments.assign(command.words.begin() + static_cast<std::ptrdiff_t>(n) + 1, command.words.end());
  return out;
}

bool disjoint(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::ranges::none_of(a, [&](const auto& one) { return std::ranges::find(b, one) != b.end(); });
}

void two_launchers(Context& context) {
  std::vector<Half> halves;
  for (const auto& command : context.input.facts.commands) {
    auto half = half_of(context, command);
    if (!half || halves.size() > 64) continue;
    for (const auto& other : halves) {
      const bool two_ports = half->port != other.port && !half->port.empty() && !other.port.empty();
      if (!two_ports || half->script != other.script || half->arguments != other.arguments ||
          !disjoint(half->gpus, other.gpus))
        continue;
      Found& found = context.add("NUMA09", command, "one launcher with all GPUs");
      found.finding.subject = half->script;
      found.finding.title =
          fmt::format("{} is started twice: two jobs that never exchange gradients", half->script);
      found.finding.evidence.push_back({fmt::format("{}:{}", context.input.name, other.command->at.line),
                                        joined(*other.command).substr(0, 200)});
      break;
    }
    halves.push_back(std::move(*half));
  }
}

// --- NUMA11
// ----------------------------------------------------------------------------------------------------

void gpu_order(Context& context) {
  if (context.has("CUDA_DEVICE_ORDER", "PCI_BUS_ID") || context.mentions({"PCI_BUS_ID"})) return;
  for (const auto& command : context.input.facts.commands) {
    const Binding binding = binding_of(command);
    const bool mapped = (binding.present && (binding.cpu_nodes || binding.cpus)) ||
                        std::ranges::any_of(command.env, [](const auto& one) {
                          return is_one_of(one.first, {"UCX_NET_DEVICES", "NCCL_IB_HCA"});
                        });
    const auto gpus = mapped ? visible_gpus(context, command) : std::vector<std::string>();
    if (!mapped || !numbers(gpus)) continue;
    Found& found = context.add("NUMA11", command, "CUDA_DEVICE_ORDER=PCI_BUS_ID");
    found.finding.severity = Severity::info;  // both orders agree while all GPUs are one model
    found.finding.subject = "CUDA_VISIBLE_DEVICES";
    return;
  }
}

}  // namespace

void check_binding(Context& context) {
  for (const auto& command : context.input.facts.commands) {
    const std::size_t at = parse::program_index(command.words);
    if (at < command.words.size() && runs_nothing(parse::base_name(command.words[at])) &&
        command.caller.empty())
      continue;
    const Binding binding = binding_of(command);
    if (binding.present) {
      strict_memory(context, command, binding);
      all_on_one_node(context, command, binding);
      child_is_bound(context, command, binding);
    }
    small_mask_command(context, command, binding);
  }
  small_mask_python(context);
  two_launchers(context);
  gpu_order(context);
}

}  // namespace topotune::lint
