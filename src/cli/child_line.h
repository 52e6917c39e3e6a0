#pragma once

#include <string>

#include "base/result.h"

namespace topotune::cli {

// All of a file; "" where it cannot be read.
std::string text_of(const std::string& file);

struct Ended {
  int status = 0;    // 128 + signal for one that was killed
  std::string said;  // the last line of its output
};

// A command line of sh in a process group of its own, its output in a file. Where this process is
// interrupted, or the time is up, the child is asked to end, and killed when it does not. Errors: timed_out,
// or interrupted (io); what it had written by then is in its files.
Result<Ended> run_line(const std::string& line, const std::string& output, double limit_seconds);

}  // namespace topotune::cli
