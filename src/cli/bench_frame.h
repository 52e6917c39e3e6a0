#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cli.h"
#include "model/machine.h"
#include "model/measurement.h"

namespace topotune::cli {

// What every suite of `bench` needs around its measurements.

// The first SIGINT, SIGTERM or SIGHUP (where it is not ignored) from here on asks the run to end in order,
// the second ends it at once.
void end_in_order_on_interrupt();
bool interrupted();

std::string utc_now();
// "topotune bench p2p 0 1", without the program's own folder.
std::string command_line();

// A bar on the terminal's last line; nothing elsewhere.
class Progress {
 public:
  explicit Progress(const Globals& globals);
  void operator()(const std::string& step);
  void fraction(double done);  // 0 to 1; until the first call there is no bar
  void clear() const;

 private:
  void draw() const;

  bool on_, verbose_;
  double start_;
  std::optional<double> done_;
  std::string step_;
};

// "[#####.....]  43 %  12.3 s  p2p.write.ce src=GPU0 dst=GPU1", cut to `columns`; without `done` no bar.
std::string progress_line(std::optional<double> done, double seconds, const std::string& step,
                          std::size_t columns);

// "GPU3" or "3" of a command line -> 3; nothing for any other word.
std::optional<int> gpu_number(std::string_view word);

// The exit status of a run; fail_on: "warn" or "error".
int status_of(const model::MeasurementRun& run, const std::string& fail_on);

}  // namespace topotune::cli
