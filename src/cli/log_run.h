#pragma once

#include <string>
#include <vector>

#include "base/result.h"

// Starting a job with NCCL_DEBUG on, for `topotune log --run`.
namespace topotune::cli {

// A folder for one run's files, gone with the object.
class RunFolder {
 public:
  static Result<RunFolder> make();
  RunFolder(RunFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  RunFolder& operator=(RunFolder&&) = delete;
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  ~RunFolder();

  const std::string& path() const { return path_; }
  // The files that NCCL wrote, sorted; then the job's own output, where it was kept.
  std::vector<std::string> logs() const;
  std::vector<std::string> all() const;

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct Variable {
  std::string name, value;
};

struct RunJob {
  std::vector<std::string> command;
  std::vector<Variable> set;
  std::vector<std::string> unset;
  bool to_stderr = false;  // the job's standard output: our own is the document's
};

struct RunResult {
  int status = 0;  // as a shell tells it: 128 + signal
  double seconds = 0;
};

// Runs the job to its end with NCCL_DEBUG=INFO into files of `folder`. What the job prints is passed on and
// kept in the folder too: its result rows belong to the answer. On a terminal the job sees one.
Result<RunResult> run_job(const RunJob& job, const RunFolder& folder);

// The job once more without these variables. One that stands in the command (`env NAME=1 CMD`, `mpirun -x
// NAME=1`) loses its word; a switch that comes from elsewhere (nccl.conf) is turned the other way by the
// environment, which wins.
RunJob without(const RunJob& job, const std::vector<std::string>& names);

}  // namespace topotune::cli
