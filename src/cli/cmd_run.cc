#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/planning.h"
#include "cli/tune_apply.h"
#include "emit/plan_files.h"
#include "launch/bind.h"
#include "launch/quick.h"
#include "launch/rank.h"
#include "launch/start.h"

namespace topotune::cli {

namespace {

struct RunOptions {
  PlanRequest request;
  std::string topology;  // INPUT that stands for the machine; "" this one
  std::string memory = "preferred";
  std::string report_file;
  std::string tuned;  // table for the tuner plugin; "" none
  bool profiled = false;
  std::string sysroot;
  std::vector<std::string> keep, command;
  bool dry_run = false, per_gpu = false, no_env = false;
};

// What one process gets.
struct Start {
  std::optional<launch::Rank> rank;
  std::vector<model::Binding> bindings;  // one; all visible GPUs' where no rank is known
  CpuSet cpus;
  std::optional<int> memory_node;
  std::string memory;  // what became of it, for people
  std::vector<launch::EnvironmentChange> changes;
  std::vector<std::string> notes;
};

Result<Planned> make_plan(const RunOptions& options, const Globals& globals) {
  auto request = options.request;
  request.is_rank = true;
  auto job = job_of(request);
  if (!job) return tl::unexpected(job.error());
  if (!options.topology.empty()) {
    auto input = load_input(options.topology, globals);
    if (!input) return tl::unexpected(input.error());
    return plan_input(request, std::move(*input), std::move(*job), MachineRules::skip, globals);
  }
  const launch::PlainHost host(globals.sysroot);
  Input input;
  input.machine = launch::quick_machine(host);
  input.kind = model::SourceKind::live;
  input.name = "live";
  const auto allowed = launch::allowed_by_cpuset();
  if (allowed && globals.sysroot.empty())
    input.machine.allowed_cpus = model::Fact<CpuSet>::of(*allowed, "sched_getaffinity");
  // A processor that was taken off line is not in the kernel's answer.
  return plan_input(request, std::move(input), std::move(*job), MachineRules::skip, globals);
}

bool one_model(const model::Topology& topology) {
  return std::ranges::all_of(topology.gpus, [&](const model::Gpu& gpu) {
    return gpu.pci_device == topology.gpus.front().pci_device;
  });
}

std::vector<launch::EnvironmentChange> changes_of(const RunOptions& options, const Planned& planned,
                                                  const launch::Visible& visible,
                                                  std::vector<std::string>& notes) {
  std::vector<launch::EnvironmentChange> out;
  if (options.no_env) return out;
  for (const auto& action : planned.plan.actions) {
    if (action.kind != model::ActionKind::env ||
        std::ranges::find(options.keep, action.target) != options.keep.end())
      continue;
    if (action.target == "CUDA_DEVICE_ORDER" && !visible.from.empty() &&
        !one_model(planned.input.machine.topology)) {
      notes.push_back(fmt::format(
          "CUDA_DEVICE_ORDER is left alone: {} counts GPUs of different models by CUDA's own order",
          visible.from));
      continue;
    }
    const char* now = std::getenv(action.target.c_str());
    if (action.value ? now != nullptr && *action.value == now : now == nullptr) continue;
    out.push_back({action.target, action.value});
  }
  return out;
}

const model::Binding* binding_of(const Planned& planned, std::size_t gpu) {
  const auto& topology = planned.input.machine.topology;
  const auto at = std::ranges::find(planned.plan.bindings, topology.gpus[gpu].id, &model::Binding::gpu);
  return at == planned.plan.bindings.end() ? nullptr : &*at;
}

// Without a rank the process may use every visible GPU: the CPUs of all of them, and a memory node only if it
// is one.
void join(Start& start, const model::Binding& binding, bool first) {
  start.cpus = start.cpus | binding.cpus;
  if (first)
    start.memory_node = binding.memory_node;
  else if (start.memory_node != binding.memory_node)
    start.memory_node.reset();
  start.bindings.push_back(binding);
}

// The plugins' variables, and what their table sets: they win over the plan's.
Result<bool> add_plugins(const RunOptions& options, const Planned& planned,
                         const std::optional<launch::Rank>& rank, Start& out) {
  std::vector<launch::EnvironmentChange> added;
  const PluginJob job{rank,           options.command, options.keep, planned.settings, options.sysroot,
                      options.dry_run};
  if (!options.tuned.empty()) {
    auto changes = tuned_changes(options.tuned, job, out.notes);
    if (!changes) return tl::unexpected(changes.error());
    added = std::move(*changes);
  }
  if (options.profiled) {
    auto changes = profiled_changes(job, out.notes);
    if (!changes) return tl::unexpected(changes.error());
    added.insert(added.end(), changes->begin(), changes->end());
  }
  for (auto& change : added) {
    if (std::ranges::find(options.keep, change.name) != options.keep.end()) continue;
    std::erase_if(out.changes, [&](const auto& c) { return c.name == change.name; });
    out.changes.push_back(std::move(change));
  }
  return true;
}

Result<Start> start_of(const RunOptions& options, const Planned& planned, std::optional<launch::Rank> rank) {
  Start out;
  const auto visible =
      launch::visible_gpus(launch::process_environment(), launch::known_gpus(planned.input.machine));
  if (!visible) return tl::unexpected(visible.error());
  out.changes = changes_of(options, planned, *visible, out.notes);
  if (auto added = add_plugins(options, planned, rank, out); !added) return tl::unexpected(added.error());
  std::vector<std::size_t> gpus = visible->gpus;
  // Where jobs are submitted there is none, but the variables can be looked at.
  const bool variables = options.dry_run && !options.tuned.empty();
  if (rank && !(gpus.empty() && variables)) {
    const auto gpu = launch::gpu_of_rank(*rank, *visible);
    if (!gpu) return tl::unexpected(gpu.error());
    gpus = {*gpu};
  }
  if (gpus.empty()) {
    const auto why =
        visible->from.empty() ? "no GPU was found on this machine" : visible->from + " leaves no GPU";
    if (!variables) return fail(Errc::not_found, "{}", why);
    out.notes.push_back(why);
  }
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (const auto* binding = binding_of(planned, gpus[i])) join(out, *binding, i == 0);
  out.rank = std::move(rank);
  return out;
}

launch::MemoryPolicy policy_of(const RunOptions& options) {
  if (options.memory == "none") return launch::MemoryPolicy::none;
  return options.memory == "strict" ? launch::MemoryPolicy::strict : launch::MemoryPolicy::preferred;
}

// CPUs must hold; memory that cannot be bound (a container forbids set_mempolicy) is said and nothing is
// lost: pages still come from the node of the CPU that touches them first.
Result<bool> bind(const RunOptions& options, Start& start) {
  if (start.cpus.empty()) {
    start.memory = "not bound";
    return true;
  }
  if (!options.dry_run) {
    const auto bound = launch::bind_cpus(start.cpus);
    if (!bound) return tl::unexpected(bound.error());
    if (!(*bound == start.cpus))
      start.notes.push_back(fmt::format("the kernel left CPUs {}", bound->to_list()));
    start.cpus = *bound;
  }
  const auto policy = policy_of(options);
  if (!start.memory_node || policy == launch::MemoryPolicy::none) {
    start.memory = start.bindings.size() > 1 && !start.memory_node ? "of any node" : "first touch";
    return true;
  }
  start.memory = fmt::format("node {} ({})", *start.memory_node, options.memory);
  if (options.dry_run) return true;
  if (const auto done = launch::bind_memory(*start.memory_node, policy); !done) {
    if (policy == launch::MemoryPolicy::strict) return tl::unexpected(done.error());
    start.memory = "first touch (" + done.error().text + ")";
  }
  return true;
}

std::string rank_text(const Start& start) {
  if (!start.rank) return "no launcher";
  std::string out = fmt::format("local rank {}", start.rank->local);
  if (start.rank->global)
    out = fmt::format("rank {}{}, ", *start.rank->global,
                      start.rank->size ? fmt::format(" of {}", *start.rank->size) : "") +
          out;
  return out + " (" + start.rank->launcher + ")";
}

std::string gpus_text(const Start& start) {
  std::vector<std::string> out;
  for (const auto& binding : start.bindings)
    out.push_back(binding.gpu + (start.bindings.size() == 1 && binding.bdf ? " " + *binding.bdf : ""));
  return fmt::format("{}", fmt::join(out, ","));
}

std::vector<std::string> nics_of(const Start& start) {
  std::vector<std::string> out;
  for (const auto& binding : start.bindings)
    for (const auto& nic : binding.nic_names)
      if (std::ranges::find(out, nic) == out.end()) out.push_back(nic);
  return out;
}

std::string place_text(const Start& start) {
  std::string out = fmt::format("{}: {}, CPUs {}, memory {}", rank_text(start),
                                start.bindings.empty() ? "no GPU" : gpus_text(start),
                                start.cpus.empty() ? "all" : start.cpus.to_list(), start.memory);
  if (const auto nics = nics_of(start); !nics.empty()) out += fmt::format(", NICs {}", fmt::join(nics, ","));
  return out;
}

std::string line_of(const Start& start) {
  auto out = place_text(start);
  for (const auto& change : start.changes)
    out += change.value ? fmt::format("; {}={}", change.name, *change.value)
                        : fmt::format("; {} unset", change.name);
  for (const auto& note : start.notes) out += "; " + note;
  return printable(out);
}

// The variables as lines for a shell, the rest as comments.
std::string shell_text(const Start& start) {
  auto out = "# " + printable(place_text(start)) + "\n";
  for (const auto& note : start.notes) out += "# " + printable(note) + "\n";
  for (const auto& change : start.changes)
    out += change.value ? fmt::format("export {}={}\n", change.name, emit::shell_word(*change.value))
                        : fmt::format("unset {}\n", change.name);
  return out;
}

std::string report_json(const Start& start, const std::vector<std::string>& command,
                        const RunOptions& options) {
  nlohmann::ordered_json out;
  out["schema"] = "topotune.run/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["pid"] = ::getpid();
  const auto number = [](const std::optional<int>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  if (start.rank)
    out["rank"] = {{"local", start.rank->local},
                   {"local_size", number(start.rank->local_size)},
                   {"global", number(start.rank->global)},
                   {"size", number(start.rank->size)},
                   {"launcher", start.rank->launcher}};
  else
    out["rank"] = nullptr;
  out["gpus"] = nlohmann::ordered_json::array();
  for (const auto& binding : start.bindings)
    out["gpus"].push_back(
        {{"id", binding.gpu},
         {"bdf", binding.bdf ? nlohmann::ordered_json(*binding.bdf) : nlohmann::ordered_json(nullptr)}});
  out["cpus"] =
      start.cpus.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(start.cpus.to_list());
  out["memory_node"] = number(start.memory_node);
  out["memory"] = printable(start.memory);
  out["nics"] = nics_of(start);
  out["environment"] = nlohmann::ordered_json::object();
  for (const auto& change : start.changes)
    out["environment"][change.name] =
        change.value ? nlohmann::ordered_json(printable(*change.value)) : nlohmann::ordered_json(nullptr);
  out["bound"] = !options.dry_run;
  out["notes"] = start.notes;
  out["command"] = command;
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// One write of one line behind the others: ranks share the file.
Result<bool> append_report(const std::string& file, const std::string& line) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const bool good = fd >= 0 && ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int number = errno;
  if (fd >= 0) ::close(fd);
  if (!good) return fail(Errc::io, "--report {}: {}", file, std::strerror(number));
  return true;
}

// Binds, says so, and becomes the command; a status only where that fails, or with --dry-run.
int become(const RunOptions& options, const Globals& globals, Start start,
           const std::vector<std::string>& command) {
  if (const auto bound = bind(options, start); !bound) return report(bound.error());
  launch::apply_to_environment(start.changes);
  if (!options.report_file.empty())
    if (const auto written = append_report(options.report_file, report_json(start, command, options));
        !written)
      return report(written.error());
  if (options.dry_run)
    return write_result(globals, globals.json ? report_json(start, command, options) : shell_text(start));
  if (!globals.quiet) fmt::print(stderr, "topotune: {}\n", line_of(start));
  return report(launch::replace_by(command));
}

// Ranks 0 to n-1 of one node, as torchrun names them.
launch::Rank rank_for(int local, int size) {
  launch::Rank rank;
  rank.local = local;
  rank.local_size = rank.size = size;
  rank.global = local;
  rank.launcher = "--per-gpu";
  return rank;
}

void name_rank(Start& start, int local, int size) {
  const auto set = [&](const char* name, std::string value) {
    start.changes.push_back({name, std::move(value)});
  };
  for (const auto* name : {"LOCAL_RANK", "RANK"}) set(name, std::to_string(local));
  for (const auto* name : {"LOCAL_WORLD_SIZE", "WORLD_SIZE"}) set(name, std::to_string(size));
  if (std::getenv("MASTER_ADDR") == nullptr) set("MASTER_ADDR", "127.0.0.1");
  if (std::getenv("MASTER_PORT") == nullptr) set("MASTER_PORT", "29500");
}

int run_per_gpu(const RunOptions& options, const Globals& globals, const Planned& planned,
                const std::vector<std::string>& command) {
  const auto visible =
      launch::visible_gpus(launch::process_environment(), launch::known_gpus(planned.input.machine));
  if (!visible) return report(visible.error());
  if (visible->gpus.empty())
    return report(Error{Errc::not_found, "no GPU was found on this machine", {}, {}, {}, {}});
  const auto ranks = plan::ranks_per_node(planned.job).value_or(static_cast<int>(visible->gpus.size()));
  std::vector<Start> starts;
  for (int local = 0; local < ranks; ++local) {
    auto start = start_of(options, planned, rank_for(local, ranks));
    if (!start) return report(start.error());
    name_rank(*start, local, ranks);
    starts.push_back(std::move(*start));
  }
  if (options.dry_run) {
    std::string out;
    for (auto& start : starts) {
      if (const auto bound = bind(options, start); !bound) return report(bound.error());
      out += globals.json ? report_json(start, command, options) : shell_text(start);
    }
    return write_result(globals, out);
  }
  return launch::run_children(
      starts.size(), [&](std::size_t i) { return become(options, globals, std::move(starts[i]), command); });
}

int run(const RunOptions& options, const Globals& globals) {
  const auto& command = options.command;
  if (command.empty() && !options.dry_run)
    return report(Error{Errc::usage, "run: no command", {}, {}, {}, "topotune run -- CMD ARGUMENTS"});
  const auto rank = launch::detect_rank(launch::process_environment());
  if (!rank) return report(rank.error());
  if (*rank && options.per_gpu)
    return report(Error{Errc::usage,
                        fmt::format("--per-gpu inside a rank of {}", (*rank)->launcher),
                        {},
                        {},
                        {},
                        "either a launcher or --per-gpu starts the ranks"});
  const auto planned = make_plan(options, globals);
  if (!planned) return report(planned.error());
  if (options.per_gpu) return run_per_gpu(options, globals, *planned, command);
  auto start = start_of(options, *planned, *rank);
  if (!start) return report(start.error());
  return become(options, globals, std::move(*start), command);
}

}  // namespace

void add_run(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<RunOptions>();
  auto* verb = app.add_subcommand(
      "run", "start a command bound to its GPU's CPUs and memory, with the planned variables");
  verb->add_option("CMD", options->command, "the command and its arguments; what follows it is its own");
  verb->positionals_at_end();
  add_job_options(*verb, options->request);
  verb->add_flag("--dry-run", options->dry_run, "say what would be done; start nothing");
  verb->add_flag("--per-gpu", options->per_gpu,
                 "start one process for each GPU (sets RANK, LOCAL_RANK, WORLD_SIZE, ...)");
  verb->add_option("--report", options->report_file, "append what was done to FILE, one JSON line a process")
      ->type_name("FILE");
  verb->add_option("--memory", options->memory, "how memory keeps to the GPU's node")
      ->check(CLI::IsMember({"preferred", "strict", "none"}))
      ->type_name("POLICY");
  verb->add_option("--topology", options->topology,
                   "plan for the machine of this input instead of reading this one")
      ->type_name("INPUT");
  auto* tuned = verb->add_option("--tuned", options->tuned, "NCCL follows this table of `topotune tune`")
                    ->type_name("TABLE");
  auto* profiled =
      verb->add_flag("--profiled", options->profiled, "NCCL's collectives are recorded in /dev/shm");
  verb->add_option("--keep", options->keep, "leave this variable as it is (repeatable)")->type_name("NAME");
  verb->add_flag("--no-env", options->no_env, "bind only; change no variable")
      ->excludes(tuned)
      ->excludes(profiled);
  verb->footer(
      "The rank comes from Open MPI, MPICH, Slurm, Flux or torchrun; without one, the command gets the CPUs "
      "of all visible GPUs.\n"
      "Children inherit the binding: loader workers, NCCL's proxy threads. Exit status: the command's; 3 "
      "where it was not started.\n"
      "Examples:\n"
      "  mpirun -np 8 topotune run -- ./all_reduce_perf -b 8 -e 1G -f 2\n"
      "  srun --ntasks-per-node=8 topotune run -- python train.py\n"
      "  torchrun --nproc-per-node=8 --no-python topotune run -- python train.py\n"
      "  topotune run --per-gpu -- python train.py\n"
      "  topotune run --per-gpu --dry-run\n"
      "  torchrun --nproc-per-node=8 --no-python topotune run --tuned node.table -- python train.py");
  verb->callback([options, &globals, &status] {
    options->sysroot = globals.sysroot;
    status = run(*options, globals);
  });
}

}  // namespace topotune::cli
