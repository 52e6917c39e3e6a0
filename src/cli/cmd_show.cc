#include <memory>
#include <optional>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "emit/matrix.h"
#include "emit/nccl_xml.h"
#include "emit/svg.h"
#include "emit/topology_json.h"
#include "emit/tree.h"
#include "model/paths.h"

namespace topotune::cli {

namespace {

struct ShowOptions {
  std::string input = "live";
  std::string nccl_xml;  // FILE, "-" is standard output, "" not asked for
  std::string svg;       // likewise
  bool tree = false;
};

void say_warnings(const Globals& globals, const model::Topology& topology) {
  if (globals.quiet) return;
  for (const auto& warning : topology.warnings) {
    const std::string line = warning.line ? fmt::format(":{}", *warning.line) : "";
    fmt::print(stderr, "topotune: {}{}: warning: {}\n", printable(topology.source.name), line,
               printable(warning.text));
  }
}

int write_file(const Globals& globals, const std::string& file, const std::string& text) {
  Globals to = globals;
  to.output = file == "-" ? "" : file;
  return write_result(to, text);
}

int write_nccl_xml(const ShowOptions& options, const Globals& globals, const model::Topology& topology) {
  const auto text = emit::nccl_topo_xml(topology);
  if (text.empty()) {
    return report(Error{Errc::unsupported,
                        "no PCI tree is known: no NCCL topology XML can be written",
                        topology.source.name,
                        {},
                        {},
                        "a matrix does not tell the tree; give a live machine, a capture or XML"});
  }
  return write_file(globals, options.nccl_xml, text);
}

// The files that options ask for; nothing when they ask for none.
std::optional<int> write_files(const ShowOptions& options, const Globals& globals,
                               const model::Topology& topology) {
  std::optional<int> status;
  if (!options.svg.empty())
    status = write_file(globals, options.svg, emit::topology_svg(topology, model::paths_of(topology)));
  if (!options.nccl_xml.empty() && status.value_or(kOk) == kOk)
    status = write_nccl_xml(options, globals, topology);
  return status;
}

int show(const ShowOptions& options, const Globals& globals) {
  auto input = load_input(options.input, globals);
  if (!input) return report(input.error());
  auto& topology = input->machine.topology;
  say_warnings(globals, topology);
  say_diagnostics(globals, *input);
  const auto& diagnostics = input->machine.diagnostics;
  topology.warnings.insert(topology.warnings.end(), diagnostics.begin(), diagnostics.end());
  if (const auto status = write_files(options, globals, topology);
      status && (*status != kOk || !globals.json))
    return *status;
  if (globals.json) return write_result(globals, emit::topology_json(topology));
  const bool color = use_color(globals);
  return write_result(globals, options.tree ? emit::tree_text(topology, color)
                                            : emit::matrix_text(topology, model::paths_of(topology), color));
}

}  // namespace

void add_show(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<ShowOptions>();
  auto* verb = app.add_subcommand("show", "topology of a machine or of a file");
  verb->add_option("INPUT", options->input, "live (the default), a file, or - for standard input");
  verb->add_flag("--tree", options->tree, "NUMA nodes, host bridges, switches and devices as a tree");
  verb->add_option("--svg", options->svg, "write a drawing to FILE")->type_name("FILE");
  verb->add_option("--nccl-xml", options->nccl_xml, "write NCCL topology XML (NCCL_TOPO_FILE) to FILE")
      ->type_name("FILE");
  verb->footer(
      "Examples:\n"
      "  topotune show                          this machine\n"
      "  topotune show topo.txt                 nvidia-smi topo -m text, also inside a pasted issue\n"
      "  topotune show ncclSystem.xml --json    NCCL or RCCL topology XML as topotune.topology/1\n"
      "  topotune show --svg node.svg           a drawing of this machine\n"
      "  topotune show --nccl-xml topo.xml      what NCCL_TOPO_FILE takes\n"
      "  lstopo --of xml - | topotune show -    hwloc XML");
  verb->callback([options, &globals, &status] { status = show(*options, globals); });
}

}  // namespace topotune::cli
