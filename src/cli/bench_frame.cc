#include "cli/bench_frame.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <fstream>
#include <map>

#include "base/text.h"
#include "measure/runner.h"

namespace topotune::cli {

namespace {

volatile std::sig_atomic_t was_interrupted = 0;

// The first one ends the run in order, the second at once.
void on_interrupt(int) {
  was_interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

std::string fact(const model::Fact<std::string>& f) { return f ? *f : ""; }

}  // namespace

void end_in_order_on_interrupt() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

bool interrupted() { return was_interrupted != 0; }

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[32] = {};
  std::tm parts{};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&now, &parts));
  return text;
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  std::string out = "topotune";
  const auto words = split(text, '\0');
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!words[i].empty()) out += " " + printable(words[i]);
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> fingerprint(const model::Machine& machine) {
  std::map<std::string, int> names;
  for (const auto& gpu : machine.topology.gpus) ++names[gpu.name.value_or("unknown")];
  std::string gpus;
  for (const auto& [name, count] : names)
    gpus += fmt::format("{}{} x {}", gpus.empty() ? "" : ", ", count, name);
  std::string cpu;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      cpu = std::string(trim(line.substr(line.find(':') + 1)));
      break;
    }
  }
  return {{"gpus", gpus},
          {"driver", fact(machine.nvidia_driver)},
          {"cuda_driver", fact(machine.cuda_driver)},
          {"cpu", cpu},
          {"cpus", std::to_string(std::max(1l, ::sysconf(_SC_NPROCESSORS_ONLN)))},
          {"numa_nodes", std::to_string(machine.topology.numa.size())},
          {"kernel", fact(machine.kernel)},
          {"hypervisor", fact(machine.hypervisor)}};
}

Progress::Progress(const Globals& globals)
    : on_(!globals.quiet && ::isatty(STDERR_FILENO) == 1),
      verbose_(globals.verbose),
      start_(measure::monotonic_seconds()) {}

void Progress::operator()(const std::string& step) const {
  const double spent = measure::monotonic_seconds() - start_;
  if (on_)
    fmt::print(stderr, "\r\033[K[{:5.1f} s] {:.100}", spent, step);
  else if (verbose_)
    fmt::print(stderr, "[{:5.1f} s] {}\n", spent, step);
}

void Progress::clear() const {
  if (on_) fmt::print(stderr, "\r\033[K");
}

int status_of(const model::MeasurementRun& run, const std::string& fail_on) {
  if (run.interrupted) return kInterrupted;
  switch (model::verdict_of(run)) {
    case model::Verdict::error:
      return kError;
    case model::Verdict::warn:
      return fail_on == "error" ? kOk : kWarn;
    case model::Verdict::unknown:
      return kUnknown;
    default:
      return kOk;
  }
}

}  // namespace topotune::cli
