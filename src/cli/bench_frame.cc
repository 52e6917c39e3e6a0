#include "cli/bench_frame.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <ctime>
#include <fstream>

#include "base/text.h"
#include "measure/runner.h"

namespace topotune::cli {

namespace {

volatile std::sig_atomic_t was_interrupted = 0;

volatile std::sig_atomic_t first_half = 0;  // when, in half seconds

// Since an arbitrary start; may be called in a signal handler.
std::sig_atomic_t half_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::sig_atomic_t>((t.tv_sec * 2 + (t.tv_nsec >= 500'000'000 ? 1 : 0)) & 0x3fffffff);
}

// The first one ends the run in order, a later one at once. timeout(1) sends a signal to the process and to
// its group: both within half a second or so are one.
void on_interrupt(int number) {
  const auto now = half_seconds();
  if (was_interrupted == 0) {
    was_interrupted = 1;
    first_half = now;
    return;
  }
  if (now - first_half < 2) return;
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace

void end_in_order_on_interrupt() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  if (std::signal(SIGHUP, on_interrupt) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // nohup
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

Progress::Progress(const Globals& globals)
    : on_(!globals.quiet && ::isatty(STDERR_FILENO) == 1),
      verbose_(globals.verbose),
      start_(measure::monotonic_seconds()) {}

std::string progress_line(std::optional<double> done, double seconds, const std::string& step,
                          std::size_t columns) {
  constexpr std::size_t kBar = 24;
  std::string out;
  if (done) {
    const double part = std::clamp(*done, 0.0, 1.0);
    const auto filled = static_cast<std::size_t>(part * kBar);
    out = fmt::format("[{}{}] {:3.0f} % ", std::string(filled, '#'), std::string(kBar - filled, '.'),
                      std::floor(100 * part));
  }
  out += fmt::format("{:5.1f} s  ", seconds);
  const auto room = columns > out.size() + 1 ? columns - out.size() - 1 : 0;
  return out + printable(step).substr(0, room);
}

// Columns of the terminal; 80 where it does not tell.
static std::size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void Progress::draw() const {
  const double spent = measure::monotonic_seconds() - start_;
  if (on_)
    fmt::print(stderr, "\r\033[K{}", progress_line(done_, spent, step_, terminal_columns()));
  else if (verbose_)
    fmt::print(stderr, "{}\n", progress_line(std::nullopt, spent, step_, 200));
}

void Progress::operator()(const std::string& step) {
  step_ = step;
  draw();
}

void Progress::fraction(double done) {
  done_ = done;
  if (on_) draw();
}

void Progress::clear() const {
  if (on_) fmt::print(stderr, "\r\033[K");
}

std::optional<int> gpu_number(std::string_view word) {
  const auto number = parse_int<int>(word.starts_with("GPU") ? word.substr(3) : word);
  return number && *number >= 0 ? number : std::nullopt;
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
