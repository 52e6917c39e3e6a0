#pragma once

#include <functional>
#include <string>

#include "cli/cli.h"

namespace topotune::cli {

// The file of a run's report (--output). While the run goes on it holds what was measured so far, so that a
// process that is killed loses no more than what it was at: launchers give a second or less after they ask,
// and Open MPI's kills all as soon as one has ended.
class ReportFile {
 public:
  // `suffix` is added to the file's name.
  explicit ReportFile(const Globals& globals, const std::string& suffix = "");

  // Replaces the file as a whole by what is there, where it is a regular or a new one; not each time, so that
  // writing takes less than a tenth of the run. A failure is said at the end, by `write`.
  void keep(const std::function<std::string()>& text);
  // The whole report; the exit status (kOk, or that of an error, which is said).
  int write(const std::string& text);

 private:
  Globals globals_;
  bool replaced_ = false;
  double next_ = 0;
};

}  // namespace topotune::cli
