#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"
#include "model/measurement.h"

namespace topotune::cli {

struct BenchOptions {
  std::string suite;
  std::vector<std::string> gpus;
  std::vector<std::string> parts, compare, baseline;
  std::string bytes;   // "512M"
  std::string memory;  // of gdr and net: "host", "gpu"; "": the suite's own choice
  std::vector<int> sms;
  double seconds = 0.2;  // a cell
  double ci_percent = 0.2;
  double limit_seconds = 30;  // of a step, for the watchdog
  double tolerance_percent = 2;
  std::string kernel;  // "tma[:CHUNK:STAGES:DRAIN]", "16-byte"
  std::string fail_on = "warn";
  bool csv = false, screen = false, all_pairs = false;
};

// Runs the suite and writes its document; returns the exit status.
int run_bench(const BenchOptions& options, const Globals& globals);

// "512M", "1G", "65536" in bytes; nothing for other texts, 0 and more than 64 GiB.
std::optional<std::size_t> size_from(std::string_view text);

// A measurement/1 document, its name as the error's file.
Result<model::MeasurementRun> load_measurement(const std::string& name);

}  // namespace topotune::cli
