#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "checks/language.h"
#include "checks/log_rules.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "emit/nccl_log_json.h"
#include "emit/nccl_log_text.h"
#include "host/stream.h"
#include "parse/nccl_log.h"

namespace topotune::cli {

namespace {

struct LogOptions {
  std::vector<std::string> files;
  std::string topology, fail_on, svg;
  bool follow = false, matrix = false, timeline = false, run = false;
  std::vector<std::string> compare, command;
};

volatile std::sig_atomic_t interrupted = 0;
void on_interrupt(int) { interrupted = 1; }

Result<model::NcclLog> read_logs(const std::vector<std::string>& files) {
  parse::NcclLogParser parser;
  for (const auto& name : files) {
    parser.begin_file(name == "-" ? "stdin" : name);
    auto read = host::read_stream(name, [&](std::string_view piece) { parser.feed(piece); });
    if (!read) {
      auto error = read.error();
      if (!error.file) error.file = name;
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
  return log.library_lines > 0 || !log.versions.empty() || log.kind == "nccl-ras";
}

Error no_log(const std::string& name, const model::NcclLog& log) {
  return Error{Errc::unrecognised,
               log.lines == 0 ? "empty" : "no line of an NCCL or RCCL debug log",
               name,
               {},
               {},
               "NCCL_DEBUG=INFO makes NCCL print them; topotune log --run -- CMD sets it"};
}

int verdict_status(const model::Diagnosis& diagnosis, const std::string& fail_on) {
  if (fail_on.empty()) return kOk;
  const auto verdict = model::verdict_of(diagnosis);
  if (verdict == model::Verdict::error) return kError;
  return verdict == model::Verdict::warn && fail_on == "warn" ? kWarn : kOk;
}

std::string document(const model::NcclLog& log, const model::Diagnosis& judged, const std::string& name,
                     const LogOptions& options, const Globals& globals) {
  auto diagnosis = judged;
  checks::translate(diagnosis, language_of(globals));
  if (globals.json) return emit::nccl_log_json(log, diagnosis, name);
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
  return written != kOk ? written : verdict_status(diagnosis, options.fail_on);
}

int compare(const LogOptions& options, const Globals& globals) {
  std::vector<model::NcclLog> logs;
  for (const auto& name : options.compare) {
    auto log = read_logs({name});
    if (!log) return report(log.error());
    if (!is_log(*log)) return report(no_log(name, *log));
    logs.push_back(std::move(*log));
  }
  return write_result(globals,
                      emit::nccl_log_compare(logs[0], options.compare[0], logs[1], options.compare[1]));
}

// Reads while the log grows; the answer is printed anew when new lines have come, and at the end.
int follow(const LogOptions& options, const Globals& globals) {
  const auto& name = options.files[0];
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
    const auto diagnosis = checks::diagnose_log(log, nullptr, name);
    write_result(globals, "\n" + document(log, diagnosis, name, options, globals));
  };
  const auto read = host::read_stream(
      name, [&](std::string_view piece) { parser.feed(piece), fed += piece.size(); }, stream);
  if (!read) {
    auto error = read.error();
    if (!error.file) error.file = name;
    return report(error);
  }
  const auto log = parser.finish();
  const int status =
      fed == shown && !globals.json ? kOk : explain(log, name_of_input(options.files), options, globals);
  return interrupted != 0 ? kInterrupted : status;
}

// Settings of the job that is started; what the user set stays.
struct Variable {
  const char* name;
  std::string value;
};

[[noreturn]] void become(const std::vector<std::string>& command, const std::vector<Variable>& variables) {
  for (const auto& v : variables) ::setenv(v.name, v.value.c_str(), 1);
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execvp(argv[0], argv.data());
  const int code = errno;
  fmt::print(stderr, "topotune: {}: cannot start: {}\n", printable(command[0]), std::strerror(code));
  ::_exit(code == ENOENT ? 127 : 126);
}

// Passes on what the job prints and keeps a copy: its result rows belong to the answer.
void pass_on(int from, const std::string& copy) {
  std::FILE* kept = std::fopen(copy.c_str(), "wb");
  std::vector<char> block(std::size_t{1} << 16U);
  while (true) {
    const auto got = ::read(from, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    std::fwrite(block.data(), 1, static_cast<std::size_t>(got), stdout);
    std::fflush(stdout);
    if (kept != nullptr) std::fwrite(block.data(), 1, static_cast<std::size_t>(got), kept);
  }
  if (kept != nullptr) std::fclose(kept);
}

// Runs the job to its end; its exit status as a shell tells it. On a terminal the job keeps it; otherwise its
// standard output is copied into `copy` on the way.
int run_job(const std::vector<std::string>& command, const std::vector<Variable>& variables,
            const std::string& copy) {
  int ends[2] = {-1, -1};
  const bool piped = ::isatty(STDOUT_FILENO) == 0 && ::pipe2(ends, O_CLOEXEC) == 0;
  std::fflush(stdout);
  const auto child = ::fork();
  if (child < 0) return report(Error{Errc::io, "cannot start a process", {}, {}, {}, ""});
  if (child == 0) {
    if (piped) ::dup2(ends[1], STDOUT_FILENO);
    become(command, variables);
  }
  ::signal(SIGINT, SIG_IGN);  // the job gets it too and decides
  if (piped) {
    ::close(ends[1]);
    pass_on(ends[0], copy);
    ::close(ends[0]);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ::signal(SIGINT, SIG_DFL);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.is_regular_file(ignored)) found.push_back(entry.path().string());
  std::ranges::sort(found);
  return found;
}

// Starts the job with NCCL_DEBUG on, one log file a process in a folder of its own, and explains them.
int run(const LogOptions& options, const Globals& globals) {
  std::string folder = (std::filesystem::temp_directory_path() / "topotune-log-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr)
    return report(Error{Errc::io, "cannot make a folder for the logs", folder, {}, {}, "set TMPDIR"});
  const bool chosen = std::getenv("NCCL_DEBUG_SUBSYS") != nullptr;
  std::vector<Variable> variables{{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", folder + "/nccl.%h.%p.log"}};
  if (!chosen)
    variables.push_back({"NCCL_DEBUG_SUBSYS", "INIT,ENV,NET,GRAPH,TUNING,P2P,SHM,NVLS,COLL,BOOTSTRAP"});
  const int job = run_job(options.command, variables, folder + "/stdout");
  const auto files = files_in(folder);
  int status = kOk;
  if (std::ranges::none_of(files, [](const std::string& f) { return f.ends_with(".log"); })) {
    fmt::print(stderr,
               "topotune: the command made no NCCL log (exit status {})\nhint: it does not use NCCL, or "
               "ended before\n",
               job);
  } else if (auto log = read_logs(files); !log) {
    status = report(log.error());
  } else {
    std::fflush(stdout);
    status = explain(*log, fmt::format("{}", fmt::join(options.command, " ")), options, globals);
    if (!globals.quiet) fmt::print(stderr, "topotune: the command ended with {}\n", job);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return job != 0 ? job : status;
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
  verb->add_option("files", options->files, "logs of one job, plain, gzip or zstd; - is standard input")
      ->type_name("FILE");
  verb->add_option("--topology", options->topology, "check the log against this machine")->type_name("INPUT");
  verb->add_option("--fail-on", options->fail_on, "let findings set the exit status")
      ->check(CLI::IsMember({"warn", "error"}))
      ->type_name("SEVERITY");
  verb->add_flag("--follow", options->follow, "go on reading while the log grows");
  verb->add_flag("--matrix", options->matrix, "print rank by rank who talks to whom");
  verb->add_option("--svg", options->svg, "write that matrix as a heat map")->type_name("FILE");
  verb->add_flag("--timeline", options->timeline, "print the collectives in their order (COLL lines)");
  verb->add_option("--compare", options->compare, "what differs between two logs")
      ->expected(2)
      ->type_name("A B");
  verb->add_flag("--run", options->run,
                 "start the command behind -- with NCCL_DEBUG on and explain its logs");
  verb->callback([options, &globals, &status] {
    if (options->run) options->command = std::exchange(options->files, {});
    if (options->run && options->command.empty()) {
      status =
          report(Error{Errc::usage, "log --run: which command?", {}, {}, {}, "topotune log --run -- CMD…"});
      return;
    }
    status = log_verb(*options, globals);
  });
}

}  // namespace topotune::cli
