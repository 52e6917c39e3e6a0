#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <memory>
#include <set>

#include "base/text.h"
#include "checks/causes.h"
#include "checks/language.h"
#include "cli/atomic_file.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "emit/findings_json.h"
#include "emit/findings_junit.h"
#include "emit/findings_markdown.h"
#include "emit/findings_nagios.h"
#include "emit/findings_text.h"
#include "emit/sarif.h"
#include "lint/fix.h"
#include "lint/lint.h"
#include "lint/registry.h"

namespace topotune::cli {

namespace {

namespace fs = std::filesystem;

struct LintOptions {
  std::vector<std::string> files;
  bool env = false, fix = false, in_place = false, sarif = false;
  bool nagios = false, junit = false, markdown = false;
  int pid = 0;
  std::string fail_on = "warn";
  std::string library;
};

// The texts and what became of them. Texts stand in a deque: inputs point into them.
struct Session {
  std::deque<std::string> texts;
  std::vector<lint::Input> inputs;
  std::set<std::string> seen;  // names of files that were read
  bool failed = false;         // an input could not be read
};

constexpr std::size_t kMaxFiles = 10000;

void say(const Globals& globals, const std::string& file, parse::Place at, const std::string& text) {
  if (globals.quiet) return;
  fmt::print(stderr, "topotune: {}:{}: {}\n", printable(file), at.line, printable(text));
}

void fail_input(Session& session, Error error, const std::string& name) {
  report(about(name, std::move(error)).value());
  session.failed = true;
}

// A text of which nothing could be taken although it is not empty: what it sets is not known.
bool tells_nothing(const parse::ConfigText& facts) {
  return !facts.diagnostics.empty() && facts.settings.empty() && facts.commands.empty();
}

// Why a text was not recognised, and how much of it may set something.
std::string unread_text(std::string_view text) {
  const auto head = text.substr(0, 4096);
  if (std::ranges::any_of(
          head, [](char c) { return static_cast<unsigned char>(c) < 32 && !is_space(c) && c != '\x1b'; }))
    return "binary: not recognised as configuration text";
  return fmt::format("not recognised as configuration text; {} of its lines name variables of NCCL or UCX",
                     parse::mentions_of(text).lines);
}

void take_text(Session& session, const Globals& globals, const std::string& name, std::string text,
               std::optional<parse::ConfigKind> kind = {}) {
  if (!kind) kind = parse::config_kind_from(globals.kind);
  session.texts.push_back(std::move(text));
  auto input = lint::read_input(name, session.texts.back(), kind);
  if (!input) {
    const std::string why = unread_text(session.texts.back());
    session.texts.pop_back();
    return fail_input(session, Error{Errc::unrecognised, why, {}, {}, {}, "--kind KIND says what it is"},
                      name);
  }
  for (const auto& diagnostic : input->facts.diagnostics) say(globals, name, diagnostic.at, diagnostic.text);
  session.failed = session.failed || tells_nothing(input->facts);
  session.inputs.push_back(std::move(*input));
}

void take_file(Session& session, const Globals& globals, const std::string& name) {
  if (!session.seen.insert(name).second || session.seen.size() > kMaxFiles) return;
  auto text = read_input(name);
  if (!text) return fail_input(session, text.error(), name);
  take_text(session, globals, name == "-" ? "stdin" : name, std::move(*text));
}

// A document shows configuration, but sets nothing.
bool is_configuration(std::optional<parse::ConfigKind> kind) {
  return kind && *kind != parse::ConfigKind::document;
}

// The files of a folder whose names say that they are configuration.
void take_folder(Session& session, const Globals& globals, const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && at != end; at.increment(error)) {
    const std::string base = at->path().filename();
    if (at->is_directory(error) && base.starts_with('.')) at.disable_recursion_pending();
    if (names.size() < kMaxFiles && at->is_regular_file(error) &&
        (is_configuration(parse::config_kind_of_name(base)) || base.ends_with(".env")))
      names.push_back(at->path());
  }
  std::ranges::sort(names);
  for (const auto& name : names) take_file(session, globals, name);
  if (names.empty())
    fail_input(session,
               Error{Errc::not_found, "no configuration in this folder", {}, {}, {}, "name the files"},
               folder);
}

// Files that an input reads: relative ones are judged as well, missing ones are said.
void follow_includes(Session& session, const Globals& globals) {
  for (std::size_t n = 0; n < session.inputs.size(); ++n) {
    const std::string from = session.inputs[n].name;
    const auto includes = session.inputs[n].facts.includes;
    if (from == "stdin" || session.inputs[n].kind == parse::ConfigKind::environ) continue;
    for (const auto& include : includes) {
      if (include.path.find_first_of("$~*`") != std::string::npos || include.path.starts_with("/dev/"))
        continue;
      const fs::path path(include.path);
      const std::string file = path.is_absolute()
                                   ? include.path
                                   : (fs::path(from).parent_path() / path).lexically_normal().string();
      std::error_code error;
      if (fs::is_regular_file(file, error)) {
        if (path.is_relative()) take_file(session, globals, file);
      } else if (!include.optional) {
        say(globals, from, include.at,
            fmt::format("{} does not exist here: what it sets is not known", include.path));
      }
    }
  }
}

std::string own_environment() {
  std::string out;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    out += *at;
    out += '\0';
  }
  return out;
}

// --- the machine, for --env and --pid
// --------------------------------------------------------------------------

// The bytes of a file, mapped while `use` looks at them.
template <class Use>
void with_mapped(const std::string& path, Use use) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  struct stat info {};
  if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
    const auto size = static_cast<std::size_t>(info.st_size);
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data != MAP_FAILED) {
      use(std::string_view(static_cast<const char*>(data), size));
      ::munmap(data, size);
    }
  }
  ::close(file);
}

void read_library(const std::string& path, lint::Options& options) {
  with_mapped(path, [&](std::string_view bytes) {
    options.library_names = lint::names_in_library(bytes);
    constexpr std::string_view kMark = "NCCL version ";
    for (auto at = bytes.find(kMark); at != std::string_view::npos && !options.nccl;
         at = bytes.find(kMark, at + 1))
      options.nccl = lint::parse_version(bytes.substr(at + kMark.size(), 16));
  });
}

// The libnccl that a process has mapped.
std::string mapped_library(int pid) {
  const auto maps = read_input(fmt::format("/proc/{}/maps", pid));
  if (!maps) return "";
  for (const auto line : lines(*maps)) {
    const auto at = line.find('/');
    if (at != std::string_view::npos && line.find("libnccl.so") != std::string_view::npos)
      return fmt::format("/proc/{}/root{}", pid, line.substr(at));
  }
  return "";
}

// Names in a folder of sysfs; nothing when the class is absent.
std::optional<std::vector<std::string>> names_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> out;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    out.push_back(at->path().filename());
  std::ranges::sort(out);
  return error ? std::nullopt : std::optional(std::move(out));
}

std::string installed_library() {
  std::string path = std::getenv("LD_LIBRARY_PATH") != nullptr ? std::getenv("LD_LIBRARY_PATH") : "";
  path +=
      ":/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/local/cuda/lib64:/usr/local/lib";
  for (const auto folder : split(path, ':')) {
    const std::string file = std::string(folder) + "/libnccl.so.2";
    if (!folder.empty() && ::access(file.c_str(), R_OK) == 0) return file;
  }
  return "";
}

void know_machine(const LintOptions& asked, const Globals& globals, lint::Options& options) {
  options.rdma_devices = names_in(globals.sysroot + "/sys/class/infiniband");
  options.interfaces = names_in(globals.sysroot + "/sys/class/net");
  const std::string root = asked.pid > 0 ? fmt::format("/proc/{}/root", asked.pid) : globals.sysroot;
  if (globals.sysroot.empty())
    options.file_exists = [root](const std::string& path) {
      return !path.starts_with('/') || ::access((root + path).c_str(), R_OK) == 0 || errno == EACCES;
    };
  if (asked.library.empty() && globals.sysroot.empty())
    read_library(asked.pid > 0 ? mapped_library(asked.pid) : installed_library(), options);
}

lint::Options options_of(const LintOptions& asked, const Globals& globals) {
  lint::Options out;
  out.nccl = lint::parse_version(globals.nccl_version);
  out.ucx = lint::parse_version(globals.ucx_version);
  out.driver = lint::parse_version(globals.driver_version);
  if (!asked.library.empty()) read_library(asked.library, out);
  return out;
}

void take_environment(Session& session, const std::string& name, std::string text) {
  session.texts.push_back(std::move(text));
  if (auto input = lint::read_input(name, session.texts.back(), parse::ConfigKind::environ))
    session.inputs.push_back(std::move(*input));
}

std::string variable_in(std::string_view environment, std::string_view name) {
  for (const auto entry : split(environment, '\0'))
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return std::string(entry.substr(name.size() + 1));
  return "";
}

// The files that NCCL reads after the environment: the user's (NCCL_CONF_FILE, else ~/.nccl.conf), then
// /etc/nccl.conf. `root`: what the process has as "/".
void take_conf_files(Session& session, const Globals& globals, const std::string& root,
                     std::string_view environment) {
  const std::string named = variable_in(environment, "NCCL_CONF_FILE"),
                    home = variable_in(environment, "HOME");
  const std::string user = !named.empty() ? named : home.empty() ? "" : home + "/.nccl.conf";
  for (const std::string& path : {user, std::string("/etc/nccl.conf")}) {
    std::error_code error;
    if (path.empty() || !fs::is_regular_file(root + path, error)) {
      if (!named.empty() && path == named)
        say(globals, path, {1, 1}, "NCCL_CONF_FILE cannot be read: NCCL goes on without it");
      continue;
    }
    if (!session.seen.insert(root + path).second) continue;
    auto text = read_input(root + path);
    if (!text)
      fail_input(session, text.error(), path);
    else
      take_text(session, globals, path, std::move(*text), parse::ConfigKind::nccl_conf);
  }
}

void take_process(Session& session, const Globals& globals, int pid) {
  const std::string name = fmt::format("/proc/{}/environ", pid);
  auto text = read_input(name);
  if (!text) return fail_input(session, text.error(), name);
  const std::string environment = *text;
  take_environment(session, name, std::move(*text));
  take_conf_files(session, globals, fmt::format("/proc/{}/root", pid), environment);
}

// --- --fix
// -----------------------------------------------------------------------------------------------------

// Through a symbolic link, and with the permissions of the old file: a script stays executable.
std::optional<Error> rewrite(const std::string& name, const std::string& text) {
  std::error_code failure;
  const std::string target = fs::canonical(name, failure);
  const auto old = fs::status(target, failure);
  if (failure)
    return Error{Errc::io, fmt::format("cannot be replaced: {}", failure.message()), name, {}, {}, {}};
  if (const auto written = write_whole_file(target, text); !written) return written.error();
  fs::permissions(target, old.permissions(), failure);
  return std::nullopt;
}

int fix(const Session& session, const lint::Report& found, const LintOptions& options,
        const Globals& globals) {
  std::string diffs;
  for (std::size_t n = 0; n < session.inputs.size(); ++n) {
    const auto& input = session.inputs[n];
    if (input.kind == parse::ConfigKind::environ) continue;
    const std::string text = lint::fixed_text(input.text, found.found, n);
    if (text == input.text) continue;
    diffs += lint::unified_diff(input.name, input.text, text);
    if (!options.in_place || input.name == "stdin") continue;
    if (const auto error = rewrite(input.name, text)) return report(*error);
    if (!globals.quiet) fmt::print(stderr, "topotune: {}: rewritten\n", printable(input.name));
  }
  return write_result(globals, diffs);
}

int status_of(const model::Diagnosis& diagnosis, const LintOptions& options, bool failed) {
  switch (model::verdict_of(diagnosis)) {
    case model::Verdict::error:
      return kError;
    case model::Verdict::warn:
      if (options.fail_on == "warn") return kWarn;
      break;
    case model::Verdict::unknown:
      return kUnknown;
    default:
      break;
  }
  return failed ? kUnknown : kOk;
}

std::string name_of_all(const Session& session) {
  if (session.inputs.size() == 1) return session.inputs[0].name;
  return fmt::format("{} and {} more", session.inputs[0].name, session.inputs.size() - 1);
}

int write_findings(const Session& session, model::Diagnosis& diagnosis, const LintOptions& options,
                   const Globals& globals) {
  checks::translate(diagnosis, language_of(globals));
  if (options.sarif) return write_result(globals, emit::findings_sarif(diagnosis));
  if (options.nagios) return write_result(globals, emit::findings_nagios(diagnosis));
  if (options.junit) return write_result(globals, emit::findings_junit(diagnosis, name_of_all(session)));
  if (options.markdown)
    return write_result(globals,
                        emit::findings_markdown(diagnosis, name_of_all(session), language_of(globals)));
  model::Source source;
  source.kind = model::SourceKind::text;
  source.name = name_of_all(session);
  return write_result(globals, globals.json ? emit::findings_json(diagnosis, source)
                                            : emit::findings_text(diagnosis, source.name,
                                                                  {use_color(globals), globals.verbose,
                                                                   language_of(globals)}));
}

int lint_all(const LintOptions& options, const Globals& globals) {
  if (options.files.empty() && !options.env && options.pid == 0)
    return report(
        Error{Errc::usage, "nothing to lint", {}, {}, {}, "topotune lint FILE..., --env or --pid N"});
  if (!globals.kind.empty() && !parse::config_kind_from(globals.kind))
    return report(Error{Errc::usage,
                        fmt::format("--kind {}: no such kind of configuration", globals.kind),
                        {},
                        {},
                        {},
                        "env, environ, shell, nccl-conf, ucx-conf, yaml, dockerfile, systemd, python, "
                        "document, notebook, lua"});
  Session session;
  lint::Options known = options_of(options, globals);
  if (options.pid > 0) take_process(session, globals, options.pid);
  if (options.env) {
    take_environment(session, "environment", own_environment());
    take_conf_files(session, globals, globals.sysroot, own_environment());
  }
  if (options.env || options.pid > 0) know_machine(options, globals, known);
  for (const auto& name : options.files) {
    std::error_code error;
    if (fs::is_directory(name, error))
      take_folder(session, globals, name);
    else
      take_file(session, globals, name);
  }
  follow_includes(session, globals);
  if (session.inputs.empty()) return kUnknown;
  lint::Report found = lint::judge(session.inputs, known);
  const bool fixes = options.fix || options.in_place;
  const int fixed = fixes ? fix(session, found, options, globals) : kOk;
  auto diagnosis = found.take_diagnosis();
  if (std::ranges::all_of(session.inputs, [](const auto& input) { return tells_nothing(input.facts); }))
    checks::nothing_checked(diagnosis, "nothing of the text was read");
  const int written = fixes ? fixed : write_findings(session, diagnosis, options, globals);
  return written == kOk ? status_of(diagnosis, options, session.failed) : written;
}

}  // namespace

void add_lint(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<LintOptions>();
  auto* verb = app.add_subcommand(
      "lint", "diagnose configuration: scripts, env files, nccl.conf, YAML, units, Dockerfiles");
  verb->add_option("FILE", options->files, "files or folders; - is standard input");
  verb->add_flag("--env", options->env, "the environment of this shell");
  verb->add_option("--pid", options->pid, "the environment of a running process")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  verb->add_flag("--fix", options->fix, "print the corrections as a unified diff");
  verb->add_flag("--in-place", options->in_place, "write the corrections into the files");
  verb->add_flag("--sarif", options->sarif, "print SARIF 2.1.0 for code review");
  verb->add_flag("--markdown", options->markdown, "Markdown for a ticket");
  verb->add_flag("--junit", options->junit, "JUnit XML");
  verb->add_flag("--nagios", options->nagios, "one line for Nagios and its kin");
  verb->add_option("--libnccl", options->library, "take the names of variables from this libnccl.so")
      ->type_name("FILE");
  verb->add_option("--fail-on", options->fail_on, "the verdict that makes the exit status other than 0")
      ->check(CLI::IsMember({"warn", "error"}))
      ->type_name("VERDICT");
  verb->footer(
      "Exit status: 0 ok or info, 1 warn (0 with --fail-on error), 2 error, 3 something could not be read.\n"
      "Examples:\n"
      "  topotune lint train.sbatch env.sh /etc/nccl.conf\n"
      "  topotune lint --env --nccl-version 2.27\n"
      "  topotune lint --pid 4711 --json\n"
      "  topotune lint --fix train.sh | patch -p1\n"
      "  kubectl get pod train -o yaml | topotune lint --kind yaml -");
  verb->callback([options, &globals, &status] { status = lint_all(*options, globals); });
}

}  // namespace topotune::cli
