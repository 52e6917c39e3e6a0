#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/bench_run.h"

namespace topotune::cli {

// The processes of a job, for suites that run in several.
struct JobFlags {
  std::string rendezvous;
  std::optional<int> rank, ranks;
};
void add_job_flags(CLI::App& verb, JobFlags& flags);

struct CollFlags {
  std::string begin = "8", end = "128M", step_bytes;
  std::size_t factor = 2;
  int graph_launches = 0;
  int iterations = 20, warmup = 5, root = 0;
  std::optional<int> gpus_per_process, min_ctas, max_ctas;
  std::optional<double> budget;  // seconds of the whole sweep
  std::string type = "float32", reduction = "sum", place = "both", backend = "nccl", format = "table";
  std::vector<std::string> modes;
  bool no_check = false, no_log = false, registered = false;
};
void add_coll_flags(CLI::App& verb, CollFlags& flags);

// `bench coll [OP...] [GPU...]`; returns the exit status.
int bench_coll(const BenchOptions& options, const CollFlags& flags, const JobFlags& job,
               const Globals& globals);

}  // namespace topotune::cli
