#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/finding.h"
#include "model/machine.h"
#include "model/plan.h"
#include "plan/job.h"
#include "plan/measured.h"

namespace topotune::plan {

// A variable that is set now.
struct Setting {
  std::string name, value;
  std::string where;  // "environment", "/etc/nccl.conf:3", "env.sh:12"
};

// Everything a plan is made of. Pure: no Host, no clock. The same situation gives the same plan, byte for
// byte.
struct Situation {
  const model::Machine* machine = nullptr;
  const std::vector<model::Path>* paths = nullptr;  // of the machine
  const model::Diagnosis* diagnosis = nullptr;      // of the machine, its logs and its configuration
  std::vector<Setting> settings;
  std::map<std::string, std::string>
      conf_files;  // nccl.conf files that NCCL reads on this machine: path, text
  Job job;
  std::string nccl_version, ucx_version;  // "" unknown
  std::vector<MeasuredEffect> measured;   // on this machine
  bool any_cpus = false;  // where the cpuset excludes a GPU's node: take the nearest CPUs instead of refusing
};

// Errors: a job that contradicts itself or the machine; a cpuset that excludes a GPU's node. One exact line.
Result<model::Plan> make_plan(const Situation& situation);

}  // namespace topotune::plan
