#include <memory>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "emit/topology_json.h"
#include "model/paths.h"

namespace topotune::cli {

namespace {

struct ShowOptions {
  std::string input = "live";
};

void say_warnings(const Globals& globals, const model::Topology& topology) {
  if (globals.quiet) return;
  for (const auto& warning : topology.warnings) {
    const std::string line = warning.line ? fmt::format(":{}", *warning.line) : "";
    fmt::print(stderr, "topotune: {}{}: warning: {}\n", printable(topology.source.name), line,
               printable(warning.text));
  }
}

// One line a device and the paths of each GPU: what a person needs until a picture is asked for.
std::string summary(const model::Topology& topology) {
  std::string out;
  for (const auto& path : model::paths_of(topology)) {
    const std::string links =
        path.type == model::PathType::nvl && path.nvlinks ? fmt::format("{}", *path.nvlinks) : "";
    out += fmt::format("{}  {}  {}{}\n", path.a, path.b, path.type ? name_of(*path.type) : "?", links);
  }
  return out;
}

int show(const ShowOptions& options, const Globals& globals) {
  const auto input = load_input(options.input, globals);
  if (!input) return report(input.error());
  const auto& topology = input->machine.topology;
  say_warnings(globals, topology);
  return write_result(globals, globals.json ? emit::topology_json(topology) : summary(topology));
}

}  // namespace

void add_show(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<ShowOptions>();
  auto* verb = app.add_subcommand("show", "topology of a machine or of a file");
  verb->add_option("INPUT", options->input, "live (the default), a file, or - for standard input");
  verb->footer(
      "Examples:\n"
      "  topotune show                          this machine\n"
      "  topotune show topo.txt                 nvidia-smi topo -m text, also inside a pasted issue\n"
      "  topotune show ncclSystem.xml --json    NCCL or RCCL topology XML as topotune.topology/1\n"
      "  lstopo --of xml - | topotune show -    hwloc XML");
  verb->callback([options, &globals, &status] { status = show(*options, globals); });
}

}  // namespace topotune::cli
