#include <memory>

#include "cli/cli.h"
#include "cli/input.h"
#include "emit/diff_json.h"
#include "emit/diff_text.h"
#include "model/diff.h"

namespace topotune::cli {

namespace {

struct DiffOptions {
  std::string before, after;
};

int compare(const DiffOptions& options, const Globals& globals) {
  if (options.before == "-" && options.after == "-") {
    return report(Error{Errc::usage, "diff: standard input can be one of the two only", {}, {}, {}, {}});
  }
  const auto before = load_input(options.before, globals);
  if (!before) return report(before.error());
  const auto after = load_input(options.after, globals);
  if (!after) return report(after.error());
  const auto diff = model::diff(before->machine, after->machine);
  const auto& a = before->machine.topology.source;
  const auto& b = after->machine.topology.source;
  const int written = write_result(
      globals, globals.json ? emit::diff_json(diff, a, b)
                            : emit::diff_text(diff, a, b, {use_color(globals), globals.verbose}));
  const bool nothing = diff.compared == 0 && diff.identical();
  return written == kOk && nothing ? static_cast<int>(kUnknown) : written;
}

}  // namespace

void add_diff(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<DiffOptions>();
  auto* verb =
      app.add_subcommand("diff", "what changed between two inputs of a machine, or between two machines");
  verb->add_option("BEFORE", options->before, "a capture, a file, a folder, live, or - for standard input")
      ->required();
  verb->add_option("AFTER", options->after, "the same")->required();
  verb->footer(
      "Devices are matched by PCI address, then by name, then by number. What only one of the inputs tells "
      "is counted,\n"
      "and listed with -v. Exit status: 0 done, with or without differences; 3 an input could\n"
      "not be read, or nothing is told by both.\n"
      "Examples:\n"
      "  topotune diff before-bios.capture live\n"
      "  topotune diff node7.capture node8.capture\n"
      "  topotune diff old-topo.txt new-topo.txt --json");
  verb->callback([options, &globals, &status] { status = compare(*options, globals); });
}

}  // namespace topotune::cli
