#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checks/rule.h"
#include "cli/input.h"
#include "lint/lint.h"
#include "model/nccl_log.h"

namespace topotune::cli {

// What stands beside a machine: its job's logs and configuration, read once. Points into the input.
struct Job {
  std::vector<std::pair<std::string, model::NcclLog>> logs;  // name, log
  std::vector<lint::Input> configs;
};
Job read_job(const Input& input);

// The job's variables, as its configuration sets them and its logs print them (the log is what NCCL saw).
// Nothing: no text of the job is there.
std::optional<std::map<std::string, std::string>> environment_of(const Job& job);

// The machine at an earlier time.
struct Earlier {
  const model::Machine* machine = nullptr;
  std::optional<double> seconds;  // between both readings
};

// Every rule about the machine and the texts of its job.
model::Diagnosis diagnose(const Input& input, const Job& job, const Globals& globals,
                          const Earlier& earlier = {});

// Findings and lists of `more`, each rule once in the lists; a rule that one text decides is checked.
void append(model::Diagnosis& to, model::Diagnosis more);

// --driver-version tells what no file tells.
void add_versions(model::Machine& machine, const Globals& globals);

}  // namespace topotune::cli
