#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/text.h"
#include "checks/language.h"
#include "checks/log_rules.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/log_profile.h"
#include "cli/log_run.h"
#include "cli/profile_reader.h"
#include "emit/nccl_log_json.h"
#include "emit/nccl_log_text.h"
#include "host/stream.h"
#include "parse/nccl_log.h"

namespace topotune::cli {

namespace {

struct LogOptions {
  std::vector<std::string> files;
  std::string topology, fail_on, svg, every;
  bool follow = false, matrix = false, timeline = false, run = false, ab = false;
  std::vector<std::string> compare, command, without;
};

volatile std::sig_atomic_t interrupted = 0;
void on_interrupt(int) { interrupted = 1; }

// Errors of the operating system name the file themselves.
void name_file(Error& error, const std::string& name) {
  if (!error.file && !error.text.starts_with(name + ":")) error.file = name;
}

Result<model::NcclLog> read_logs(const std::vector<std::string>& files) {
  parse::NcclLogParser parser;
  for (const auto& name : files) {
    parser.begin_file(name == "-" ? "stdin" : name);
    bool first = true, profile = false;
    auto read = host::read_stream(name, [&](std::string_view piece) {
      profile = profile || (std::exchange(first, false) && parse::is_nccl_profile(piece));
      if (!profile) parser.feed(piece);
    });
    if (profile) return tl::unexpected(not_so(name == "-" ? "stdin" : name));
    if (!read) {
      auto error = read.error();
      name_file(error, name);
      // What could be unpacked of a damaged file is still explained.
      if (error.code != Errc::malformed) return tl::unexpected(error);
      report(error);
    }
  }
  return parser.finish();
}

std::string name_of_input(const std::vector<std::string>& files) {
  if (files.empty() || files[0] == "-") return "stdin";
  return files.size() == 1 ? files[0] : fmt::format("{} and {} more", files[0], files.size() - 1);
}

bool is_log(const model::NcclLog& log) {
  // PyTorch's watchdog alone tells which ranks waited, its exception NCCL's last words.
  return log.library_lines > 0 || !log.versions.empty() || log.kind == "nccl-ras" || !log.problems.empty() ||
         log.find(model::NoteKind::watchdog) != nullptr;
}

Error no_log(const std::string& name, const model::NcclLog& log) {
  return Error{Errc::unrecognised,
               log.lines == 0 ? "empty" : "no line of an NCCL or RCCL debug log",
               name,
               {},
               {},
               "NCCL_DEBUG=INFO makes NCCL print them; topotune log --run -- CMD sets it"};
}

// An error that the program got counts although no rule knows its cause.
int verdict_status(const model::NcclLog& log, const model::Diagnosis& diagnosis, const std::string& fail_on) {
  if (fail_on.empty()) return kOk;
  if (std::ranges::any_of(log.problems, &model::LogProblem::returned)) return kError;
  const auto verdict = model::verdict_of(diagnosis);
  if (verdict == model::Verdict::error) return kError;
  return verdict == model::Verdict::warn && fail_on == "warn" ? kWarn : kOk;
}

std::string document(const model::NcclLog& log, const model::Diagnosis& judged, const std::string& name,
                     const LogOptions& options, const Globals& globals) {
  auto diagnosis = judged;
  checks::translate(diagnosis, language_of(globals));
  if (globals.json) return emit::nccl_log_json(log, diagnosis, name, {options.timeline, false, ""});
  std::string text;
  if (options.matrix) text += emit::nccl_log_matrix(log);
  if (options.timeline) text += emit::nccl_log_timeline(log);
  if (!text.empty()) return text;
  return emit::nccl_log_text(log, diagnosis, name, {use_color(globals), globals.verbose});
}

// The machine that --topology names; null without it.
Result<std::unique_ptr<model::Machine>> machine_of(const LogOptions& options, const Globals& globals) {
  if (options.topology.empty()) return std::unique_ptr<model::Machine>();
  Globals of_topology = globals;
  of_topology.kind.clear();  // --kind is about the log
  auto input = load_input(options.topology, of_topology);
  if (!input) return tl::unexpected(input.error());
  return std::make_unique<model::Machine>(std::move(input->machine));
}

int explain(const model::NcclLog& log, const std::string& name, const LogOptions& options,
            const Globals& globals) {
  auto machine = machine_of(options, globals);
  if (!machine) return report(machine.error());
  const auto diagnosis = checks::diagnose_log(log, machine->get(), name);
  if (!options.svg.empty()) {
    Globals to_svg = globals;
    to_svg.output = options.svg;
    if (const int status = write_result(to_svg, emit::nccl_log_matrix_svg(log)); status != kOk) return status;
  }
  const int written = write_result(globals, document(log, diagnosis, name, options, globals));
  return written != kOk ? written : verdict_status(log, diagnosis, options.fail_on);
}

int compare(const LogOptions& options, const Globals& globals) {
  std::vector<model::NcclLog> logs;
  for (const auto& name : options.compare) {
    auto log = read_logs({name});
    if (!log) return report(log.error());
    if (!is_log(*log)) return report(no_log(name, *log));
    logs.push_back(std::move(*log));
  }
  const auto comparison = emit::compare_nccl_logs(logs[0], options.compare[0], logs[1], options.compare[1]);
  return write_result(globals, globals.json ? emit::nccl_log_compare_json(comparison)
                                            : emit::nccl_log_compare_text(comparison));
}

// Reads while the log grows; the answer is printed anew when new lines have come, and at the end.
int follow(const LogOptions& options, const Globals& globals) {
  const auto& name = options.files[0];
  const auto machine = machine_of(options, globals);
  if (!machine) return report(machine.error());
  parse::NcclLogParser parser;
  parser.begin_file(name == "-" ? "stdin" : name);
  std::uint64_t fed = 0;
  std::uint64_t shown = 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // no SA_RESTART: a waiting read ends
  ::sigaction(SIGINT, &action, nullptr);
  host::StreamOptions stream;
  stream.follow = true;
  stream.stop = [] { return interrupted != 0; };
  stream.idle = [&] {
    if (fed == shown || globals.json) return;
    shown = fed;
    const auto log = parser.snapshot();
    const auto diagnosis = checks::diagnose_log(log, machine->get(), name);
    write_result(globals, "\n" + document(log, diagnosis, name, options, globals));
  };
  const auto read = host::read_stream(
      name, [&](std::string_view piece) { parser.feed(piece), fed += piece.size(); }, stream);
  if (!read) {
    auto error = read.error();
    name_file(error, name);
    return report(error);
  }
  const auto log = parser.finish();
  const int status =
      fed == shown && !globals.json ? kOk : explain(log, name_of_input(options.files), options, globals);
  return interrupted != 0 ? kInterrupted : status;
}

// Variables that a finding proves to have taken a transport away.
std::vector<std::string> costly_variables(const model::Diagnosis& diagnosis) {
  std::vector<std::string> names;
  for (const auto& f : diagnosis.findings) {
    if (f.severity != model::Severity::error || !f.action.starts_with("unset-")) continue;
    if (std::ranges::find(names, f.subject) == names.end()) names.push_back(f.subject);
  }
  return names;
}

const model::LogSetting* setting_of(const model::NcclLog& log, const std::string& name) {
  const auto found = std::ranges::find(log.env, name, &model::LogSetting::name);
  return found == log.env.end() ? nullptr : &*found;
}

// The largest size that both runs measured; without one, the best of each.
void put_bandwidths(const model::NcclLog& with, const model::NcclLog& without, model::LogCost& cost) {
  for (const auto& [bytes, bus] : with.bus_by_size)
    if (const auto other = without.bus_by_size.find(bytes); other != without.bus_by_size.end()) {
      cost.bytes = bytes;
      cost.with_gbytes_per_s = bus;
      cost.without_gbytes_per_s = other->second;
    }
  if (cost.bytes != 0) return;
  cost.with_gbytes_per_s = with.peak_bus_gbytes_per_s;
  cost.without_gbytes_per_s = without.peak_bus_gbytes_per_s;
}

struct Run {
  RunResult job;
  model::NcclLog log;
};

Result<Run> run_once(const RunJob& job) {
  const ScratchFolder folder;
  if (const auto made = folder.made(); !made) return tl::unexpected(made.error());
  auto ended = run_job(job, folder);
  if (!ended) return tl::unexpected(ended.error());
  auto log = read_logs(folder.files());
  if (!log) return tl::unexpected(log.error());
  log->wall_seconds = ended->seconds;
  // The folder is gone when the answer is read: files are called by what tells them apart.
  for (auto& name : log->files) name = std::filesystem::path(name).filename().string();
  return Run{*ended, std::move(*log)};
}

// The same command without `names`: what they cost goes into `log`.
void measure_without(const RunJob& job, const std::vector<std::string>& names, model::NcclLog& log,
                     bool quiet) {
  if (!quiet) fmt::print(stderr, "topotune: once more without {}\n", fmt::join(names, ", "));
  const auto second = run_once(without(job, names));
  if (!second) {
    report(second.error());
    return;
  }
  if (second->job.status != 0) {
    fmt::print(stderr, "topotune: the second run ended with {}: nothing to compare\n", second->job.status);
    return;
  }
  model::LogCost cost;
  for (const auto& name : names) {
    const auto* was = setting_of(log, name);
    const auto* is = setting_of(second->log, name);
    if (was != nullptr && is != nullptr && was->value == is->value) {
      fmt::print(stderr,
                 "topotune: {}={} holds in the second run too (the command sets it): nothing to compare\n",
                 name, printable(is->value));
      return;
    }
    cost.settings.push_back(was == nullptr ? name : fmt::format("{}={}", name, was->value));
  }
  put_bandwidths(log, second->log, cost);
  cost.with_seconds = log.wall_seconds;
  cost.without_seconds = second->log.wall_seconds;
  log.costs.push_back(std::move(cost));
}

void say_how_to_measure(const std::vector<std::string>& names) {
  if (!names.empty())
    fmt::print(stderr, "hint: --ab runs the command once more without {} and states what that costs\n",
               fmt::join(names, ", "));
}

// Starts the job with NCCL_DEBUG on, one log file a process in a folder of its own, and explains them.
int run(const LogOptions& options, const Globals& globals) {
  RunJob job;
  job.command = options.command;
  job.to_stderr = globals.output.empty() && globals.json;
  auto first = run_once(job);
  if (!first) return report(first.error());
  const int ended = first->job.status;
  if (!is_log(first->log)) {
    fmt::print(stderr,
               "topotune: the command made no NCCL log (exit status {})\nhint: it does not use NCCL, or "
               "ended before\n",
               ended);
    return ended;
  }
  auto machine = machine_of(options, globals);
  if (!machine) return report(machine.error());
  const auto name = fmt::format("{}", fmt::join(options.command, " "));
  auto names = options.without;
  if (names.empty()) names = costly_variables(checks::diagnose_log(first->log, machine->get(), name));
  const bool again = options.ab || !options.without.empty();
  if (again && !names.empty() && ended == 0) measure_without(job, names, first->log, globals.quiet);
  if (again && names.empty() && !globals.quiet)
    fmt::print(stderr, "topotune: no variable took a transport away: nothing to run again\n");
  std::fflush(stdout);
  const int status = explain(first->log, name, options, globals);
  if (!globals.quiet && !again) say_how_to_measure(names);
  if (!globals.quiet) fmt::print(stderr, "topotune: the command ended with {}\n", ended);
  return ended != 0 ? ended : status;
}

const char* ignored_by_profiles(const LogOptions& options) {
  if (!options.svg.empty()) return "--svg";
  if (options.timeline) return "--timeline";
  if (!options.topology.empty()) return "--topology";
  return options.fail_on.empty() ? nullptr : "--fail-on";
}

int log_verb(const LogOptions& options, const Globals& globals) {
  if (options.run) return run(options, globals);
  if (!options.compare.empty()) return compare(options, globals);
  if (options.files.empty())
    return report(Error{Errc::usage,
                        "log: which file?",
                        {},
                        {},
                        {},
                        "topotune log FILE…, or topotune log - to read standard input"});
  if (is_profile_file(options.files[0])) {
    if (const auto* what = ignored_by_profiles(options))
      return report(Error{Errc::usage,
                          fmt::format("{} takes a log, not a profile", what),
                          {},
                          {},
                          {},
                          "for profiles: --matrix, --every, --json"});
    if (options.every.empty() && !options.follow)
      return explain_profiles(options.files, options.matrix, globals);
    const auto every = every_from(options.every.empty() ? "10s" : options.every);
    if (!every) return report(every.error());
    return follow_profiles(options.files, *every, options.matrix, globals);
  }
  if (!options.every.empty())
    return report(Error{Errc::usage, "--every takes files of the profiler plugin", {}, {}, {}, ""});
  if (options.follow && options.files.size() > 1)
    return report(Error{Errc::usage, "--follow takes one file", {}, {}, {}, ""});
  if (options.follow) return follow(options, globals);
  const auto name = name_of_input(options.files);
  auto log = read_logs(options.files);
  if (!log) return report(log.error());
  if (!is_log(*log)) return report(no_log(name, *log));
  return explain(*log, name, options, globals);
}

}  // namespace

void add_log(CLI::App& app, Globals& globals, int& status) {
  auto options = std::make_shared<LogOptions>();
  auto* verb =
      app.add_subcommand("log", "explain NCCL and RCCL debug logs: who talks to whom over what, and why");
  verb->footer(
      "examples:\n"
      "  topotune log job.log                       the answer on one screen\n"
      "  topotune log rank*.log.zst --matrix        rank by rank, of logs in several files\n"
      "  kubectl logs trainer-0 | topotune log -    from standard input; --follow while it grows\n"
      "  topotune log job.log --topology live       against what this machine can do\n"
      "  topotune log --compare good.log bad.log    what differs between two runs\n"
      "  topotune log /dev/shm/topotune-profile-*   what the profiler plugin recorded\n"
      "  topotune log --every 10s /dev/shm/topotune-profile-*\n"
      "                                             while the job runs: each ten seconds' share\n"
      "  topotune log --run --ab -- ./all_reduce_perf -b 1G -e 1G -g 8\n"
      "                                             start it, explain it, and what a variable costs");
  verb->add_option("files", options->files, "logs of one job, plain, gzip or zstd; - is standard input")
      ->type_name("FILE");
  verb->add_option("--topology", options->topology, "check the log against this machine")->type_name("INPUT");
  verb->add_option("--fail-on", options->fail_on, "let findings set the exit status")
      ->check(CLI::IsMember({"warn", "error"}))
      ->type_name("SEVERITY");
  verb->add_flag("--follow", options->follow, "go on reading while the log grows");
  verb->add_option("--every", options->every,
                   "what a job did meanwhile, from its profiles: each 10s, or each time at least 500 calls")
      ->type_name("N[s]");
  verb->add_flag("--matrix", options->matrix, "print rank by rank who talks to whom");
  verb->add_option("--svg", options->svg, "write that matrix as a heat map")->type_name("FILE");
  verb->add_flag("--timeline", options->timeline, "print the collectives in their order (COLL lines)");
  verb->add_option("--compare", options->compare, "what differs between two logs")
      ->expected(2)
      ->type_name("A B");
  verb->add_flag("--run", options->run,
                 "start the command behind -- with NCCL_DEBUG on and explain its logs");
  verb->add_flag(
      "--ab", options->ab,
      "with --run: run it once more without the variables that took a transport away, and state what "
      "they cost");
  verb->add_option("--without", options->without, "with --run: run it once more without this variable")
      ->type_name("NAME");
  verb->callback([options, &globals, &status] {
    if (options->run) options->command = std::exchange(options->files, {});
    if (options->run && options->command.empty()) {
      status =
          report(Error{Errc::usage, "log --run: which command?", {}, {}, {}, "topotune log --run -- CMD…"});
      return;
    }
    if (!options->run && (options->ab || !options->without.empty())) {
      status = report(
          Error{Errc::usage, "--ab and --without need --run", {}, {}, {}, "topotune log --run --ab -- CMD…"});
      return;
    }
    status = log_verb(*options, globals);
  });
}

}  // namespace topotune::cli
