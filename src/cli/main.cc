#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>

#include "base/text.h"
#include "cli/cli.h"

namespace topotune::cli {

#define VERB(name) void add_##name(CLI::App&, Globals&, int&);
#include "verbs.inc"
#undef VERB

namespace {

struct Verb {
  std::string_view name;
  AddVerb add;
};
constexpr Verb kVerbs[] = {
#define VERB(name) {#name, add_##name},
#include "verbs.inc"
#undef VERB
};

void add_globals(CLI::App& app, Globals& globals) {
  app.add_flag("--json", globals.json, "print the JSON document (CLI contract)");
  app.add_option("-o,--output", globals.output, "write the result to FILE")->type_name("FILE");
  app.add_flag("-q,--quiet", globals.quiet, "say nothing on stderr but errors");
  app.add_flag("-v,--verbose", globals.verbose, "say more");
  app.add_option("--color", globals.color, "colours")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
  app.add_option("--lang", globals.lang, "language of titles, impact and remedy")
      ->check(CLI::IsMember({"en", "zh"}))
      ->type_name("en|zh");
  app.add_option("--kind", globals.kind, "what the input is, when its content is not to decide")
      ->type_name("KIND");
  app.add_option("--sysroot", globals.sysroot, "folder that stands for / (a recorded machine)")
      ->type_name("DIR");
  app.add_option("--nccl-version", globals.nccl_version, "NCCL version where no file tells it")
      ->type_name("V");
  app.add_option("--ucx-version", globals.ucx_version, "UCX version where no file tells it")->type_name("V");
  app.add_option("--driver-version", globals.driver_version, "NVIDIA driver version where no file tells it")
      ->type_name("V");
}

// Only the verb that comes first, where one does: to describe the options of all takes longer than to show a
// topology.
void add_verbs(CLI::App& app, Globals& globals, int& status, std::string_view first) {
  const auto* const one = std::ranges::find(kVerbs, first, &Verb::name);
  if (one != std::end(kVerbs)) return one->add(app, globals, status);
  for (const auto& verb : kVerbs) verb.add(app, globals, status);
}

// What every option of a kind refuses: a file without a name, a number that is none.
void check_options(CLI::App& app) {
  constexpr std::array<std::string_view, 5> kFiles{"FILE", "TABLE", "INPUT", "PLUGIN", "A B"};
  constexpr std::array<std::string_view, 3> kNumbers{"S", "SECONDS", "PCT"};
  const CLI::Validator named([](const std::string& value) { return value.empty() ? "names no file" : ""; },
                             "");
  const CLI::Validator number(
      [](const std::string& value) {
        return parse_double(value) ? "" : "'" + printable(value) + "' is no number";
      },
      "");
  for (auto* option : app.get_options()) {
    const auto described = option->get_type_name();  // "S:FLOAT in [1 - 86400]"
    const auto type = std::string_view(described).substr(0, described.find(':'));
    if (std::ranges::find(kFiles, type) != kFiles.end()) option->check(named);
    if (std::ranges::find(kNumbers, type) != kNumbers.end()) option->check(number);
  }
  for (auto* verb : app.get_subcommands(nullptr)) check_options(*verb);
}

// The first word of the command line that is no option, when no verb was recognised.
std::string unknown_verb(const CLI::App& app, int argc, char** argv) {
  if (!app.get_subcommands().empty()) return "";
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] != '-') return topotune::printable(argv[i]);
  }
  return "";
}

int run(int argc, char** argv) {
  Globals globals;
  int status = kOk;
  CLI::App app{"topotune: GPU topology and communication: read it, diagnose it, explain it", "topotune"};
  app.set_version_flag("--version", std::string("topotune ") + TOPOTUNE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.footer("Try: topotune check\n     topotune show nvidia-smi-topo.txt\n     topotune explain PIX");
  add_globals(app, globals);
  add_verbs(app, globals, status, argc > 1 ? argv[1] : "");
  check_options(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    if (const auto verb = unknown_verb(app, argc, argv); !verb.empty()) {
      std::fprintf(stderr, "topotune: there is no verb '%s'\nhint: topotune --help lists them\n",
                   verb.c_str());
      return kUsage;
    }
    std::fprintf(stderr, "topotune: %s\nhint: topotune --help\n", e.what());
    return kUsage;
  }
  return status;
}

}  // namespace
}  // namespace topotune::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return topotune::cli::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "topotune: internal error: %s\n", e.what());
    return topotune::cli::kUnknown;
  }
}
