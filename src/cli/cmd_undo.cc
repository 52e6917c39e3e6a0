#include <memory>

#include "act/apply.h"
#include "cli/act_output.h"
#include "cli/cli.h"

namespace topotune::cli {

namespace {

struct UndoVerb {
  act::UndoOptions act;
  std::string root;
};

int undo(const UndoVerb& options, const Globals& globals) {
  const auto root = acting_root(options.root, globals);
  if (!root) return report(root.error());
  act::System system(*root);
  const auto done = act::undo(system, options.act);
  if (!done) return report(done.error());
  if (done->accounts.empty() && !globals.json) {
    if (!globals.quiet) fmt::print(stderr, "topotune: nothing to undo\n");
    return kOk;
  }
  const auto text = globals.json ? accounts_json(*done, "topotune.undo/1") : accounts_text(*done);
  if (const int status = write_result(globals, text); status != kOk) return status;
  if (done->complete()) return kOk;
  return report(Error{Errc::io, "not everything was taken back; the journal keeps the rest", {}, {}, {}, ""});
}

}  // namespace

void add_undo(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<UndoVerb>();
  auto* verb = app.add_subcommand("undo", "take back what apply changed, newest first, and verify it");
  add_root_option(*verb, options->root);
  verb->add_flag("--dry-run", options->act.dry_run, "say what would be restored; change nothing");
  verb->add_flag("--force", options->act.force, "restore also what another hand has changed since");
  verb->footer(
      "Exit status: 0 everything is as before (or there was nothing), 3 not everything.\n"
      "Examples:\n"
      "  topotune undo --dry-run\n"
      "  topotune undo");
  verb->callback([options, &globals, &status] { status = undo(*options, globals); });
}

}  // namespace topotune::cli
