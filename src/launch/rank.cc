// Variables by which launchers tell a process its rank: Open MPI (orterun(1)), MPICH and Intel MPI (Hydra),
// MVAPICH2, Cray PALS, Slurm (srun(1)), Flux, torchrun (torch.distributed.run).
#include "launch/rank.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/text.h"

namespace topotune::launch {

namespace {

struct Names {
  const char* launcher;
  const char* needs;  // another variable that proves that launcher; "" none
  const char *local, *local_size, *global, *size;
};

// Innermost first: torchrun is started by MPI or Slurm more often than the other way round.
constexpr std::array<Names, 8> kLaunchers{{
    {"torchrun", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "RANK", "WORLD_SIZE"},
    {"Open MPI", "", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE"},
    {"MVAPICH2", "", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_RANK",
     "MV2_COMM_WORLD_SIZE"},
    {"MPICH", "", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_RANK", "PMI_SIZE"},
    {"PALS", "", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "PALS_RANKID", ""},
    {"Flux", "", "FLUX_TASK_LOCAL_ID", "", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    // Batch scripts have SLURM_LOCALID too; only a step has its number.
    {"Slurm", "SLURM_STEP_ID", "SLURM_LOCALID", "", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"launcher", "", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "RANK", "WORLD_SIZE"},
}};

constexpr int kMaxRank = 10'000'000;

Result<std::optional<int>> number(const Environment& environment, const std::string& name) {
  const auto text = name.empty() ? std::nullopt : environment(name);
  if (!text || text->empty()) return std::optional<int>();
  const auto value = parse_int<int>(trim(*text));
  if (!value || *value < 0 || *value > kMaxRank)
    return fail(Errc::malformed, "{}={} is not a rank or a number of ranks", name, printable(*text));
  return std::optional<int>(*value);
}

// "4(x2),1" and the node's place -> tasks of that node.
std::optional<int> slurm_local_size(const Environment& environment) {
  auto text = environment("SLURM_STEP_TASKS_PER_NODE");
  if (!text) text = environment("SLURM_TASKS_PER_NODE");
  const auto node = parse_int<int>(environment("SLURM_NODEID").value_or(""));
  if (!text || !node) return std::nullopt;
  int passed = 0;
  for (const auto part : split(*text, ',')) {
    const auto open = part.find("(x");
    const auto tasks = parse_int<int>(part.substr(0, open));
    const auto times = open == std::string_view::npos
                           ? 1
                           : parse_int<int>(part.substr(open + 2, part.size() - open - 3)).value_or(1);
    if (!tasks) return std::nullopt;
    passed += times;
    if (*node < passed) return tasks;
  }
  return std::nullopt;
}

Result<bool> read_numbers(const Environment& environment, const Names& names, Rank& rank) {
  const std::pair<const char*, std::optional<int>*> rest[] = {
      {names.local_size, &rank.local_size}, {names.global, &rank.global}, {names.size, &rank.size}};
  for (const auto& [name, to] : rest) {
    const auto value = number(environment, name);
    if (!value) return tl::unexpected(value.error());
    *to = *value;
  }
  if (std::string_view(names.launcher) == "Slurm") rank.local_size = slurm_local_size(environment);
  return true;
}

std::optional<Error> impossible(const Rank& rank, const Names& names) {
  if (rank.local_size && rank.local >= *rank.local_size)
    return fail(Errc::malformed, "{}={}, but the node has {} ranks", names.local, rank.local,
                *rank.local_size)
        .value();
  if (rank.global && rank.size && *rank.global >= *rank.size)
    return fail(Errc::malformed, "{}={}, but the job has {} ranks", names.global, *rank.global, *rank.size)
        .value();
  return std::nullopt;
}

std::vector<std::string> entries_of(const std::string& list) {
  std::vector<std::string> out;
  if (trim(list).empty()) return out;
  for (const auto entry : split(list, ',')) out.emplace_back(trim(entry));
  return out;
}

Result<std::vector<std::size_t>> numbers_of(const std::string& variable,
                                            const std::vector<std::string>& entries,
                                            const std::vector<KnownGpu>& all) {
  std::vector<std::size_t> out;
  for (const auto& entry : entries) {
    const auto index = parse_int<std::size_t>(entry);
    std::optional<std::size_t> place;
    if (index && *index < all.size()) place = index;
    if (!index && (entry.starts_with("GPU-") || entry.starts_with("gpu-")) && entry.size() > 4)
      for (std::size_t i = 0; i < all.size() && !place; ++i)
        if (all[i].uuid.starts_with(entry)) place = i;
    if (!place) {
      if (entry == "-1") return out;  // CUDA ignores what follows
      return fail(Errc::malformed, "{}: {} is none of this machine's {} GPU{}", variable, printable(entry),
                  all.size(), all.size() == 1 ? "" : "s");
    }
    if (std::ranges::find(out, *place) != out.end())
      return fail(Errc::malformed, "{}: {} stands twice", variable, printable(entry));
    out.push_back(*place);
  }
  return out;
}

bool counts_up(const std::vector<std::string>& entries) {
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i] != std::to_string(i)) return false;
  return true;
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

Result<std::optional<Rank>> detect_rank(const Environment& environment) {
  for (const auto& names : kLaunchers) {
    if (*names.needs != '\0' && !environment(names.needs)) continue;
    const auto local = number(environment, names.local);
    if (!local) return tl::unexpected(local.error());
    if (!*local) continue;
    Rank rank;
    rank.local = **local;
    rank.launcher = names.launcher;
    if (auto read = read_numbers(environment, names, rank); !read) return tl::unexpected(read.error());
    if (const auto error = impossible(rank, names)) return tl::unexpected(*error);
    return std::optional<Rank>(rank);
  }
  return std::optional<Rank>();
}

Result<Visible> visible_gpus(const Environment& environment, const std::vector<KnownGpu>& all) {
  Visible out;
  for (const auto* variable : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
    const auto value = environment(variable);
    if (!value) continue;
    auto entries = entries_of(*value);
    std::string name = variable;
    // Devices confined to the step are renumbered from 0; the scheduler tells which they are.
    const auto step = entries_of(environment("SLURM_STEP_GPUS").value_or(""));
    if (!step.empty() && step.size() == entries.size() && counts_up(entries)) {
      entries = step;
      name = "SLURM_STEP_GPUS";
    }
    if (std::ranges::any_of(entries, [](const std::string& entry) { return entry.starts_with("MIG-"); }))
      return fail(Errc::unsupported, "{}: MIG instances are not told apart", name);
    auto places = numbers_of(name, entries, all);
    if (!places) return tl::unexpected(places.error());
    out.gpus = std::move(*places);
    out.from = name;
    return out;
  }
  for (std::size_t i = 0; i < all.size(); ++i) out.gpus.push_back(i);
  return out;
}

Result<std::size_t> gpu_of_rank(const Rank& rank, const Visible& visible) {
  if (visible.gpus.empty())
    return fail(Errc::not_found, "{}",
                visible.from.empty() ? "no GPU was found" : visible.from + " leaves no GPU");
  if (visible.gpus.size() == 1 && !visible.from.empty())
    return visible.gpus.front();  // the launcher gave each rank its own
  const auto place = static_cast<std::size_t>(rank.local);
  const auto ranks = static_cast<std::size_t>(rank.local_size.value_or(rank.local + 1));
  if (place >= visible.gpus.size() || ranks > visible.gpus.size())
    return fail(Errc::malformed, "{} ranks on a node with {} GPU{}{}", ranks, visible.gpus.size(),
                visible.gpus.size() == 1 ? "" : "s", visible.from.empty() ? "" : " in " + visible.from);
  return visible.gpus[place];
}

}  // namespace topotune::launch
