#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "model/plan.h"
#include "plan/plan.h"

namespace topotune::cli {

// What the command line says about a plan; shared by plan, apply, verify and run.
struct PlanRequest {
  std::string input = "live";
  std::string job_file;
  std::vector<std::string> sets;       // "key=value" of the job
  std::vector<std::string> env_files;  // configuration texts of the job
  std::vector<std::string> measured;   // files and folders of measurements of this machine
  bool any_cpus = false;
  bool is_rank =
      false;  // this process becomes the job: its variables count, whatever the machine is read from
};

// Adds --job, --set, --env-file and --any-cpus to a verb.
void add_job_options(CLI::App& verb, PlanRequest& request);

// The job of the command line: its file, then its --set. Errors name the file and the line.
Result<plan::Job> job_of(const PlanRequest& request);

struct Planned {
  Input input;
  plan::Job job;
  model::Plan plan;
  std::vector<plan::Setting> settings;  // of the environment and of files, as far as they were read
};

// Reads the input, diagnoses it together with the job's configuration, and plans.
Result<Planned> plan_for(const PlanRequest& request, const Globals& globals);

// The same for an input that was read already. `rules`: whether the machine itself is diagnosed too.
enum class MachineRules { judge, skip };
Result<Planned> plan_input(const PlanRequest& request, Input input, plan::Job job, MachineRules rules,
                           const Globals& globals);

}  // namespace topotune::cli
